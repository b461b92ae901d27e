# irb, the inference routing balancer. `make help` lists the targets.

GO      ?= go
VERSION ?= 0.1.0
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# How long each fuzz test runs in `make test`.
FUZZTIME ?= 2s

.PHONY: help setup build demo test lint unit static fuzz bench soak clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: ## Install what is missing: C++ compiler, CLP headers, minisign, Prometheus, Chromium
	@.ci/setup test

build: ## Build bin/irbctl (with CLP) and bin/irb-agent (static)
	@.ci/setup
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/irbctl ./cmd/irbctl
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/irb-agent ./cmd/irb-agent

demo: build ## Solve, sign, explain, route real traffic, lose half an engine, solve again
	$(GO) run ./examples/demo -irbctl bin/irbctl -agent bin/irb-agent

test: build lint unit static fuzz demo ## Everything that CI checks

lint: ## gofmt, go vet, staticcheck
	@.ci/setup
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# Whole simulations are some goroutine's own work each, which the race detector
# makes ten times slower; how they run beside each other is tested with it too.
SIMULATIONS := ./solve/simulate ./examples/evidence

unit: setup ## All tests, with the race detector but for long simulations
	$(GO) test -race -timeout 20m $$($(GO) list ./... | grep -vE '/(solve/simulate|examples/evidence)$$')
	$(GO) test -race -timeout 20m -run 'SameSeed|RunStops' ./solve/simulate
	$(GO) test -timeout 20m $(SIMULATIONS)

static: ## The agent without cgo; irbctl without CLP
	CGO_ENABLED=0 $(GO) build -o bin/irb-agent-static ./cmd/irb-agent && rm bin/irb-agent-static
	CGO_ENABLED=0 $(GO) build -o bin/irbctl-nocgo ./cmd/irbctl && bin/irbctl-nocgo version && rm bin/irbctl-nocgo

# Before Go 1.27 the end of the time can itself be reported as a failure (Go issue
# 75804); such a test runs again by count, which no clock ends.
fuzz: ## Every fuzz test, FUZZTIME each
	@.ci/setup
	@set -e; dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; \
	run() { (cd $$package && $$dir/fuzz -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $$1 \
		-test.fuzzminimizetime 1x -test.fuzzcachedir $$dir/found) >$$dir/log 2>&1; }; \
	for package in $$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u); do \
		$(GO) test -c -fuzz=Fuzz -o $$dir/fuzz ./$$package; \
		for name in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$package/*_test.go | sed 's/func //'); do \
			echo "fuzz $$package $$name"; \
			run $(FUZZTIME) || { grep -q 'context deadline exceeded' $$dir/log && run 1000x; } || { cat $$dir/log; exit 1; }; \
		done; \
	done

bench: build ## Benchmarks side by side with peers, some 20 minutes; no test depends on them
	@.ci/setup bench
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) run ./solve/bench
	cd agent/bench/pickers && $(GO) run .
	cd agent/bench/caddy && $(GO) build -trimpath -o ../../../bin/caddy .
	$(GO) run ./agent/bench
	$(GO) run ./agent/bench -reload

soak: build ## Three agents under 200,000 requests, restarts and reloads, some 10 minutes
	$(GO) run ./agent/bench -soak

clean: ## Remove what was built
	rm -rf bin
