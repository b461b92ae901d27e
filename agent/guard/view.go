package guard

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/irb-project/irb/agent/signal"
)

// View is what the guards make of one endpoint, and why.
type View struct {
	Engine      string             `json:"engine"`
	Endpoint    string             `json:"endpoint"`
	InFlight    int64              `json:"in_flight"`
	Limit       int64              `json:"limit,omitempty"` // 0: none
	Running     *float64           `json:"running,omitempty"`
	Waiting     *float64           `json:"waiting,omitempty"`
	KVUsage     *float64           `json:"kv_usage,omitempty"`
	Utilization *float64           `json:"utilization,omitempty"` // estimated
	Saturated   bool               `json:"saturated,omitempty"`
	EjectedFor  float64            `json:"ejected_for_s,omitempty"`
	Ejections   int64              `json:"ejections,omitempty"`
	Weights     map[string]float64 `json:"weights"`                 // by class: part of its keys
	Ratio       *float64           `json:"latency_ratio,omitempty"` // observed / profile's
	Errors      *float64           `json:"fault_share,omitempty"`
	Why         string             `json:"why"`
}

// Views returns all endpoints of the present plan.
func (g *Guard) Views(now time.Time) []View {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.plan == nil {
		return nil
	}
	s := g.settings.Load()
	var views []View
	at := map[*Endpoint]int{}
	for _, list := range g.plan.endpoints {
		for _, e := range list {
			at[e] = len(views)
			views = append(views, e.view(now, s))
		}
	}
	for _, p := range g.plan.peers {
		for i := range p.members {
			m := &p.members[i]
			v := &views[at[m.endpoint]]
			for _, c := range p.classes {
				v.Weights[c.name] = m.weight
			}
			v.Ratio, v.Errors = known(m.judged.ratio), known(m.judged.errors)
			switch {
			case p.panic:
				v.Why = "as planned, because too much else is gone"
			case m.weight < 1 && m.why != "":
				v.Why = string(m.state) + ": " + m.why
			case m.weight < 1:
				v.Why = string(m.state)
			}
		}
	}
	return views
}

func (e *Endpoint) view(now time.Time, s *Settings) View {
	v := View{
		Engine: e.engine, Endpoint: e.id, InFlight: e.inFlight.Load(), Limit: e.limit.Load(),
		Running:     known(e.said[signal.Running].get(now, s.SignalTTL)),
		Waiting:     known(e.said[signal.Waiting].get(now, s.SignalTTL)),
		KVUsage:     known(e.said[signal.KVUsage].get(now, s.SignalTTL)),
		Utilization: known(e.utilization), Saturated: e.saturated,
		Ejections: e.breaker.ejections.Load(), Weights: map[string]float64{}, Why: "as planned",
	}
	if e.breaker.state(now) == open {
		v.EjectedFor = time.Duration(e.breaker.openUntil.Load() - now.UnixNano()).Seconds()
	}
	return v
}

// known returns nil for what is not: JSON has no NaN.
func known(x float64) *float64 {
	if !signal.Known(x) {
		return nil
	}
	return &x
}

// collector turns views into metrics when it is scraped.
type collector struct {
	guard *Guard
	now   func() time.Time
}

// Collector returns the metrics of the guards.
func (g *Guard) Collector(now func() time.Time) prometheus.Collector { return &collector{g, now} }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descWeight      = desc("irb_endpoint_weight", "Part of its planned keys that an endpoint gets, 0 to 1.", "class", "engine", "endpoint")
	descInFlight    = desc("irb_endpoint_in_flight", "This agent's requests at an endpoint.", "engine", "endpoint")
	descUtilization = desc("irb_endpoint_utilization", "Estimated utilization of an endpoint; absent while unknown.", "engine", "endpoint")
	descRatio       = desc("irb_endpoint_latency_ratio", "Observed latency / the profile's; absent while unknown.", "engine", "endpoint")
	descAdmitted    = desc("irb_class_admitted_share", "Share of new requests of a class that are let in.", "class")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descWeight, descInFlight, descUtilization, descRatio, descAdmitted} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, x float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, labels...)
	}
	for _, v := range c.guard.Views(c.now()) {
		gauge(descInFlight, float64(v.InFlight), v.Engine, v.Endpoint)
		for class, w := range v.Weights {
			gauge(descWeight, w, class, v.Engine, v.Endpoint)
		}
		if v.Utilization != nil {
			gauge(descUtilization, *v.Utilization, v.Engine, v.Endpoint)
		}
		if v.Ratio != nil {
			gauge(descRatio, *v.Ratio, v.Engine, v.Endpoint)
		}
	}
	for _, v := range c.guard.ClassViews() {
		gauge(descAdmitted, v.Admitted, v.Class)
	}
}

// ClassView is what the guards make of one class.
type ClassView struct {
	Class       string  `json:"class"`
	Admitted    float64 `json:"admitted_share"` // of new requests
	RetryRatio  float64 `json:"retry_budget_ratio"`
	RetryFloor  float64 `json:"retry_budget_floor"` // retries/s, of all agents
	RetryTokens float64 `json:"retry_tokens"`       // retries that could be sent now
	OwnBudget   bool    `json:"own_budget"`         // else shared with classes of the same engines
}

// ClassViews returns all classes of the present plan.
func (g *Guard) ClassViews() []ClassView {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.plan == nil {
		return nil
	}
	var views []ClassView
	for _, c := range g.plan.classes {
		v := ClassView{Class: c.name, Admitted: float64(c.gates[fresh].part.Load()) / (1 << 64)}
		if b := c.budget; b != nil {
			v.RetryRatio, v.RetryFloor = b.limits(g.settings.Load())
			v.RetryTokens, v.OwnBudget = float64(b.tokens.Load())/tokenUnit, b.own != nil
		}
		views = append(views, v)
	}
	return views
}
