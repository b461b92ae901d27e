package scenario

import (
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/simulate/policy"
)

func fleet() *model.Fleet {
	return &model.Fleet{
		Engines: []model.Engine{{Name: "a-1", Endpoints: []string{"http://a"}}, {Name: "c-1", Endpoints: []string{"http://c", "http://d"}}},
		Demand:  []model.Demand{{Cluster: "us", Class: "chat"}, {Cluster: "eu", Class: "chat"}},
	}
}

const whole = `name = "all"
duration = "30m"
warmup = "1m"
seed = 7
agents = 3
kv_cache_tokens = 1_000_000
policies = ["irb", "legacy"]

[traffic]
scale = 2
turns = 5
think = "20s"
length_cv = 0.5
shared_tokens = 512
block_tokens = 16

[slo]
ttft_ms = 500
tbot_ms = 25

[irb]
every = "2m"
stale = "5m"
noise = 0.1
demand_error = 0.3
profile_error = 0.2

[legacy]
interval = "10s"
gain = [0.5, 1]
smoothing = [1]

[[demand]]
at = "0s"
file = "d0.csv"
[[demand]]
at = "10m"
file = "d1.csv"

[[event]]
kind = "fail"
engine = "a-1"
endpoints = 1
at = "5m"
for = "90s"
[[event]]
kind = "demand"
cluster = "eu"
factor = 1.5
at = "6m"
`

func TestParse(t *testing.T) {
	s, err := Parse("s.toml", []byte(whole), fleet())
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "all" || s.DurationS != 1800 || s.WarmupS != 60 || s.Seed != 7 || s.Agents != 3 || s.CacheTokens != 1e6 || len(s.Policies) != 2 {
		t.Errorf("%+v", s)
	}
	if want := (Traffic{Speed: 1, Scale: 2, Turns: 5, ThinkS: 20, LengthCV: 0.5, SharedTokens: 512, BlockTokens: 16}); s.Traffic != want {
		t.Errorf("traffic %+v, want %+v", s.Traffic, want)
	}
	if o := s.IRB; o.EveryS != 120 || o.StaleS != 300 || o.Noise != 0.1 || o.DemandError != 0.3 || o.ProfileError != 0.2 {
		t.Errorf("irb %+v", o)
	}
	if len(s.Legacy) != 2 || s.Legacy[1] != (policy.Gains{Gain: 1, Smoothing: 1, IntervalS: 10}) {
		t.Errorf("legacy %+v", s.Legacy)
	}
	if len(s.Steps) != 2 || s.Steps[1] != (Step{AtS: 600, File: "d1.csv"}) {
		t.Errorf("steps %+v", s.Steps)
	}
	want := []Event{{Kind: Fail, Engine: "a-1", Endpoints: 1, AtS: 300, ForS: 90}, {Kind: Demand, Cluster: "eu", Factor: 1.5, AtS: 360}}
	if len(s.Events) != 2 || s.Events[0] != want[0] || s.Events[1] != want[1] {
		t.Errorf("events %+v, want %+v", s.Events, want)
	}
}

func TestEmptyScenarioIsTheDefault(t *testing.T) {
	s, err := Parse("s.toml", []byte("# nothing\n"), fleet())
	if err != nil {
		t.Fatal(err)
	}
	if want := Default(); s.DurationS != want.DurationS || s.IRB != want.IRB || s.SLO != want.SLO || len(s.Legacy) != len(want.Legacy) {
		t.Errorf("%+v, want %+v", s, want)
	}
}

// All problems are told at once, each with its line.
func TestParseErrors(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"no TOML", "duration = \n", []string{"s.toml:1: is not TOML"}},
		{"values", `duration = "soon"
agents = 0
policies = ["irb", "magic"]
[traffic]
turns = 0.5
length_cv = nan
[irb]
every = 5
nois = 1
[slo]
ttft_ms = -1
[legacy]
gain = [1, -2]
smoothing = [1]
`, []string{
			`s.toml:1: duration is "soon", want a time such as "90s", 1m0s to 720h0m0s`,
			"s.toml:2: agents is 0, want 1 to 1000",
			`s.toml:3: policies has "magic", want some of`,
			"s.toml:5: turns is 0.5, want at least 1",
			"s.toml:6: length_cv is NaN, want 0 to 5",
			`s.toml:8: every is 5, want a time such as "90s", 1s to 720h0m0s`,
			`s.toml:9: unknown key "nois"`,
			"s.toml:11: ttft_ms is -1, want 0 to 1e+09",
			"s.toml:13: gain[1] is -2, want 0 to 100",
		}},
		{"events", `[[event]]
kind = "fail"
at = "1m"
engine = "b-1"
[[event]]
kind = "capacity"
at = "1m"
engine = "a-1"
factor = 2
[[event]]
kind = "demand"
at = "1m"
cluster = "asia"
[[event]]
kind = "burn"
`, []string{
			`s.toml:4: engine is "b-1", want one of the fleet's: a-1, c-1`,
			"s.toml:9: factor is 2, want at most 1",
			"s.toml:10: event has no factor",
			`s.toml:13: cluster is "asia", want one of the fleet's: us, eu`,
			"s.toml:14: event has no at",
			`s.toml:15: kind is "burn", want`,
		}},
		{"what is counted", `seed = 1.5
agents = 2.7
policies = []
[[event]]
kind = "fail"
at = "1m"
engine = "a-1"
endpoints = 2
[[event]]
kind = "fail"
at = "30m"
engine = "c-1"
endpoints = 3
`, []string{
			"s.toml:1: seed is 1.5, want a whole number",
			"s.toml:2: agents is 2.7, want a whole number",
			"s.toml:3: policies names none, want one at least",
			`s.toml:8: endpoints is 2, want at most the 1 of engine "a-1"`,
			"s.toml:11: at is 1800 s, want less than the duration, 1800 s",
			`s.toml:13: endpoints is 3, want at most the 2 of engine "c-1"`,
		}},
		{"steps", "[[demand]]\nat = \"1m\"\nfile = \"a\"\n[[demand]]\nat = \"30s\"\n", []string{
			"s.toml:4: demand has no file", "s.toml:5: at is 30 s after 60 s, want rising times"}},
		{"half a grid", "[legacy]\ngain = [1]\n", []string{"s.toml:2: gain and smoothing are the grid that is searched, want both or none"}},
		{"warm-up", "duration = \"2m\"\nwarmup = \"2m\"\n", []string{"s.toml:2: warmup is 120 s, want less than the duration, 120 s"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("s.toml", []byte(tt.text), fleet())
			if err == nil {
				t.Fatal("no error")
			}
			rest := err.Error()
			for _, want := range tt.want {
				if !strings.Contains(rest, want) {
					t.Errorf("no %q in\n%v", want, err)
				}
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add("[legacy]\ngain = []\nsmoothing = [1]\n")
	f.Add("[[event]]\nkind = \"slow\"\nfactor = 1e300\nat = \"1h\"\nengine = \"a-1\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("s.toml", []byte(text), fleet())
		if err != nil {
			return
		}
		if !(s.DurationS >= 60) || !(s.WarmupS < s.DurationS) || s.Agents < 1 || len(s.Legacy) == 0 || s.Traffic.BlockTokens < 1 {
			t.Fatalf("%+v", s)
		}
		for _, e := range s.Events {
			if e.Kind != Fail && !(e.Factor >= 0.01) {
				t.Fatalf("%+v", e)
			}
		}
	})
}
