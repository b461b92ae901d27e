package collect

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	prom "github.com/prometheus/common/model"

	"github.com/irb-project/irb/solve/model"
)

// Prometheus reads signals from a Prometheus server, or whatever speaks its
// HTTP API.
type Prometheus struct {
	URL    string
	Client *http.Client
	// Window is the range of rates and the step of the forecast, at least
	// four times the interval between scrapes.
	Window time.Duration
	// HealthQuery, if set, gives the health of engines, 0 to 1, by a label
	// "engine"; for pools whose replicas only an orchestrator knows.
	HealthQuery string

	fleet string
	api   v1.API
	now   time.Time
	notes []string
}

// maxPoints is how many points one range query may ask for; servers allow
// 11,000 for each series.
const maxPoints = 10_000

// String names the server, without a password.
func (p *Prometheus) String() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "Prometheus"
	}
	return "Prometheus at " + u.Redacted()
}

// Signals is part of Source.
func (p *Prometheus) Signals(ctx context.Context, fleet *model.Fleet, o Options) (*Signals, error) {
	client, err := api.NewClient(api.Config{Address: p.URL, Client: p.Client})
	if err != nil {
		return nil, fmt.Errorf("--prometheus: %w", err)
	}
	p.api, p.fleet, p.now, p.notes = v1.NewAPI(client), fleet.Policy.Fleet, o.Now, nil
	s := newSignals()
	s.Step = p.Window
	for _, read := range []func(context.Context, *Signals) error{
		p.offered, p.tokens,
		func(ctx context.Context, s *Signals) error { return p.keys(ctx, s, keyWindowFor(o.Every)) },
		p.rtts,
		p.asked,
		func(ctx context.Context, s *Signals) error { return p.health(ctx, s, fleet) },
		p.agents,
	} {
		if err := read(ctx, s); err != nil {
			return nil, err
		}
	}
	s.Notes = append(s.Notes, p.notes...)
	return s, nil
}

// offered reads the demand of eight days: a week, and a day before it for the
// margin.
func (p *Prometheus) offered(ctx context.Context, s *Signals) error {
	n := int((8*day+2*hour)/p.Window) + 1
	start := p.now.Add(-time.Duration(n-1) * p.Window)
	strange := 0
	for from := 0; from < n; from += maxPoints {
		to := min(from+maxPoints, n)
		r := v1.Range{Start: start.Add(time.Duration(from) * p.Window), End: start.Add(time.Duration(to-1) * p.Window), Step: p.Window}
		value, warnings, _, err := p.api.QueryRange(ctx, p.offeredQuery(), r)
		if err != nil {
			return p.failed(p.offeredQuery(), err)
		}
		p.warn(warnings)
		matrix, ok := value.(prom.Matrix)
		if !ok {
			return p.failed(p.offeredQuery(), fmt.Errorf("the answer is a %s, want a matrix", value.Type()))
		}
		for _, row := range matrix {
			pair := pairOf(row.Metric)
			if s.Offered[pair] == nil {
				s.Offered[pair] = unknownSeries(n)
			}
			strange += p.place(row.Values, start, s.Offered[pair])
		}
	}
	if strange > 0 {
		s.notef("%d values of demand are no finite numbers; they count as missing", strange)
	}
	for pair, y := range s.Offered {
		s.Offered[pair] = withoutStarts(y)
	}
	return nil
}

// place puts values into their places on the grid and returns how many are not
// finite.
func (p *Prometheus) place(values []prom.SamplePair, start time.Time, y []float64) (strange int) {
	for _, v := range values {
		i := int(math.Round(float64(v.Timestamp.Time().Sub(start)) / float64(p.Window)))
		switch f := float64(v.Value); {
		case !(f >= 0) || math.IsInf(f, 0):
			strange++
		case i >= 0 && i < len(y):
			y[i] = f
		}
	}
	return strange
}

func unknownSeries(n int) []float64 {
	y := make([]float64, n)
	for i := range y {
		y[i] = math.NaN()
	}
	return y
}

// tokens reads token means of the last hour, and of the last day for sources
// with few requests.
func (p *Prometheus) tokens(ctx context.Context, s *Signals) error {
	for _, over := range []time.Duration{day, hour} { // the hour wins
		sums, err := p.vector(ctx, p.tokensQuery("irb_tokens_total", over))
		if err != nil {
			return err
		}
		reports, err := p.vector(ctx, p.tokensQuery("irb_token_reports_total", over))
		if err != nil {
			return err
		}
		found := map[Pair]*Tokens{}
		addTokens(found, sums, addSum)
		addTokens(found, reports, addReports)
		for pair, t := range found {
			last := s.Tokens[pair]
			s.Tokens[pair] = Tokens{Prompt: enough(t.Prompt, last.Prompt), Output: enough(t.Output, last.Output), Cached: enough(t.Cached, last.Cached), CachedOf: enough(t.CachedOf, last.CachedOf)}
		}
	}
	return nil
}

