// Command caddy is Caddy with its reverse proxy only, a peer of the benchmark
// in agent/bench. It is a module of its own to keep Caddy's dependencies out of
// irb's.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

func main() { caddycmd.Main() }
