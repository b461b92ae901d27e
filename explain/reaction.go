package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/model"
)

// Reaction is what the agents do when engines fail, before a new file: the keys
// of the lost engines walk on in their rank, then to the fallbacks.
type Reaction struct {
	MovedRPS    float64 `json:"moved_rps"`
	UnroutedRPS float64 `json:"unrouted_rps"` // no engine is left among weights and fallbacks
	// MeanLatencyMs is that of the routed requests by the profiles at the new
	// utilizations; 0 where an engine would be above utilization 1, as its queue
	// then grows for as long as it lasts.
	MeanLatencyMs float64         `json:"mean_latency_ms,omitempty"`
	Engines       []EngineOutcome `json:"engines"` // those left, in order of name
}

// probes is how many keys of a lost share are walked: enough that the parts are
// right to a percent of the share.
const probes = 1 << 12

// reactor replays the agents' own picking code over one snapshot.
type reactor struct {
	s      *snapshot.Snapshot
	p      *solve.Plan
	tables map[string]*pick.Table // by cluster
	source map[model.SourceKey]int
	engine map[string]int
	pair   map[[2]int]int // source, engine -> pair
}

func newReactor(s *snapshot.Snapshot, p *solve.Plan) (*reactor, error) {
	r := &reactor{
		s: s, p: p, tables: make(map[string]*pick.Table),
		source: make(map[model.SourceKey]int), engine: make(map[string]int), pair: make(map[[2]int]int),
	}
	for i, source := range p.Sources {
		r.source[model.SourceKey{Cluster: source.Cluster, Class: source.Class}] = i
		for k := p.Row[i]; k < p.Row[i+1]; k++ {
			r.pair[[2]int{i, int(p.Col[k])}] = k
		}
	}
	for e, node := range p.Engines {
		r.engine[node.Name] = e
	}
	for i := range s.Sources {
		cluster := s.Sources[i].Cluster
		if r.tables[cluster] != nil {
			continue
		}
		table, err := pick.NewTable(s, cluster)
		if err != nil {
			return nil, err
		}
		r.tables[cluster] = table
	}
	return r, nil
}

// lose replays the loss of engines.
func (r *reactor) lose(lost []string) *Reaction {
	out := &Reaction{}
	flows := make(map[int]float64) // by pair
	for i := range r.s.Sources {
		source := &r.s.Sources[i]
		node, ok := r.source[model.SourceKey{Cluster: source.Cluster, Class: source.Class}]
		if !ok {
			continue // idle
		}
		add := func(engine string, rps float64) {
			e, known := r.engine[engine]
			if k, eligible := r.pair[[2]int{node, e}]; known && eligible {
				flows[k] += rps
			}
		}
		var moved float64
		for _, w := range source.Weights {
			if slices.Contains(lost, w.Engine) {
				moved += w.RPS
			} else {
				add(w.Engine, w.RPS)
			}
		}
		if moved == 0 {
			continue
		}
		out.MovedRPS += moved
		parts, none := r.walk(source, lost)
		for engine, part := range parts {
			add(engine, moved*part)
		}
		out.UnroutedRPS += moved * none
	}
	r.measure(out, flows, lost)
	return out
}

// walk sends keys of the lost ranges of a source through the agents' walk and
// returns which part of them each engine gets, and which part none.
func (r *reactor) walk(source *snapshot.Source, lost []string) (parts map[string]float64, none float64) {
	table := r.tables[source.Cluster]
	class := table.Class(source.Class)
	stay := make([]uint64, len(r.s.Engines))
	for i := range stay {
		stay[i] = pick.StayAll
		if slices.Contains(lost, r.s.Engines[i].Name) {
			stay[i] = 0
		}
	}
	keys := lostKeys(source, lost)
	parts = make(map[string]float64)
	for _, key := range keys {
		w := class.Walk(pick.Request{Key: key, Stay: stay})
		if step, ok := w.Next(); ok {
			parts[r.s.Engines[step.Engine].Name] += 1 / float64(len(keys))
		} else {
			none += 1 / float64(len(keys))
		}
	}
	return parts, none
}