func (p *Prometheus) keys(ctx context.Context, s *Signals, w keyWindow) error {
	requests, err := p.vector(ctx, p.keysQuery("irb_window_requests_total", w))
	if err != nil {
		return err
	}
	keys, err := p.vector(ctx, p.keysQuery("irb_window_keys_total", w))
	if err != nil {
		return err
	}
	s.requestsPerKey(byPair(requests), byPair(keys))
	return nil
}

func (p *Prometheus) rtts(ctx context.Context, s *Signals) error {
	found, err := p.vector(ctx, p.rttQuery())
	for _, x := range found {
		s.RTTMs[Way{x.labels["irb_cluster"], x.labels["engine"]}] = 1000 * x.value
	}
	return err
}

// health reads which replicas are up: from the server's own scrapes of the
// endpoints, else from the agents' connects.
func (p *Prometheus) health(ctx context.Context, s *Signals, fleet *model.Fleet) error {
	up := newReplicas(fleet)
	hosts, engines := hostsOf(fleet)
	scraped, err := p.vector(ctx, p.upQuery(hosts))
	if err != nil {
		return err
	}
	for _, x := range scraped {
		for _, engine := range engines[x.labels["instance"]] {
			up.scraped(engine, x.labels["instance"], x.value > 0)
		}
	}
	connects, err := p.vector(ctx, p.reachQuery())
	if err != nil {
		return err
	}
	for _, x := range connects {
		up.connected(x.labels["engine"], x.labels["endpoint"], x.value > 0)
	}
	up.into(s)
	return nil
}

// asked reads the health of engines that the operator's query tells of.
func (p *Prometheus) asked(ctx context.Context, s *Signals) error {
	if p.HealthQuery == "" {
		return nil
	}
	asked, err := p.vector(ctx, p.HealthQuery)
	if err != nil {
		return err
	}
	for _, x := range asked {
		switch engine := x.labels["engine"]; {
		case engine == "":
			return p.failed(p.HealthQuery, fmt.Errorf(`a series has no label "engine", want one of each engine`))
		case !(x.value >= 0 && x.value <= 1):
			return p.failed(p.HealthQuery, fmt.Errorf("engine %q has %v, want replicas up over configured, 0 to 1", engine, x.value))
		default:
			s.Health[engine] = Health{x.value, "--health-query"}
		}
	}
	return nil
}

// agents says which agents are missing and which are there twice.
func (p *Prometheus) agents(ctx context.Context, s *Signals) error {
	now, err := p.vector(ctx, p.agentsQuery(false))
	if err != nil {
		return err
	}
	lately, err := p.vector(ctx, p.agentsQuery(true))
	if err != nil {
		return err
	}
	twice, err := p.vector(ctx, p.twiceQuery())
	if err != nil {
		return err
	}
	count := map[string]float64{}
	for _, x := range now {
		count[x.labels["irb_cluster"]] = x.value
	}
	for _, x := range lately {
		cluster := x.labels["irb_cluster"]
		if missing := x.value - count[cluster]; missing > 0 {
			s.notef("%v of %v agents of cluster %q that were scraped in the last hour are not scraped now; if they still serve, their demand is missing", missing, x.value, cluster)
		}
	}
	for _, x := range twice {
		s.notef("agents of cluster %q are scraped more than once (%v series); each is counted once", x.labels["irb_cluster"], x.value)
	}
	return nil
}

// sample is one value with its labels.
type sample struct {
	labels map[string]string
	value  float64
}

func (x sample) pair() Pair { return Pair{x.labels["irb_cluster"], x.labels["class"]} }

func byPair(samples []sample) map[Pair]float64 {
	values := map[Pair]float64{}
	for _, x := range samples {
		values[x.pair()] = x.value
	}
	return values
}

// vector runs an instant query. Values that are no numbers are left out: they
// are unknown.
func (p *Prometheus) vector(ctx context.Context, query string) ([]sample, error) {
	value, warnings, _, err := p.api.Query(ctx, query, p.now)
	if err != nil {
		return nil, p.failed(query, err)
	}
	p.warn(warnings)
	vector, ok := value.(prom.Vector)
	if !ok {
		return nil, p.failed(query, fmt.Errorf("the answer is a %s, want a vector", value.Type()))
	}
	samples := make([]sample, 0, len(vector))
	for _, v := range vector {
		if f := float64(v.Value); !math.IsNaN(f) && !math.IsInf(f, 0) {
			labels := make(map[string]string, len(v.Metric))
			for name, value := range v.Metric {
				labels[string(name)] = string(value)
			}
			samples = append(samples, sample{labels, f})
		}
	}
	return samples, nil
}

func pairOf(m prom.Metric) Pair { return Pair{string(m["irb_cluster"]), string(m["class"])} }

// warn keeps what the server has to say, such as that its answer is partial.
func (p *Prometheus) warn(warnings v1.Warnings) {
	for _, w := range warnings {
		p.notes = append(p.notes, "the server warns: "+w)
	}
}

func (p *Prometheus) failed(query string, err error) error {
	return fmt.Errorf("%s: %w; the query was %s", p, err, query)
}
