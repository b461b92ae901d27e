package collect

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/solve/collect/collecttest"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
)

// testFleet writes a fleet of two clusters, two classes and three engines, one
// of them with two endpoints.
func testFleet(t testing.TB) (*model.Fleet, input.Paths) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"demand.csv":  "cluster,class,rps,prompt_tokens,output_tokens\neast,chat,10,900,200\nwest,chat,20,900,200\n",
		"latency.csv": "rtt_ms,r1,b-1,c-1\neast,2,65,\nwest,60,3,5\n",
		"policy.toml": "fleet = \"prod\"\n[[class]]\nname = \"chat\"\n[[class]]\nname = \"batch\"\n",
		"engines.toml": `# the operator's own comment
[profile.p]
prompt_tokens = 100
output_tokens = 10
ttft_ms = 1
tbot_ms = 1
queueing = "none"
[[engine]]
name = "a-1"
region = "r1"
endpoints = ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]
profile = "p"
capacity_rps = 100
[[engine]]
name = "b-1"
region = "r2"
endpoints = ["http://10.0.1.1:8000"]
profile = "p"
capacity_rps = 1e3
health = 0.0
[[engine]]
name = "c-1"
region = "r3"
endpoints = ["http://10.0.2.1:8000"]
profile = "p"
capacity_rps = 50
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fleet, err := input.Read(input.Paths{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	return fleet, input.Paths{Engines: filepath.Join(folder, "engines.toml"), Policy: filepath.Join(folder, "policy.toml")}
}

// history writes OpenMetrics text, family by family.
type history struct{ strings.Builder }

func (h *history) family(name, kind string) { fmt.Fprintf(h, "# TYPE %s %s\n", name, kind) }

// samples writes a series at a step from begin to end; a NaN value is no sample.
func (h *history) samples(series string, begin, end time.Time, step time.Duration, value func(time.Time) float64) {
	for at := begin; !at.After(end); at = at.Add(step) {
		if v := value(at); !math.IsNaN(v) {
			fmt.Fprintf(h, "%s %g %d\n", series, v, at.Unix())
		}
	}
}

// counter turns a rate into a counter that is sampled every minute and is set
// back to 0 at some times.
func counter(begin time.Time, rate func(time.Time) float64, resets ...time.Time) func(time.Time) float64 {
	total, last := 0.0, begin
	return func(at time.Time) float64 {
		for ; last.Before(at); last = last.Add(time.Minute) {
			total += 60 * rate(last)
			for _, r := range resets {
				if !last.Before(r) && last.Before(r.Add(time.Minute)) {
					total = 0
				}
			}
		}
		return total
	}
}

func offeredSeries(cluster, class, instance, job string) string {
	return fmt.Sprintf(`irb_requests_offered_total{irb_fleet="prod",irb_cluster=%q,class=%q,attempt="first",instance=%q,job=%q}`, cluster, class, instance, job)
}

func row(t *testing.T, r *Result, cluster, class string) SourceDemand {
	t.Helper()
	i := slices.IndexFunc(r.Sources, func(s SourceDemand) bool { return s.Cluster == cluster && s.Class == class })
	if i < 0 {
		t.Fatalf("no demand of %s/%s in %+v", cluster, class, r.Sources)
	}
	return r.Sources[i]
}

func (r *Result) noted(t *testing.T, want string) {
	t.Helper()
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, want) }) {
		t.Errorf("no note of %q in %q", want, r.Notes)
	}
}

// dailyRate has the steepest fall of its day now, and is half as high again
// since five days ago.
func dailyRate(now time.Time) func(time.Time) float64 {
	return func(at time.Time) float64 {
		rate := 20 * math.Exp2(math.Sin(2*math.Pi*now.Sub(at).Hours()/24))
		if at.After(now.Add(-5 * day)) {
			rate *= 1.5
		}
		return rate
	}
}

// pastOf is what the server has scraped until now.
func pastOf(now time.Time) string {
	begin, daily := now.Add(-8*day-3*hour), dailyRate(now)
	gap := func(f func(time.Time) float64) func(time.Time) float64 {
		return func(at time.Time) float64 {
			v := f(at)
			if age := now.Sub(at); age > 30*hour && age < 31*hour {
				return math.NaN()
			}
			return v
		}
	}
	var h history
	h.family("irb_requests_offered", "counter")
	h.samples(offeredSeries("east", "chat", "gw-1:9464", "irb"), begin, now, 2*time.Minute, gap(counter(begin, daily)))
	h.samples(offeredSeries("east", "chat", "gw-1:9464", "irb-again"), now.Add(-3*hour), now, 2*time.Minute, counter(begin, daily))
	h.samples(offeredSeries("east", "chat", "gw-2:9464", "irb"), begin, now, 2*time.Minute, gap(counter(begin, daily, now.Add(-40*time.Minute))))
	h.samples(offeredSeries("west", "chat", "gw-3:9464", "irb"), now.Add(-2*hour), now, time.Minute, counter(now.Add(-2*hour), func(time.Time) float64 { return 7 }))
	h.samples(offeredSeries("east", "typo", "gw-1:9464", "irb"), now.Add(-hour), now, time.Minute, counter(now.Add(-hour), func(time.Time) float64 { return 3 }))
	h.samples(strings.Replace(offeredSeries("east", "batch", "gw-9:9464", "irb"), "prod", "other", 1), now.Add(-hour), now, time.Minute, counter(now.Add(-hour), func(time.Time) float64 { return 99 }))
	h.samples(offeredSeries("east", "batch", "gw-gone:9464", "irb"), now.Add(-50*time.Minute), now.Add(-20*time.Minute), time.Minute, counter(now.Add(-hour), func(time.Time) float64 { return 1 }))
	tokens := func(name, kind, source string, rate float64) {
		h.samples(fmt.Sprintf(`%s_total{irb_fleet="prod",irb_cluster="east",class="chat",kind=%q,source=%q,instance="gw-1:9464"}`, name, kind, source),
			now.Add(-2*hour), now, time.Minute, counter(now.Add(-2*hour), func(time.Time) float64 { return rate }))
	}
	h.family("irb_tokens", "counter")
	tokens("irb_tokens", "prompt", "usage", 3000)
	tokens("irb_tokens", "cached", "usage", 1200)
	tokens("irb_tokens", "output", "usage", 500)
	tokens("irb_tokens", "output", "estimate", 300)
	h.family("irb_token_reports", "counter")
	tokens("irb_token_reports", "prompt", "usage", 3)
	tokens("irb_token_reports", "cached", "usage", 3)
	tokens("irb_token_reports", "output", "usage", 2)
	tokens("irb_token_reports", "output", "estimate", 2)
	window := func(name string, rate float64) {
		h.family(name, "counter")
		h.samples(name+`_total{irb_fleet="prod",irb_cluster="east",class="chat",window="15m",instance="gw-1:9464"}`, now.Add(-3*hour), now, time.Minute,
			counter(now.Add(-3*hour), func(time.Time) float64 { return rate }))
	}
	window("irb_window_requests", 6)
	window("irb_window_keys", 2)
	gauge := func(series string, value func(time.Time) float64) {
		h.samples(series, now.Add(-hour), now, time.Minute, value)
	}
	constant := func(v float64) func(time.Time) float64 { return func(time.Time) float64 { return v } }
	h.family("irb_engine_rtt_seconds", "gauge")
	gauge(`irb_engine_rtt_seconds{irb_fleet="prod",irb_cluster="east",engine="a-1",instance="gw-1:9464"}`, constant(0.0042))
	gauge(`irb_engine_rtt_seconds{irb_fleet="prod",irb_cluster="east",engine="a-1",instance="gw-2:9464"}`, constant(0.0044))
	gauge(`irb_engine_rtt_seconds{irb_fleet="prod",irb_cluster="east",engine="c-1",instance="gw-1:9464"}`, constant(0.5)) // not reachable, by the fleet
	gauge(`irb_engine_rtt_seconds{irb_fleet="prod",irb_cluster="east",engine="evil",instance="gw-1:9464"}`, constant(0.001))
	gauge(`irb_engine_rtt_seconds{irb_fleet="prod",irb_cluster="west",engine="b-1",instance="gw-3:9464"}`, func(time.Time) float64 { return math.Inf(1) })
	h.family("irb_endpoint_up", "gauge")
	gauge(`irb_endpoint_up{irb_fleet="prod",irb_cluster="east",engine="c-1",endpoint="http://10.0.2.1:8000",instance="gw-1:9464"}`, constant(0))
	gauge(`irb_endpoint_up{irb_fleet="prod",irb_cluster="west",engine="c-1",endpoint="http://10.0.2.1:8000",instance="gw-3:9464"}`, constant(1))
	gauge(`irb_endpoint_up{irb_fleet="prod",irb_cluster="east",engine="b-1",endpoint="http://6.6.6.6:8000",instance="gw-1:9464"}`, constant(1))
	h.family("up", "gauge")
	gauge(`up{instance="10.0.0.1:8000",job="vllm"}`, constant(0))
	gauge(`up{instance="10.0.0.2:8000",job="vllm"}`, func(at time.Time) float64 {
		if now.Sub(at) < 2*time.Minute {
			return 0 // a scrape or two that failed
		}
		return 1
	})
	h.WriteString("# EOF\n")
	return h.String()
}

// A real server that has nine days of agents behind it: a daily shape, this week
// half as much again as last week; two agents, one scraped by two jobs, one that
// began again; an hour without scrapes; what another fleet and unknown classes
// offer.
func TestPrometheusHistory(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Minute)
	daily := dailyRate(now)
	fleet, paths := testFleet(t)
	source := &Prometheus{URL: collecttest.Prometheus(t, "", pastOf(now)), Client: http.DefaultClient, Window: 5 * time.Minute}
	r, err := Run(t.Context(), source, fleet, Options{Now: now, Every: 30 * time.Minute, Quantile: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("demand", func(t *testing.T) {
		east := row(t, r, "east", "chat")
		if f := east.Forecast; f == nil || !f.HasWeek || f.Backtests < 100 {
			t.Fatalf("east/chat: %+v, want a forecast from last week with a margin of its errors", east)
		}
		// Falling: the busiest quarter of an hour to come is the next one. Two
		// agents; the one scraped twice counts once.
		near(t, "east/chat level x shape", east.Forecast.Level*east.Forecast.Shape, 2*daily(now.Add(5*time.Minute)), 0.02)
		near(t, "its margin", east.Forecast.Margin, 1.01, 0.02)
		near(t, "its rate", east.RPS, 2*daily(now.Add(5*time.Minute)), 0.04)
		near(t, "prompt", east.PromptTokens, 1000, 0.001)
		near(t, "output", east.OutputTokens, 200, 0.001)
		near(t, "cached", east.CachedFraction, 0.4, 0.001)
		near(t, "per key", east.RequestsPerKey, 3, 0.001)
		west := row(t, r, "west", "chat")
		if west.Forecast == nil || west.Forecast.HasWeek || west.PromptTokens != 900 || !slices.Contains(west.Kept, "prompt_tokens") {
			t.Errorf("west/chat: %+v, want a forecast without last week and the fleet's tokens", west)
		}
		near(t, "west/chat", west.RPS, 7, 0.01)
		r.noted(t, `east/typo offers 3 req/s, but the fleet's files do not name its class; left out`)
		r.noted(t, `agents of cluster "east" are scraped more than once (1 series)`)
		r.noted(t, `1 of 3 agents of cluster "east" that were scraped in the last hour are not scraped now`)
	})
	t.Run("health", func(t *testing.T) {
		want := []EngineHealth{
			{"a-1", 0.5, 1, "scrapes: 1 of 2 endpoints up"},
			{"b-1", 0, 0, ""}, // drained by the operator; a stranger's address says nothing
			{"c-1", 1, 1, "connects of agents: 1 of 1 endpoints up"},
		}
		if !slices.Equal(r.Engines, want) {
			t.Errorf("%+v, want %+v", r.Engines, want)
		}
	})
	t.Run("latency", func(t *testing.T) {
		text := string(r.latency())
		if want := "rtt_ms,a-1,b-1,c-1\neast,4.3,65,\nwest,60,3,5\n"; !strings.HasSuffix(text, want) {
			t.Errorf("%s, want it to end in %s", text, want)
		}
		r.noted(t, `engine "evil" is measured, but engines.toml does not name it; left out`)
	})
	t.Run("health query", func(t *testing.T) {
		source.HealthQuery = `max by (engine) (irb_endpoint_up{irb_cluster="east"}) * 0.25`
		r, err := Run(t.Context(), source, fleet, Options{Now: now, Every: 30 * time.Minute, Quantile: 0.9})
		if err != nil {
			t.Fatal(err)
		}
		if e := r.Engines[1]; e.Health != 0 || e.Evidence != "--health-query" {
			t.Errorf("%+v, want 0, which the operator gave, below the query's 0.25", e)
		}
		for query, want := range map[string]string{"up": `no label "engine"`, "up +": "parse error", "irb_engine_rtt_seconds * 1e6": "replicas up over configured"} {
			source.HealthQuery = query
			if _, err := Run(t.Context(), source, fleet, Options{Now: now, Every: time.Hour, Quantile: 0.9}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", query, err, want)
			}
		}
		source.HealthQuery = ""
	})
	t.Run("written", func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "inputs")
		if err := r.Write(folder, paths); err != nil {
			t.Fatal(err)
		}
		got, err := input.Read(input.Paths{Folder: folder})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Demand) != len(r.Sources) || got.Engines[0].Health != 0.5 || got.Engines[0].CapacityRPS != 100 || got.Policy.Fleet != "prod" {
			t.Errorf("read again: %+v", got)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		fleet.Policy.Fleet = "nobody"
		if _, err := Run(t.Context(), source, fleet, Options{Now: now, Every: hour, Quantile: 0.9}); err != ErrNothing {
			t.Errorf("%v, want %v", err, ErrNothing)
		}
	})
}
