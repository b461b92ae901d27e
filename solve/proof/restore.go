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
	sources map[model.SourceKey]int
	errs    []error
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
	for s, source := range r.c.Sources {
		r.sources[model.SourceKey{Cluster: source.Cluster, Class: source.Class}] = s
	}
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
	demand := slices.IndexFunc(r.c.Fleet.Demand, func(d model.Demand) bool { return d.Cluster == key.Cluster && d.Class == key.Class })
	if demand < 0 {
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
		i := slices.IndexFunc(r.c.Groups, func(m model.Group) bool {
			source := r.c.Sources[m.Source]
			return m.Name == g.Name && source.Cluster == g.Cluster && source.Class == g.Class
		})
		if i < 0 {
			r.errorf("%q of %s/%s in the snapshot is not in the policy", g.Name, g.Cluster, g.Class)
			continue
		}
		r.sol.GroupPriceMs[i] = g.PriceMs
	}
	for _, limit := range s.Caps {
		i := slices.IndexFunc(r.c.Caps, func(m model.WorkCap) bool { return m.Name == limit.Name })
		if i < 0 {
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
		if i := slices.IndexFunc(r.c.Caps, func(m model.WorkCap) bool { return m.Name == name }); i >= 0 {
			out.Caps = append(out.Caps, i)
		}
	}
	for _, name := range cut.Groups {
		i := slices.IndexFunc(r.c.Groups, func(m model.Group) bool {
			source := r.c.Sources[m.Source]
			return source.Cluster+"/"+source.Class+" "+m.Name == name
		})
		if i >= 0 {
			out.Groups = append(out.Groups, i)
		}
	}
	return out
}
