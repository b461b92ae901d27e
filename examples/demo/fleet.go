package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// The fleet is examples/two-regions-queueing made quick: engines ten times as
// fast as its h100-70b and three times as large, at an hour with room enough
// that losing half of a-1 can be borne.
const (
	demandCSV  = "cluster,rps\nus-east,210\nus-west,90\n"
	latencyCSV = "rtt_ms,region-a,region-c\nus-east,2,65\nus-west,65,2\n"
	policyTOML = "fleet = \"demo\"\nmax_utilization = 0.9\n"

	enginesTOML = `[profile.quick]
prompt_tokens = 1024
output_tokens = 256
utilization = [0.0, 0.25, 0.5, 0.75, 0.9, 1.0]
ttft_ms = [8, 8.5, 10, 14, 22, 40]
tbot_ms = [1.2, 1.3, 1.5, 1.8, 2.2, 3.0]

[[engine]]
name = "a-1"
region = "region-a"
endpoints = [%q]
profile = "quick"
capacity_rps = 300
health = %g

[[engine]]
name = "c-1"
region = "region-c"
endpoints = [%q]
profile = "quick"
capacity_rps = 240
`
)

// demandRPS is what demand.csv says.
var demandRPS = map[string]float64{"us-east": 210, "us-west": 90}

// writeFleet writes the fleet, a-1 in the given health, and returns its folder.
func (d *demo) writeFleet(health float64) (folder string, err error) {
	folder = d.path("fleet")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		"demand.csv": demandCSV, "latency.csv": latencyCSV, "policy.toml": policyTOML,
		"engines.toml": fmt.Sprintf(enginesTOML, d.endpoints[0], health, d.endpoints[1]),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return folder, nil
}

func agentConfig(cluster, weights, key, state, listen, status string) string {
	return fmt.Sprintf(`fleet = "demo"
cluster = %q
weights = %q
trusted_key_files = [%q]
state_dir = %q
status_listen = %q
agents = 1
allow_engine_networks = ["127.0.0.1/32"]

[[listener]]
address = %q

[timeouts]
drain_delay = "500ms"
`, cluster, weights, key, state, status, listen)
}

// freeAddresses returns addresses on loopback that nobody listens on now. They
// are held until all are chosen, so that they differ.
func freeAddresses(n int) (addresses []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
