package proof

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/model"
)

// restorer turns a snapshot back into the Solution that it was made from.
type restorer struct {
	c       *model.Compiled
	sol     *model.Solution
	nodes   map[string]int
	demand  map[model.SourceKey]int // row of Fleet.Demand
	sources map[model.SourceKey]int
	groups  map[groupKey]int
	caps    map[string]int
	errs    []error
}

// groupKey names a group of a source.
type groupKey struct {
	source model.SourceKey
	name   string
}

func restore(c *model.Compiled, s *snapshot.Snapshot) (*model.Solution, error) {
	r := restorer{c: c, sol: &model.Solution{
		Method:        s.Solver.Method,
		ServedRPS:     make([]float64, len(c.Sources)),
		SourcePriceMs: make([]float64, len(c.Sources)),
		EnginePrice:   make([]float64, len(c.Engines)),
		GroupPriceMs:  make([]float64, len(c.Groups)),
		CapPrice:      make([]float64, len(c.Caps)),
	}}
	r.index()
	r.engines(s.Engines)
	seen := make([]bool, len(c.Sources))
	for i := range s.Sources {
		r.source(&s.Sources[i], seen)
	}
	for i, ok := range seen {
		if !ok {
			r.errorf("source %s/%s has demand and is not in the snapshot", c.Sources[i].Cluster, c.Sources[i].Class)
		}
	}
	r.bounds(s)
	slices.SortFunc(r.sol.Flows, func(a, b model.Flow) int { return cmp.Compare(a.Pair, b.Pair) })
	return r.sol, errors.Join(r.errs...)
}

func (r *restorer) errorf(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

func (r *restorer) index() {
	r.nodes = make(map[string]int, len(r.c.Engines))
	for e, node := range r.c.Engines {
		r.nodes[node.Name] = e
	}
	r.sources = make(map[model.SourceKey]int, len(r.c.Sources))
	for s := range r.c.Sources {
		r.sources[r.key(s)] = s
	}
	r.demand = make(map[model.SourceKey]int, len(r.c.Fleet.Demand))
	for i, d := range r.c.Fleet.Demand {
		r.demand[model.SourceKey{Cluster: d.Cluster, Class: d.Class}] = i
	}
	r.groups = make(map[groupKey]int, len(r.c.Groups))
	for i, g := range r.c.Groups {
		r.groups[groupKey{r.key(g.Source), g.Name}] = i
	}
	r.caps = make(map[string]int, len(r.c.Caps))
	for i, limit := range r.c.Caps {
		r.caps[limit.Name] = i
	}
}

func (r *restorer) key(s int) model.SourceKey {
	return model.SourceKey{Cluster: r.c.Sources[s].Cluster, Class: r.c.Sources[s].Class}
}

func (r *restorer) engines(engines []snapshot.Engine) {
	if r.c.Work == model.WorkSplit {
		r.sol.PrefillPrice = make([]float64, len(r.c.Engines))
		r.sol.OutputPrice = make([]float64, len(r.c.Engines))
	}
	for _, e := range engines {
		node, ok := r.nodes[e.Name]
		if !ok {
			r.errorf("engine %q of the snapshot is not in the inputs", e.Name)
			continue
		}
		r.sol.EnginePrice[node] = e.Price
		if r.sol.PrefillPrice != nil {
			r.sol.PrefillPrice[node], r.sol.OutputPrice[node] = e.PrefillPrice, e.OutputPrice
		}
	}
}

// source restores the flows of a source; every weight and every fallback must
// be on an engine that may serve it.
func (r *restorer) source(source *snapshot.Source, seen []bool) {
	key := model.SourceKey{Cluster: source.Cluster, Class: source.Class}
	demand, ok := r.demand[key]
	if !ok {
		r.errorf("source %s/%s of the snapshot is not in the inputs", key.Cluster, key.Class)
		return
	}
	s, busy := r.sources[key]
	if busy {
		seen[s] = true
		r.sol.ServedRPS[s], r.sol.SourcePriceMs[s] = source.ServedRPS, source.PriceMs
	}
	for _, w := range source.Weights {
		if !r.eligible(demand, key, w.Engine, "weight") || !busy || w.RPS == 0 {
			continue
		}
		k, _ := slices.BinarySearch(r.c.Col[r.c.Row[s]:r.c.Row[s+1]], int32(r.nodes[w.Engine]))
		r.sol.Flows = append(r.sol.Flows, model.Flow{Pair: r.c.Row[s] + k, RPS: w.RPS})
	}
	for _, f := range source.Fallbacks {
		r.eligible(demand, key, f.Engine, "fallback")
	}
}

func (r *restorer) eligible(demand int, key model.SourceKey, engine, what string) bool {
	node, ok := r.nodes[engine]
	if !ok {
		return false // said already
	}
	if why := r.c.Excluded(demand, node); why != "" {
		r.errorf("%s/%s has a %s on %q, which may not serve it: %s", key.Cluster, key.Class, what, engine, why)
		return false
	}
	return true
}

// bounds restores the prices of groups and caps and the shed cuts.
func (r *restorer) bounds(s *snapshot.Snapshot) {
	for _, g := range s.Groups {
		i, ok := r.groups[groupKey{model.SourceKey{Cluster: g.Cluster, Class: g.Class}, g.Name}]
		if !ok {
			r.errorf("%q of %s/%s in the snapshot is not in the policy", g.Name, g.Cluster, g.Class)
			continue
		}
		r.sol.GroupPriceMs[i] = g.PriceMs
	}
	for _, limit := range s.Caps {
		i, ok := r.caps[limit.Name]
		if !ok {
			r.errorf("%q of the snapshot is not in the policy", limit.Name)
			continue
		}
		r.sol.CapPrice[i] = limit.Price
	}
	for _, cut := range s.Cuts {
		r.sol.ShedCuts = append(r.sol.ShedCuts, r.cut(cut))
	}
}

func (r *restorer) cut(cut snapshot.Cut) model.ShedCut {
	out := model.ShedCut{Priority: cut.Priority}
	for _, name := range cut.Sources {
		cluster, class, _ := strings.Cut(name, "/")
		if s, ok := r.sources[model.SourceKey{Cluster: cluster, Class: class}]; ok {
			out.Sources = append(out.Sources, s)
		} else {
			r.errorf("source %q of the shed cut has no demand", name)
		}
	}
	for _, name := range cut.Engines {
		if e, ok := r.nodes[name]; ok {
			out.Engines = append(out.Engines, e)
		}
	}
	for _, name := range cut.Caps {
		if i, ok := r.caps[name]; ok {
			out.Caps = append(out.Caps, i)
		}
	}
	if len(cut.Groups) == 0 {
		return out
	}
	named := make(map[string]bool, len(cut.Groups))
	for _, name := range cut.Groups {
		named[name] = true
	}
	for i, g := range r.c.Groups {
		source := r.c.Sources[g.Source]
		if named[source.Cluster+"/"+source.Class+" "+g.Name] {
			out.Groups = append(out.Groups, i)
		}
	}
	return out
}
