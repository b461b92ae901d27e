package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/irb-project/irb/solve/profile"
)

// addFixtures seeds a fuzz test with the fixtures of a kind.
func addFixtures(f *testing.F, patterns ...string) {
	f.Helper()
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(fixtures, pattern))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
}

// checkAny reads a file, fits it, and demands of whatever comes out that
// profiles are sound, can be written, and are the same when read again.
func checkAny(t *testing.T, name string, data []byte) {
	results, err := Read([]File{{name, data}}, Options{})
	if err != nil {
		return
	}
	profiles := Fit(results.Runs, FitOptions{AcceptError: true})
	for _, p := range profiles {
		if (p.Refusal == "") != (p.Fitted.Name != "") {
			t.Fatalf("refusal %q with the profile %+v", p.Refusal, p.Fitted)
		}
		if p.Refusal == "" && !(p.CapacityRPS > 0 && p.Knee >= 0 && p.MaxUtilization >= 0 && p.MaxUtilization <= mostUtilization) {
			t.Fatalf("capacity %v, knee %v, max %v", p.CapacityRPS, p.Knee, p.MaxUtilization)
		}
	}
	if _, err := json.Marshal(profiles); err != nil {
		t.Fatal(err)
	}
	text := TOML(results.Sources, profiles, EstimateWork(profiles), time.Unix(0, 0))
	var tree struct {
		Profile map[string]struct {
			PromptTokens float64 `toml:"prompt_tokens"`
			OutputTokens float64 `toml:"output_tokens"`
			Utilization  []float64
			TTFTMs       []float64 `toml:"ttft_ms"`
			TBOTMs       []float64 `toml:"tbot_ms"`
		}
	}
	if _, err := toml.Decode(text, &tree); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, p := range profiles {
		if p.Refusal != "" {
			continue
		}
		got := tree.Profile[p.Name]
		s := profile.Spec{Name: p.Name, PromptTokens: got.PromptTokens, OutputTokens: got.OutputTokens, Utilization: got.Utilization, TTFTMs: got.TTFTMs, TBOTMs: got.TBOTMs, AcceptErrorAbove25: true}
		again, err := profile.Fit(s)
		if err != nil || again.WorstRelError != p.WorstRelError {
			t.Fatalf("read again: %v, error %v, want %v\n%s", err, again.WorstRelError, p.WorstRelError, text)
		}
	}
}

func FuzzCSV(f *testing.F) {
	addFixtures(f, "*.csv")
	f.Add([]byte("request_rate_rps,throughput_rps,ttft_s,itl_us,isl,osl\n1,1,0.05,9000,100,10\n2,2,0.06,9100,100,10\n"))
	f.Add([]byte("gpu,concurrency,ttft_ms,tpot_ms,isl,osl,e2e_s,failed,completed\n\"a\nb\",1,50,9,100,10,0.2,0,5\n\"a\nb\",9,60,9,100,10,0.2,1,5\n"))
	f.Fuzz(func(t *testing.T, data []byte) { checkAny(t, "x.csv", data) })
}

func FuzzJSON(f *testing.F) {
	addFixtures(f, "*.json", "*.jsonl", "inference-perf/*.json")
	f.Fuzz(func(t *testing.T, data []byte) { checkAny(t, "x.json", data) })
}

func FuzzPrometheus(f *testing.F) {
	addFixtures(f, "prometheus.json")
	f.Fuzz(func(t *testing.T, result []byte) {
		checkAny(t, "x.json", append(append([]byte(`{"status":"success","data":{"resultType":"matrix","result":`), result...), "}}"...))
	})
}
