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
}{
	{"East US 2", "chat", -5, 0.01},
	{"West Europe", "chat", +1, 0.0075},
	{"Southeast Asia", "chat", +8, 0.0075},
	{"Australia East", "chat", +10, 0.00375},
	{"West Europe", "chat-eu", +1, 0.006},
	{"East US 2", "chat-eu", +1, 0.0003}, // European customers, at their hours
}

// demandAt returns a demand file for an hour of the day in UTC.
func demandAt(hour int) string {
	var b strings.Builder
	b.WriteString("cluster,class,rps\n")
	for _, d := range demand {
		fmt.Fprintf(&b, "%s,%s,%.2f\n", d.cluster, d.class, d.scale*trace[(hour+d.zone+24)%24])
	}
	return b.String()
}

// defaultHour, UTC, is that of demand.csv.
const defaultHour = 20

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
// once by the next, of 1024 prompt and 1024 output tokens. All of
// ai-dynamo/aiconfigurator, silicon_sample.csv, commit
// 095f58a51c4ca8e61b66ec108d86f223f8d559ce, Apache-2.0: Llama-3.1-70B in FP8
// on vLLM.
type measured struct{ ttftMs, tpotMs [5]float64 }

var (
	concurrency  = [5]float64{4, 8, 16, 32, 64}
	measurements = map[string]measured{
		"h100": { // h100_sxm, tensor parallel 4
			[5]float64{80.5, 96.3, 121.4, 174.8, 256.4},
			[5]float64{11.78, 12.11, 13.19, 16.49, 19.51},
		},
		"h200": { // h200_sxm, tensor parallel 4
			[5]float64{90.6, 101.1, 126.2, 179.1, 264.5},
			[5]float64{9.85, 10.14, 10.94, 14.38, 16.07},
		},
		"b200": { // b200_sxm, tensor parallel 2
			[5]float64{91.5, 122.3, 136.4, 193.1, 294.3},
			[5]float64{10.64, 10.73, 11.37, 13.02, 15.89},
		},
	}
)

const promptTokens, outputTokens = 1024, 1024

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