// lostKeys returns keys spread evenly over the ranges of the lost engines.
func lostKeys(source *snapshot.Source, lost []string) []uint64 {
	type span struct{ from, size uint64 }
	var spans []span
	var total uint64
	for i, from := range source.LayoutFrom {
		if !slices.Contains(lost, source.LayoutTo[i]) {
			continue
		}
		end := uint64(snapshot.QuotaSum)
		if i+1 < len(source.LayoutFrom) {
			end = uint64(source.LayoutFrom[i+1])
		}
		spans = append(spans, span{uint64(from), end - uint64(from)})
		total += end - uint64(from)
	}
	n := min(probes, total)
	keys := make([]uint64, 0, n)
	spread := pick.NewSpread(0)
	var before uint64 // measure of the spans before the present one
	for i := uint64(0); i < n; i++ {
		at := i * total / n
		for at-before >= spans[0].size {
			before += spans[0].size
			spans = spans[1:]
		}
		// The lower half of a key does not place it, but ranks what comes next.
		keys = append(keys, (spans[0].from+at-before)<<32|spread.Next()>>32)
	}
	return keys
}

// measure fills in loads and latency for flows by pair.
func (r *reactor) measure(out *Reaction, flows map[int]float64, lost []string) {
	type load struct{ work, prompt, output float64 }
	loads := make([]load, len(r.p.Engines))
	sourceOf := make(map[int]int, len(flows))
	pairs := make([]int, 0, len(flows))
	for s := range r.p.Sources {
		for k := r.p.Row[s]; k < r.p.Row[s+1]; k++ {
			rps, ok := flows[k]
			if !ok {
				continue
			}
			source, l := r.p.Sources[s], &loads[r.p.Col[k]]
			pairs, sourceOf[k] = append(pairs, k), s
			l.work += rps * source.Work
			l.prompt += rps * source.PromptTokens
			l.output += rps * source.OutputTokens
		}
	}
	overloaded := false
	for e, node := range r.p.Engines {
		if node.Limit <= 0 || slices.Contains(lost, node.Name) {
			continue
		}
		o := EngineOutcome{Engine: node.Name, PlannedRPS: loads[e].work / node.ReferenceWork, LimitRPS: node.Limit / node.ReferenceWork, Utilization: loads[e].work / node.Capacity}
		overloaded = overloaded || o.Utilization > 1+1e-9
		out.Engines = append(out.Engines, o)
	}
	if overloaded {
		return
	}
	var total, routed float64
	for _, k := range pairs {
		source, e := r.p.Sources[sourceOf[k]], r.p.Col[k]
		node, l := &r.p.Engines[e], loads[e]
		var delay float64
		if r.p.Work == model.WorkSplit {
			delay = source.PromptTokens*node.Prefill.Delay(l.prompt) + source.OutputTokens*node.Output.Delay(l.output)
		} else {
			delay = source.Work * node.Delay.Delay(l.work)
		}
		total += flows[k] * (r.p.CostMs[k] + delay)
		routed += flows[k]
	}
	if routed > 0 && !math.IsInf(total, 0) {
		out.MeanLatencyMs = total / routed
	}
}

// fullest returns the engine that carries most of its limit.
func (x *Reaction) fullest() EngineOutcome {
	if len(x.Engines) == 0 {
		return EngineOutcome{}
	}
	return slices.MaxFunc(x.Engines, func(a, b EngineOutcome) int { return cmp.Compare(a.ofLimit(), b.ofLimit()) })
}

func (x *Reaction) cells() (latency, fullest, unrouted string) {
	latency = "queue grows"
	if x.MeanLatencyMs > 0 {
		latency = figure.Ms(x.MeanLatencyMs)
	}
	if f := x.fullest(); f.Engine != "" {
		fullest = f.Engine + " " + figure.Percent(f.ofLimit())
	}
	if x.UnroutedRPS > 0 {
		unrouted = figure.Rate(x.UnroutedRPS)
	}
	return latency, fullest, unrouted
}

// overload says which engines the reaction fills beyond their limits.
func (x *Reaction) overload() string {
	var list []string
	for _, e := range x.Engines {
		if e.ofLimit() >= 1.0005 {
			list = append(list, fmt.Sprintf("%s %s of its limit", e.Engine, figure.Percent(e.ofLimit())))
		}
	}
	var parts []string
	if len(list) > 4 {
		list = append(list[:4], fmt.Sprintf("%d more", len(list)-4))
	}
	if len(list) > 0 {
		parts = append(parts, "until a new plan, fallbacks would fill "+strings.Join(list, ", "))
	}
	if x.UnroutedRPS > 0 {
		parts = append(parts, fmt.Sprintf("%s req/s would have no engine left", figure.Rate(x.UnroutedRPS)))
	}
	return strings.Join(parts, "; ")
}
