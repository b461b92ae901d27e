package proxy

import (
	"encoding/json"
	"net/http"

	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
)

// Debug serves what routing does now, for people on the machine:
//
//	/debug/engines                        endpoints with their counts and marks, classes with their limits
//	/debug/pick?class=C&key=K[&identity=I]  where a key goes, and why not elsewhere
//
// The key is what a client would send as affinity header or prompt_cache_key.
func (p *Proxy) Debug() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/engines", p.debugEngines)
	mux.HandleFunc("GET /debug/pick", p.debugPick)
	return mux
}

type debugEndpoint struct {
	ID       string `json:"id"`
	InFlight int64  `json:"in_flight"`
	Down     bool   `json:"down"`
}

type debugEngine struct {
	Name      string          `json:"name"`
	Region    string          `json:"region"`
	State     string          `json:"state"` // serving, drain, hold
	Endpoints []debugEndpoint `json:"endpoints"`
}

func (p *Proxy) debugEngines(w http.ResponseWriter, _ *http.Request) {
	plan := p.plan.Load()
	if plan == nil {
		http.Error(w, "no weight file has been accepted yet", http.StatusServiceUnavailable)
		return
	}
	now := p.now()
	engines := []debugEngine{}
	for n, spec := range plan.table.Engines() {
		e := debugEngine{Name: spec.Name, Region: spec.Region, State: "serving"}
		switch plan.stay[n] {
		case 0:
			e.State = "hold"
		case drained:
			e.State = "drain"
		}
		for i, at := range plan.pools[n].endpoints {
			e.Endpoints = append(e.Endpoints, debugEndpoint{at.id, plan.guards.Endpoint(n, i).InFlight(), at.down(now)})
		}
		engines = append(engines, e)
	}
	writeJSON(w, map[string]any{
		"sequence": plan.table.Snapshot().Sequence, "agents": p.guard.Agents(), "engines": engines, "guards": p.guard.Views(now), "classes": p.debugClasses(plan),
	})
}

// debugClass is what holds for a class, be it of agent.toml or the snapshot.
type debugClass struct {
	guard.ClassView
	Attempts    int     `json:"retry_attempts"`
	TTFTMs      float64 `json:"ttft_timeout_ms"`
	IdleMs      float64 `json:"idle_timeout_ms"`
	TotalMs     float64 `json:"total_timeout_ms"`
	OfSnapshot  bool    `json:"overridden"` // the snapshot says something of it
	NotRoutable string  `json:"not_routable,omitempty"`
}

func (p *Proxy) debugClasses(plan *plan) []debugClass {
	views := map[string]guard.ClassView{}
	for _, v := range p.guard.ClassViews() {
		views[v.Class] = v
	}
	var list []debugClass
	for n, c := range plan.table.Classes() {
		l := plan.limits[n]
		d := debugClass{
			ClassView: views[c.Spec.Name], Attempts: l.attempts, TTFTMs: ms(l.ttft), IdleMs: ms(l.idleStream), TotalMs: ms(l.total),
			OfSnapshot: c.Spec.Guard != snapshot.Guard{},
		}
		if err := c.Routable(); err != nil {
			d.NotRoutable = err.Error()
		}
		list = append(list, d)
	}
	return list
}

// debugPick answers with the picking code that serves requests.
func (p *Proxy) debugPick(w http.ResponseWriter, r *http.Request) {
	plan := p.plan.Load()
	if plan == nil {
		http.Error(w, "no weight file has been accepted yet", http.StatusServiceUnavailable)
		return
	}
	q := r.URL.Query()
	class := plan.table.Class(q.Get("class"))
	if class == nil || q.Get("key") == "" {
		http.Error(w, "want /debug/pick?class=CLASS&key=KEY with a class of the snapshot", http.StatusBadRequest)
		return
	}
	key := pick.Key(class.Spec.Name, q.Get("identity"), pick.Material(q.Get("key")))
	explanation, err := class.Explain(pick.Request{Key: key, Stay: plan.guards.Class(class.Number).Stay()})
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	type order struct {
		Engine    string   `json:"engine"`
		Endpoints []string `json:"endpoints"`
	}
	var inside []order
	for _, choice := range explanation.Order {
		n, _ := plan.table.EngineNumber(choice.Engine)
		pool := &plan.pools[n]
		o := order{Engine: choice.Engine}
		walk := pool.walk.Walk(key)
		for i, ok := walk.Next(); ok; i, ok = walk.Next() {
			o.Endpoints = append(o.Endpoints, pool.endpoints[i].id)
		}
		inside = append(inside, o)
	}
	writeJSON(w, map[string]any{"sequence": plan.table.Snapshot().Sequence, "pick": explanation, "endpoints": inside})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(v) // a client that has left cannot be told so
}
