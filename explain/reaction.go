package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/model"
)

// Reaction is what the agents do when engines fail, before a new file. The keys
// of the lost engines walk on in their rank, then to the fallbacks; an engine
// takes no more than its capacity (agents prefer others where requests wait),
// and a fallback no more than it may absorb for the source, as long as another
// has room. What finds every engine full is refused by admission.
//
// It is what comes of it once the guards have settled. What a snapshot does not
// tell is left out: how many agents there are, bursts, queues at this moment.
type Reaction struct {
	MovedRPS  float64 `json:"moved_rps"`
	BeyondRPS float64 `json:"beyond_absorb_rps"` // of it, by fallbacks beyond what they may absorb, as nothing else had room
	// RefusedRPS finds every engine of its walk full; what the plan itself sheds
	// is in it. Which of a cluster's classes are refused goes by their priority,
	// lowest first.
	RefusedRPS  float64 `json:"refused_rps"`
	UnroutedRPS float64 `json:"unrouted_rps"` // no engine is left among weights and fallbacks
	// MeanLatencyMs is that of the served requests by the profiles at the new
	// utilizations; 0 where an engine is so full that the profile has none.
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
	d := r.newDiversion(lost)
	for i := range r.s.Sources {
		d.plan(&r.s.Sources[i])
	}
	d.divert()
	r.measure(d.out, d.flows, lost)
	return d.out
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
	for e, node := range r.p.Engines {
		if node.Limit <= 0 || slices.Contains(lost, node.Name) {
			continue
		}
		o := EngineOutcome{Engine: node.Name, PlannedRPS: loads[e].work / node.ReferenceWork, LimitRPS: node.Limit / node.ReferenceWork, Utilization: loads[e].work / node.Capacity}
		out.Engines = append(out.Engines, o)
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

// latencyCell is the mean latency, as far as the profiles have one.
func (x *Reaction) latencyCell() report.Cell {
	if x.MeanLatencyMs > 0 {
		return report.Ms(x.MeanLatencyMs)
	}
	return report.Word("queue grows")
}

// fullestCell names the engine that carries most of its limit.
func (x *Reaction) fullestCell() report.Cell {
	if f := x.fullest(); f.Engine != "" {
		return report.Word(f.Engine + " " + figure.Percent(f.ofLimit()))
	}
	return report.Word("")
}

// overload says which engines the reaction fills beyond their limits, and what
// is not served.
func (x *Reaction) overload() string {
	var list []string
	for _, e := range x.Engines {
		if e.ofLimit() >= 1.0005 {
			list = append(list, fmt.Sprintf("%s to %s of its limit", e.Engine, figure.Percent(e.ofLimit())))
		}
	}
	var parts []string
	if len(list) > 4 {
		list = append(list[:4], fmt.Sprintf("%d more", len(list)-4))
	}
	if len(list) > 0 {
		parts = append(parts, "agents fill "+strings.Join(list, ", "))
	}
	// What one probe stands for is below what can be told.
	if x.RefusedRPS > x.MovedRPS/probes {
		parts = append(parts, fmt.Sprintf("they refuse %s req/s, as every engine that may serve them is full", figure.Rate(x.RefusedRPS)))
	}
	if x.UnroutedRPS > 0 {
		parts = append(parts, fmt.Sprintf("%s req/s have no engine left", figure.Rate(x.UnroutedRPS)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "until a new plan " + strings.Join(parts, "; ")
}
