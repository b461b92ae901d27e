package solve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/model"
)

// promptHeavy writes a fleet of one engine by processor sharing, 10 req/s of
// 1024 + 256 tokens, 4 units of work per output token, and one source whose
// requests of 1792 + 64 tokens are as much work, but 1.75 times the prompt.
func promptHeavy(t *testing.T, rps, shed string) *model.Fleet {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"demand.csv":  "cluster,rps,prompt_tokens,output_tokens\nhere," + rps + ",1792,64\n",
		"latency.csv": "rtt_ms,r\nhere,2\n",
		"policy.toml": "fleet = \"test\"\nmax_utilization = 0.9\noutput_token_work = 4\nwork = \"split\"\nshed = \"" + shed + "\"\n",
		"engines.toml": `[profile.p]
prompt_tokens = 1024
output_tokens = 256
ttft_ms = 80
tbot_ms = 12
queueing = "ps"

[[engine]]
name = "e"
region = "r"
endpoints = ["http://192.0.2.1:8000"]
profile = "p"
capacity_rps = 10
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return readFleet(t, folder)
}

// The joint limit of an engine is its only one: prompts alone may run beyond
// utilization 1 of their own. By hand, at 8.1 req/s: the prompts run at 1.4175
// of 10240 tokens/s, where TTFT has grown by 720 ms up to 0.9 and by its slope
// 80/(1-0.9)² from there, 4140 ms, together 8505 ms for 1.75 reference prompts;
// the outputs run at 0.2025 of 2560 tokens/s, 12 x 0.2025/0.7975 x 64 ms; without
// load a request takes 140 + 768 ms, and 2 ms of network.
func TestProcessorSharingEndsInItsSlope(t *testing.T) {
	p, err := Solve(context.Background(), promptHeavy(t, "8.1", "forbid"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "latency", p.Report.LatencyMsRPS/8.1, 8505+12*0.2025/0.7975*64+140+768+2, 1e-6)
	if len(p.Warnings) != 2 || !strings.Contains(p.Warnings[1], "e: prompts run at 141.8 % of the rate") {
		t.Errorf("warnings are %q", p.Warnings)
	}

	// Its limit lowers the joint utilization to 0.6, where 4.5 req/s fit; their
	// prompts alone run beyond it.
	limited := promptHeavy(t, "4.5", "forbid")
	limited.Policy.TTFTLimitMs = 200
	if p, err = Solve(context.Background(), limited, Options{}); err != nil {
		t.Fatal(err)
	}
	want := "e: ttft_limit_ms 200 does not hold at utilization 0.787 of its own: the mix of what it serves is far from the reference request"
	if len(p.Warnings) != 2 || p.Warnings[0] != want {
		t.Errorf("warnings are %q, want %q", p.Warnings, want)
	}

	_, err = Solve(context.Background(), promptHeavy(t, "10", "forbid"), Options{})
	var short *model.Infeasible
	if !errors.As(err, &short) || len(short.Engines) != 1 {
		t.Errorf("10 req/s of at most 9: %v", err)
	}
	p, err = Solve(context.Background(), promptHeavy(t, "10", "allow"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "served", p.Solution.ServedRPS[0], 9, 1e-6) // less what the method needs for an interior
}
