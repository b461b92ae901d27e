// Package followthesun derives the figures of this example from what was
// published, and checks that its files have them. With -update it writes the
// demand files.
package followthesun

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

var update = flag.Bool("update", false, "write the demand files")

// trace is the mean rate in requests/s of model m-small of ServeGen in each
// hour of the fifth day, local time: alibaba/ServeGen, commit
// f891d1189eb32b3868dfc443800c4150548c282a, Apache-2.0. Each is the mean of
// six windows of 600 s of the sum of all clients.
var trace = [24]float64{
	822.6, 678.6, 681.3, 689.5, 666.3, 670.5, 718.8, 826.4, 1074.0, 1336.4, 1164.7, 1054.5,
	998.6, 1041.9, 1066.0, 1075.0, 1050.3, 1023.4, 1067.4, 1198.6, 1459.8, 1514.6, 1417.9, 1179.7,
}

// demand says how each source follows the trace: its rate at local hour h is
// scale x trace[h].
var demand = []struct {
	cluster, class string
	zone           int // hours ahead of UTC, standard time
	scale          float64
	prompt, output int // mean tokens
}{
	{"East US 2", "chat", -5, 0.02, 1155, 211},
	{"West Europe", "chat", +1, 0.015, 1155, 211},
	{"Southeast Asia", "chat", +8, 0.015, 1155, 211},
	{"Australia East", "chat", +10, 0.0075, 1155, 211},
	{"West Europe", "code-eu", +1, 0.01, 2048, 28},
	{"East US 2", "code-eu", +1, 0.0005, 2048, 28},
}

// demandAt returns a demand file for an hour of the day in UTC.
func demandAt(hour int) string {
	var b strings.Builder
	b.WriteString("cluster,class,rps,prompt_tokens,output_tokens\n")
	for _, d := range demand {
		rps := d.scale * trace[(hour+d.zone+24)%24]
		fmt.Fprintf(&b, "%s,%s,%.2f,%d,%d\n", d.cluster, d.class, rps, d.prompt, d.output)
	}
	return b.String()
}

// defaultHour, UTC, is that of demand.csv.
const defaultHour = 13

func TestDemand(t *testing.T) {
	files := map[string]string{"demand.csv": demandAt(defaultHour)}
	for hour := range 24 {
		files[filepath.Join("hours", fmt.Sprintf("demand-%02d.csv", hour))] = demandAt(hour)
	}
	for name, want := range files {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s differs from what is derived; go test -update writes it", name)
		}
	}
}

// measured is a closed loop: so many requests in progress, each followed at
// once by the next, of 8192 prompt and 1024 output tokens. All of
// ai-dynamo/aiconfigurator, silicon_sample.csv, commit
// 095f58a51c4ca8e61b66ec108d86f223f8d559ce, Apache-2.0: Llama-3.1-70B in FP8
// on vLLM.
type measured struct{ ttftMs, tpotMs [5]float64 }

var (
	concurrency  = [5]float64{4, 8, 16, 32, 64}
	measurements = map[string]measured{
		"h100": { // h100_sxm, tensor parallel 4
			[5]float64{453.3, 582.9, 731.5, 1068.7, 1744.9},
			[5]float64{13.27, 15.77, 21.06, 32.82, 53.49},
		},
		"h200": { // h200_sxm, tensor parallel 4
			[5]float64{468.6, 613.3, 775.2, 1117.1, 1817.5},
			[5]float64{11.27, 13.19, 17.44, 28.62, 46.11},
		},
		"b200": { // b200_sxm, tensor parallel 2
			[5]float64{463.5, 606.3, 759.0, 1126.3, 1852.3},
			[5]float64{11.75, 13.56, 17.46, 25.38, 42.01},
		},
	}
)

const promptTokens, outputTokens = 8192, 1024

// rates returns the requests per second at each concurrency, by Little's law.
func (m measured) rates() (rates [5]float64) {
	for i, n := range concurrency {
		rates[i] = n / (m.ttftMs[i] + outputTokens*m.tpotMs[i]) * 1000
	}
	return rates
}

func TestEngines(t *testing.T) {
	var file struct {
		Profile map[string]struct {
			Prompt      float64   `toml:"prompt_tokens"`
			Output      float64   `toml:"output_tokens"`
			Utilization []float64 `toml:"utilization"`
			TTFTMs      []float64 `toml:"ttft_ms"`
			TBOTMs      []float64 `toml:"tbot_ms"`
		}
		Engine []struct {
			Name, Profile string
			Endpoints     []string
			Capacity      float64 `toml:"capacity_rps"`
		}
	}
	if _, err := toml.DecodeFile("engines.toml", &file); err != nil {
		t.Fatal(err)
	}
	for name, m := range measurements {
		p, rates := file.Profile[name], m.rates()
		if p.Prompt != promptTokens || p.Output != outputTokens || len(p.Utilization) != 6 || len(p.TTFTMs) != 6 || len(p.TBOTMs) != 6 {
			t.Errorf("profile %s is %+v, want six points of the measured request", name, p)
			continue
		}
		for i := range 6 {
			j := max(0, i-1) // the idle engine is taken to be as fast as the least loaded one
			v := 0.0
			if i > 0 {
				v = math.Round(rates[j]/rates[4]*1e4) / 1e4
			}
			if p.Utilization[i] != v || p.TTFTMs[i] != m.ttftMs[j] || p.TBOTMs[i] != m.tpotMs[j] {
				t.Errorf("profile %s, point %d is %v, %v, %v, want %v, %v, %v", name, i,
					p.Utilization[i], p.TTFTMs[i], p.TBOTMs[i], v, m.ttftMs[j], m.tpotMs[j])
			}
		}
	}
	for _, e := range file.Engine {
		one := math.Round(measurements[e.Profile].rates()[4]*1e3) / 1e3
		want := math.Round(one*float64(len(e.Endpoints))*1e3) / 1e3
		if e.Capacity != want {
			t.Errorf("engine %s: capacity is %v req/s, want %v: %d replicas of %v", e.Name, e.Capacity, want, len(e.Endpoints), one)
		}
	}
}

// The work of an output token in prompt tokens, from the rates at concurrency
// 64 of the same engines with 1024 and with 8192 prompt tokens: a rate x
// (prompt + r 1024) is the same work rate for both.
func TestOutputTokenWork(t *testing.T) {
	var policy struct {
		Work float64 `toml:"output_token_work"`
	}
	if _, err := toml.DecodeFile("policy.toml", &policy); err != nil {
		t.Fatal(err)
	}
	shortPrompts := map[string][2]float64{ // TTFT, TPOT in ms
		"h100": {256.4, 19.51}, "h200": {264.5, 16.07}, "b200": {294.3, 15.89},
	}
	mean := 0.0
	for name, m := range shortPrompts {
		short, long := 64/(m[0]+outputTokens*m[1])*1000, measurements[name].rates()[4]
		r := (8*long - short) / (short - long)
		t.Logf("%s: an output token is the work of %.2f prompt tokens", name, r)
		mean += r / float64(len(shortPrompts))
	}
	if math.Abs(policy.Work-mean) > 0.05 {
		t.Errorf("output_token_work is %v, want %.2f", policy.Work, mean)
	}
}
