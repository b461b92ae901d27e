module github.com/irb-project/irb/agent/bench/pickers

go 1.26.0

replace github.com/irb-project/irb => ../../..

require (
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f
	github.com/irb-project/irb v0.0.0-00010101000000-000000000000
	github.com/kkdai/maglev v0.2.0
	github.com/serialx/hashring v0.0.0-20200727003509-22c0c7ab6b1b
)

require (
	aead.dev/minisign v0.3.0 // indirect
	github.com/dchest/siphash v1.2.2 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
