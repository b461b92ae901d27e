package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/irb-project/irb/agent/bench/rig"
)

// peer is a proxy under test. start runs it in front of the engines and returns
// the address where it takes requests.
type peer struct {
	name  string
	start func(ctx context.Context, b *bench) (*rig.Process, string, error)
}

// peersByName are the proxies that can be compared. Each hashes conversations
// consistently over the engines, keeps connections to them open and passes
// tokens on at once; what slows a peer down by default is set as its own manual
// says for this kind of traffic.
func peersByName() map[string]peer {
	return map[string]peer{
		"irb":     {"irb-agent", startIRB},
		"nginx":   {"nginx", startNginx},
		"haproxy": {"HAProxy", startHAProxy},
		"caddy":   {"Caddy", startCaddy},
	}
}

func startIRB(ctx context.Context, b *bench) (*rig.Process, string, error) {
	a, _, err := b.startAgent(ctx, 0)
	if err != nil {
		return nil, "", err
	}
	return a.Process, a.Address, nil
}

// startAgent starts an agent on a plan of even shares with so many classes
// beside the one that is asked for.
func (b *bench) startAgent(ctx context.Context, others int) (*rig.Agent, *rig.Plan, error) {
	var engines []rig.Engine
	for i, e := range b.engines {
		engines = append(engines, rig.Engine{Name: fmt.Sprint("e", i), Endpoints: []string{"http://" + e.address()}})
	}
	plan, err := rig.NewPlan(b.folder, engines)
	if err != nil {
		return nil, nil, err
	}
	plan.Others = others
	if _, err := plan.Publish(evenShares[:], time.Now()); err != nil {
		return nil, nil, err
	}
	a, err := rig.StartAgent(ctx, plan, "irb-agent", rig.AgentOptions{Program: b.agent, Agents: 1, EngineIdle: 4 * time.Second, Sample: 0.01})
	return a, plan, err
}

// evenShares are those of the engines.
var evenShares = [enginesBehind]float64{1, 1, 1, 1}

// startPeer writes a peer's settings and starts it.
func (b *bench) startPeer(ctx context.Context, name, program, settings, address string, args ...string) (*rig.Process, string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		// Debian's daemons; not everybody has that folder in PATH.
		if path, err = exec.LookPath(filepath.Join("/usr/sbin", program)); err != nil {
			return nil, "", errMissing
		}
	}
	file := filepath.Join(b.folder, name+".conf")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return nil, "", err
	}
	p, err := rig.Start(b.folder, name, path, append(args, file)...)
	if err != nil {
		return nil, "", err
	}
	if err := p.Listening(ctx, address); err != nil {
		p.Kill()
		return nil, "", err
	}
	return p, address, nil
}

// eachEngine returns text with one line for each engine.
func (b *bench) eachEngine(line func(i int, address string) string) string {
	var text strings.Builder
	for i, e := range b.engines {
		text.WriteString(line(i, e.address()))
	}
	return text.String()
}

func startNginx(ctx context.Context, b *bench) (*rig.Process, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	settings := fmt.Sprintf(`daemon off;
pid %[1]s/nginx.pid;
error_log stderr warn;
worker_processes auto;
worker_rlimit_nofile 16384;
events { worker_connections 8192; }
http {
	access_log off;
	client_body_temp_path %[1]s/nginx-body;
	proxy_temp_path %[1]s/nginx-proxy;
	fastcgi_temp_path %[1]s/nginx-fastcgi;
	uwsgi_temp_path %[1]s/nginx-uwsgi;
	scgi_temp_path %[1]s/nginx-scgi;
	keepalive_requests 100000000;
	client_body_buffer_size 64k;
	upstream engines {
		hash $http_x_session_id consistent;
%[3]s		keepalive 128;
		keepalive_requests 100000000;
	}
	server {
		listen %[2]s;
		location / {
			proxy_pass http://engines;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
		}
	}
}
`, b.folder, address, b.eachEngine(func(_ int, address string) string { return "\t\tserver " + address + ";\n" }))
	return b.startPeer(ctx, "nginx", "nginx", settings, address, "-c")
}

func startHAProxy(ctx context.Context, b *bench) (*rig.Process, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	settings := fmt.Sprintf(`global
	maxconn 8192
defaults
	mode http
	timeout connect 1s
	timeout client 2m
	timeout server 2m
	option http-no-delay
	http-reuse always
frontend in
	bind %s
	default_backend engines
backend engines
	balance hdr(x-session-id)
	hash-type consistent
%s`, address, b.eachEngine(func(i int, address string) string { return fmt.Sprintf("\tserver e%d %s\n", i, address) }))
	return b.startPeer(ctx, "haproxy", "haproxy", settings, address, "-f")
}

func startCaddy(ctx context.Context, b *bench) (*rig.Process, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	upstreams := b.eachEngine(func(i int, address string) string {
		return strings.Repeat(", ", min(i, 1)) + fmt.Sprintf(`{"dial": %q}`, address)
	})
	settings := fmt.Sprintf(`{
	"admin": {"disabled": true, "config": {"persist": false}},
	"logging": {"logs": {"default": {"level": "ERROR"}}},
	"apps": {"http": {"servers": {"in": {
		"listen": [%q],
		"automatic_https": {"disable": true},
		"routes": [{"handle": [{
			"handler": "reverse_proxy",
			"load_balancing": {"selection_policy": {"policy": "header", "field": "X-Session-Id"}},
			"transport": {"protocol": "http", "keep_alive": {"max_idle_conns_per_host": 1024}},
			"upstreams": [%s]
		}]}]
	}}}}
}
`, address, upstreams)
	return b.startPeer(ctx, "caddy", b.caddy, settings, address, "run", "--config")
}

func freeAddress() (string, error) {
	addresses, err := rig.FreeAddresses(1)
	if err != nil {
		return "", err
	}
	return addresses[0], nil
}
