package proxy

import (
	"sync/atomic"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/guard"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pick"
)

// plan is all that a request is routed by: one table, one config, the endpoints
// that belong to them. A request loads it once; it never changes.
type plan struct {
	config *config.Config
	table  *pick.Table
	pools  []pool   // by engine number
	stay   []uint64 // by engine number, see pick.Request; what the operator left
	guards *guard.Plan
	limits []limits // by class number
	routes []atomic.Pointer[metrics.Route]
	demand []*metrics.ClassDemand // by class number

	affinityHeader       string   // canonical
	trustedHeaders       []string // canonical
	forwardAuthorization bool
	eventOnFailure       bool
}

// drained is the Stay of an engine that drains: it loses all its keys, but is
// not out of service for requests whose state it holds.
const drained = 1

// route returns the metrics of a class on an engine.
func (p *plan) route(set *metrics.Set, class *pick.Class, engine int) *metrics.Route {
	slot := &p.routes[class.Number*len(p.pools)+engine]
	if r := slot.Load(); r != nil {
		return r
	}
	r := set.Route(class.Spec.Name, p.engineName(engine))
	slot.Store(r)
	return r
}

func (p *plan) engineName(n int) string { return p.table.Engines()[n].Name }
