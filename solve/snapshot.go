package solve

import (
	"fmt"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/layout"
	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// alternativesShown is how many engines that a source does not use are kept in
// the snapshot, each with the reason why it lost.
const alternativesShown = 3

// Head is what a snapshot says of itself beside the plan.
type Head struct {
	Now            time.Time
	ExpiresIn      time.Duration
	Author, Reason string
	// Previous is the snapshot in service, nil for the first; its digest is
	// that of its exact file.
	Previous       *snapshot.Snapshot
	PreviousDigest snapshot.Input
}

// Sequence returns max(previous + 1, unix milliseconds).
func (h Head) Sequence() int64 {
	sequence := h.Now.UnixMilli()
	if h.Previous != nil {
		sequence = max(sequence, h.Previous.Sequence+1)
	}
	return sequence
}

// Snapshot builds the weight file of a plan.
func (p *Plan) Snapshot(h Head, fallbacks []Contingency) (*snapshot.Snapshot, error) {
	s := &snapshot.Snapshot{
		Format: snapshot.Format, Fleet: p.Fleet.Policy.Fleet,
		Sequence: h.Sequence(), Created: h.Now.UTC().Truncate(time.Second), Expires: h.Now.Add(h.ExpiresIn).UTC().Truncate(time.Second),
		Author: h.Author, Reason: h.Reason,
	}
	for _, in := range p.Fleet.Inputs {
		s.Inputs = append(s.Inputs, snapshot.Input{Role: in.Role, File: in.File, SHA256: in.SHA256})
	}
	if h.Previous != nil {
		s.Inputs = append(s.Inputs, h.PreviousDigest)
	}
	s.Policy = p.snapshotPolicy()
	s.Classes = snapshotClasses(p.Fleet.Policy.Classes)
	s.Engines = p.snapshotEngines()
	p.addProof(s)
	if err := p.addSources(s, h.Previous, fallbacks); err != nil {
		return nil, err
	}
	s.Solver = p.solverFacts()
	s.Solver.Coverage = p.coverage(fallbacks)
	s.Solver.MovedShare = movedShare(s, h.Previous)
	return s, nil
}

func (p *Plan) snapshotPolicy() snapshot.Policy {
	policy := p.Fleet.Policy
	shed := "forbid"
	if policy.Shed {
		shed = "allow"
	}
	return snapshot.Policy{
		MaxUtilization: policy.MaxUtilization, OutputTokenWork: policy.OutputTokenWork,
		RoundTrips: policy.RoundTrips, Shed: shed, FailureDomain: policy.FailureDomain,
	}
}

func snapshotClasses(classes []model.Class) []snapshot.Class {
	out := make([]snapshot.Class, len(classes))
	for i, c := range classes {
		out[i] = snapshot.Class{
			Name: c.Name, Model: c.Model, Priority: c.Priority,
			Residency: c.Residency, Requires: c.Requires, MaxContextTokens: c.ContextTokens,
			Guard: snapshot.Guard(c.Guard),
			Match: snapshot.Match{
				Path: c.Match.Path, Methods: c.Match.Methods, Models: c.Match.Models,
				Identity: c.Match.Identity, Headers: c.Match.Headers,
			},
		}
	}
	return out
}

func (p *Plan) snapshotEngines() []snapshot.Engine {
	engines := make([]snapshot.Engine, len(p.Engines))
	for i, node := range p.Engines {
		in := p.Fleet.Engines[p.NodeEngine[i]]
		load, v := p.Reader.Load(i), p.Reader.Utilization(i)
		fitted := p.Profile(i)
		reference := p.Reader.EngineCost(model.Source{
			PromptTokens: fitted.PromptTokens, OutputTokens: fitted.OutputTokens, Work: node.ReferenceWork,
		}, i)
		e := snapshot.Engine{
			Name: in.Name, Region: in.Region, Domain: node.Domain,
			Endpoints: in.Endpoints, InternalAffinity: in.InternalAffinity, Models: in.Models,
			MaxContextTokens: in.MaxContextTokens, Capabilities: in.Capabilities, Labels: in.Labels,
			CapacityRPS: node.Capacity / node.ReferenceWork, LimitRPS: node.Limit / node.ReferenceWork,
			PlannedRPS: load.RPS, PlannedRefRPS: load.Work / node.ReferenceWork, Utilization: v,
			LatencyMs:    fitted.ReferenceMs(0) + reference.Delay,
			PriceMs:      reference.Delay + reference.Externality + reference.Kink + reference.Limit,
			LimitPriceMs: reference.Limit,
			Price:        max(0, p.Solution.EnginePrice[i]), // rounding may leave -1e-20
			Profile:      snapshotProfile(fitted),
		}
		if p.Solution.PrefillPrice != nil {
			e.PrefillPrice, e.OutputPrice = max(0, p.Solution.PrefillPrice[i]), max(0, p.Solution.OutputPrice[i])
		}
		engines[i] = e
	}
	return engines
}

func snapshotProfile(p profile.Profile) snapshot.Profile {
	out := snapshot.Profile{
		Name: p.Name, PromptTokens: p.PromptTokens, OutputTokens: p.OutputTokens,
		TTFTV: p.TTFT.V, TTFTMs: p.TTFT.Ms, TBOTV: p.TBOT.V, TBOTMs: p.TBOT.Ms,
		FitError: p.WorstRelError,
	}
	if p.TTFT.PS {
		out.Queueing = "ps"
	}
	return out
}

// addProof adds the prices of binding groups and caps, and the shed cuts.
func (p *Plan) addProof(s *snapshot.Snapshot) {
	for i, g := range p.Groups {
		if price := p.Solution.GroupPriceMs[i]; price != 0 {
			source := p.Sources[g.Source]
			s.Groups = append(s.Groups, snapshot.Group{Name: g.Name, Cluster: source.Cluster, Class: source.Class, PriceMs: price})
		}
	}
	for i, c := range p.Caps {
		if price := p.Solution.CapPrice[i]; price > 0 {
			s.Caps = append(s.Caps, snapshot.Cap{Name: c.Name, Price: price})
		}
	}
	for _, cut := range p.Solution.ShedCuts {
		s.Cuts = append(s.Cuts, p.snapshotCut(cut))
	}
}

func (p *Plan) snapshotCut(cut model.ShedCut) snapshot.Cut {
	out := snapshot.Cut{Priority: cut.Priority}
	for _, i := range cut.Sources {
		out.Sources = append(out.Sources, sourceName(p.Compiled, i))
	}
	for _, i := range cut.Engines {
		out.Engines = append(out.Engines, p.Engines[i].Name)
	}
	for _, i := range cut.Caps {
		out.Caps = append(out.Caps, p.Caps[i].Name)
	}
	for _, i := range cut.Groups {
		out.Groups = append(out.Groups, sourceName(p.Compiled, p.Groups[i].Source)+" "+p.Groups[i].Name)
	}
	return out
}

// solverFacts says what was solved and how well.
func (p *Plan) solverFacts() snapshot.Solver {
	facts := snapshot.Solver{
		Method: p.Solution.Method, Work: string(p.Work),
		Objective: p.Report.ObjectiveMsRPS, Bound: p.Report.BoundMsRPS, Gap: p.Report.Gap,
		ChurnCost: p.Report.ChurnMsRPS,
	}
	for s, source := range p.Sources {
		facts.OfferedRPS += source.DemandRPS
		facts.ServedRPS += p.Solution.ServedRPS[s]
	}
	if facts.ServedRPS > 0 {
		facts.LatencyMs = p.Report.LatencyMsRPS / facts.ServedRPS
	}
	facts.Notes = append(facts.Notes, p.Warnings...)
	return facts
}

// movedShare is the share of served traffic whose key range changed its engine
// since the previous snapshot, weighted by the traffic of now.
func movedShare(s, previous *snapshot.Snapshot) float64 {
	if previous == nil {
		return 0
	}
	before := make(map[model.SourceKey]*snapshot.Source, len(previous.Sources))
	for i := range previous.Sources {
		before[model.SourceKey{Cluster: previous.Sources[i].Cluster, Class: previous.Sources[i].Class}] = &previous.Sources[i]
	}
	var moved, all float64
	for i := range s.Sources {
		now := &s.Sources[i]
		was, ok := before[model.SourceKey{Cluster: now.Cluster, Class: now.Class}]
		if !ok {
			continue
		}
		all += now.ServedRPS
		moved += now.ServedRPS * float64(layout.Moved(layout.Of(was), layout.Of(now))) / snapshot.QuotaSum
	}
	if all == 0 {
		return 0
	}
	return moved / all
}

// sourceLatency returns the mean latency of a source by the model and by the
// profiles themselves, in ms over its served requests.
func (p *Plan) sourceLatency(s int) (modelMs, profileMs float64) {
	source, demand := p.Sources[s], p.SourceDemand[s]
	var served float64
	for _, f := range p.Reader.Flows(s) {
		e := int(p.Col[f.Pair])
		net := p.NetMs(demand, e)
		modelMs += f.RPS * (net + p.BaseMs(source, e) + p.Reader.EngineCost(source, e).Delay)
		profileMs += f.RPS * (net + p.Profile(e).LatencyMs(p.Reader.Utilization(e), source.PromptTokens, source.OutputTokens))
		served += f.RPS
	}
	if served == 0 {
		return 0, 0
	}
	return modelMs / served, profileMs / served
}

// warnModelApart warns where the model's latency and the profile's own differ
// by more than a fifth: one work number does not describe such a mix well.
func (p *Plan) warnModelApart() {
	const most = 0.20
	for s := range p.Sources {
		modelMs, profileMs := p.sourceLatency(s)
		if profileMs > 0 && (modelMs > profileMs*(1+most) || modelMs < profileMs*(1-most)) {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s: the model says %s ms, the profiles themselves %s ms: the mix of prompt and output is far from the reference request",
				sourceName(p.Compiled, s), figure.Ms(modelMs), figure.Ms(profileMs)))
		}
	}
}

// warnBeyondProfile warns where split work drives the prompts or the outputs of
// an engine beyond what its profile tells: processor sharing ends at max
// utilization, a table at its last point, and from there on the slope goes on.
func (p *Plan) warnBeyondProfile() {
	if p.Work != model.WorkSplit {
		return
	}
	prompts, outputs := make([]float64, len(p.Engines)), make([]float64, len(p.Engines))
	for s, source := range p.Sources {
		for _, f := range p.Reader.Flows(s) {
			e := p.Col[f.Pair]
			prompts[e] += f.RPS * source.PromptTokens
			outputs[e] += f.RPS * source.OutputTokens
		}
	}
	warn := func(e int, what string, load float64, sink *profile.Sink, table profile.Curve) {
		_, end := sink.ProcessorSharing()
		if n := len(table.V); n > 1 {
			end = sink.Capacity * table.V[n-1]
		}
		if end > 0 && load > end*(1+1e-6) {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s: %s run at %s of the rate that the profile's own mix has at utilization 1, and the profile tells up to %s; beyond, its slope is taken to go on",
				p.Engines[e].Name, what, figure.Percent(load/sink.Capacity), figure.Percent(end/sink.Capacity)))
		}
	}
	for e, node := range p.Engines {
		if node.Prefill != nil {
			if broken := p.BeyondLimits(e, prompts[e]/node.Prefill.Capacity, outputs[e]/node.Output.Capacity); broken != "" {
				p.Warnings = append(p.Warnings, fmt.Sprintf("%s: %s: the mix of what it serves is far from the reference request", node.Name, broken))
			}
			warn(e, "prompts", prompts[e], node.Prefill, p.Profile(e).TTFT)
			warn(e, "outputs", outputs[e], node.Output, p.Profile(e).TBOT)
		}
	}
}
