package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/irb-project/irb/solve/profile"
)

// MixTolerance is how far the mixes of prompt and output may differ, relative,
// for work = "auto" to take one work number as exact enough.
const MixTolerance = 0.05

// SourceKey names a source.
type SourceKey struct{ Cluster, Class string }

// Previous is what a previous snapshot did: per source, the fraction of its
// requests that each engine served.
type Previous map[SourceKey]map[string]float64

// Compiled is a Problem with the way back to the fleet that it was made from.
type Compiled struct {
	*Problem
	Fleet    *Fleet
	Profiles map[string]profile.Profile
	// SourceDemand is the row of Fleet.Demand of each source.
	SourceDemand []int
	// Idle are the rows of Fleet.Demand without demand, in order of name.
	Idle []int
	// NodeEngine is the row of Fleet.Engines of each engine node.
	NodeEngine []int
	Warnings   []string

	classOf map[string]*Class
	rows    []int // latency row of each row of Fleet.Demand, -1: none
	columns []int // latency column of each engine node, -1: none
	forbids []Rule
	shut    []*Cap            // per engine node: a cap of 0, nil: none
	fits    map[string][]bool // class -> per engine node: model, capabilities, residency fit
}

// CompileOptions are the choices of one solve that are no part of the fleet.
type CompileOptions struct {
	Previous Previous
	// Work overrides the policy's; WorkAuto keeps it.
	Work WorkKind
	// SplitPairsMax is the number of eligible pairs above which work = "auto"
	// takes single work; 0: no limit.
	SplitPairsMax int
}

// Compile turns a fleet into the convex program that minimises its latency.
func Compile(f *Fleet, opts CompileOptions) (*Compiled, error) {
	c := &Compiled{Fleet: f, Problem: &Problem{Shed: f.Policy.Shed}}
	if err := c.fitProfiles(); err != nil {
		return nil, err
	}
	c.indexFleet()
	if err := c.addEngines(); err != nil {
		return nil, err
	}
	c.addSources()
	c.addPairs()
	c.chooseWork(opts)
	if err := c.addSinks(); err != nil {
		return nil, err
	}
	if err := c.addBounds(); err != nil {
		return nil, err
	}
	c.addStay(opts.Previous)
	return c, nil
}

func (c *Compiled) fitProfiles() error {
	c.Profiles = make(map[string]profile.Profile, len(c.Fleet.Profiles))
	var errs []error
	for _, spec := range c.Fleet.Profiles {
		p, err := profile.Fit(spec)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if p.WorstRelError > profile.WarnFitError {
			c.warnf("profile %q: the convex fit is off by up to %.1f %% of a measured value", p.Name, 100*p.WorstRelError)
		}
		c.Profiles[p.Name] = p
	}
	return errors.Join(errs...)
}

func (c *Compiled) warnf(format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

func (c *Compiled) indexFleet() {
	f := c.Fleet
	c.classOf = make(map[string]*Class, len(f.Policy.Classes))
	c.fits = make(map[string][]bool, len(f.Policy.Classes))
	for i := range f.Policy.Classes {
		c.classOf[f.Policy.Classes[i].Name] = &f.Policy.Classes[i]
	}
	for _, r := range f.Policy.Rules {
		if r.forbids() {
			c.forbids = append(c.forbids, r)
		}
	}
	byName := make(map[string]int, len(f.Latency.From))
	for i, name := range f.Latency.From {
		byName[name] = i
	}
	c.rows = make([]int, len(f.Demand))
	for i, d := range f.Demand {
		c.rows[i] = -1
		if row, ok := byName[d.Cluster]; ok {
			c.rows[i] = row
		}
	}
}

// maxUtilization returns the utilization up to which an engine is planned:
// its own or the policy's, lowered to where the latency limits still hold.
func (c *Compiled) maxUtilization(e Engine, p profile.Profile) float64 {
	limit := e.MaxUtilization
	if limit == 0 {
		limit = c.Fleet.Policy.MaxUtilization
	}
	for _, l := range c.latencyLimits(e, p) {
		limit = min(limit, l.curve.MaxUtilization(l.ms))
	}
	return limit
}

// latencyLimit is a limit on a latency of the reference request.
type latencyLimit struct {
	name  string // as in the policy
	curve profile.Curve
	ms    float64
}

// latencyLimits returns the latency limits of an engine, its own or the policy's.
func (c *Compiled) latencyLimits(e Engine, p profile.Profile) []latencyLimit {
	limits := []latencyLimit{
		{"ttft_limit_ms", p.TTFT, firstNonZero(e.TTFTLimitMs, c.Fleet.Policy.TTFTLimitMs)},
		{"tbot_limit_ms", p.TBOT, firstNonZero(e.TBOTLimitMs, c.Fleet.Policy.TBOTLimitMs)},
	}
	return slices.DeleteFunc(limits, func(l latencyLimit) bool { return l.ms == 0 })
}

// brokenLimits says which latency limits an engine breaks under any load:
// "ttft_limit_ms 10: its profile "h100" starts at 80 ms".
func (c *Compiled) brokenLimits(e Engine, p profile.Profile) string {
	var broken []string
	for _, l := range c.latencyLimits(e, p) {
		if l.curve.MaxUtilization(l.ms) <= 0 {
			broken = append(broken, fmt.Sprintf("%s %g: its profile %q starts at %g ms", l.name, l.ms, p.Name, l.curve.At(0)))
		}
	}
	return strings.Join(broken, ", and ")
}

// BeyondLimits says by how much an engine of split work breaks its latency
// limits, "" if it keeps them: its prompts and its outputs each run at a
// utilization of their own, while the limits lower only their joint one.
func (c *Compiled) BeyondLimits(node int, prompts, outputs float64) string {
	e := c.Fleet.Engines[c.NodeEngine[node]]
	var broken []string
	for _, l := range c.latencyLimits(e, c.Profile(node)) {
		v := prompts
		if l.name == "tbot_limit_ms" {
			v = outputs
		}
		if l.curve.At(v) > l.ms*(1+1e-6) {
			broken = append(broken, fmt.Sprintf("%s %g does not hold at utilization %.3g of its own", l.name, l.ms, v))
		}
	}
	return strings.Join(broken, ", ")
}

func firstNonZero(a, b float64) float64 {
	if a != 0 {
		return a
	}
	return b
}

func (c *Compiled) addEngines() error {
	f := c.Fleet
	c.NodeEngine = sortedIndex(len(f.Engines), func(i, j int) int {
		return strings.Compare(f.Engines[i].Name, f.Engines[j].Name)
	})
	columns := make(map[string]int, len(f.Latency.To))
	for i, name := range f.Latency.To {
		columns[name] = i
	}
	for _, i := range c.NodeEngine {
		e := f.Engines[i]
		p := c.Profiles[e.Profile]
		work := p.PromptTokens + f.Policy.OutputTokenWork*p.OutputTokens
		capacity := e.CapacityRPS * work * e.Health
		limit := capacity * c.maxUtilization(e, p)
		if capacity > 0 && limit <= 0 {
			return fmt.Errorf("engine %q: no utilization above 0 keeps %s", e.Name, c.brokenLimits(e, p))
		}
		c.Engines = append(c.Engines, EngineNode{
			Name: e.Name, Region: e.Region, Domain: e.Label(f.Policy.FailureDomain),
			ReferenceWork: work, Capacity: capacity, Limit: limit,
		})
		column, ok := columns[e.Name]
		if !ok {
			if column, ok = columns[e.Region]; !ok {
				column = -1
			}
		}
		c.columns = append(c.columns, column)
		c.shut = append(c.shut, c.capOfNothing(&c.Engines[len(c.Engines)-1]))
	}
	return nil
}

func (c *Compiled) addSources() {
	f := c.Fleet
	order := sortedIndex(len(f.Demand), func(i, j int) int {
		a, b := f.Demand[i], f.Demand[j]
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Class, b.Class))
	})
	for _, i := range order {
		if f.Demand[i].RPS == 0 {
			c.Idle = append(c.Idle, i)
			continue
		}
		c.SourceDemand = append(c.SourceDemand, i)
		c.Sources = append(c.Sources, c.SourceOf(i))
	}
}

// SourceOf returns the source that row i of Fleet.Demand makes.
func (c *Compiled) SourceOf(i int) Source {
	d := c.Fleet.Demand[i]
	q := (1 - d.CachedFraction) * d.PromptTokens
	return Source{
		Cluster: d.Cluster, Class: d.Class, Priority: c.classOf[d.Class].Priority,
		DemandRPS: d.RPS, PromptTokens: q, OutputTokens: d.OutputTokens,
		Work: q + c.Fleet.Policy.OutputTokenWork*d.OutputTokens,
	}
}

// Class returns the class of a row of Fleet.Demand.
func (c *Compiled) Class(demand int) *Class { return c.classOf[c.Fleet.Demand[demand].Class] }

func (c *Compiled) addPairs() {
	c.Row = append(c.Row, 0)
	for s, demand := range c.SourceDemand {
		for _, e := range c.EligibleEngines(demand) {
			c.Col = append(c.Col, e)
			c.CostMs = append(c.CostMs, c.NetMs(demand, int(e))+c.BaseMs(c.Sources[s], int(e)))
		}
		c.Row = append(c.Row, len(c.Col))
	}
}

// RTTMs returns the round trip in ms from the cluster of a row of Fleet.Demand
// to an engine node, NaN where it is not reachable.
func (c *Compiled) RTTMs(demand, node int) float64 {
	row, column := c.rows[demand], c.columns[node]
	if row < 0 || column < 0 {
		return math.NaN()
	}
	return float64(c.Fleet.Latency.RTTMs[row*len(c.Fleet.Latency.To)+column])
}

// NetMs returns the network latency of a request in ms.
func (c *Compiled) NetMs(demand, node int) float64 {
	return c.RTTMs(demand, node) * c.Fleet.Policy.RoundTrips
}

// BaseMs returns the latency in ms of a request on the engine without load,
// TTFT(0) q/p_ref + o TBOT(0).
func (c *Compiled) BaseMs(s Source, node int) float64 {
	return c.Profile(node).LatencyMs(0, s.PromptTokens, s.OutputTokens)
}

// Profile returns the fitted profile of an engine node.
func (c *Compiled) Profile(node int) profile.Profile {
	return c.Profiles[c.Fleet.Engines[c.NodeEngine[node]].Profile]
}

// chooseWork settles single or split work.
func (c *Compiled) chooseWork(opts CompileOptions) {
	c.Work = c.Fleet.Policy.Work
	if opts.Work != "" && opts.Work != WorkAuto {
		c.Work = opts.Work
	}
	if c.Work != WorkAuto && c.Work != "" {
		return
	}
	c.Work = WorkSingle
	if c.mixesAgree() {
		return
	}
	if opts.SplitPairsMax > 0 && c.Pairs() > opts.SplitPairsMax {
		c.warnf("mixes of prompt and output differ by more than %.0f %%, but %d pairs are above the limit for split work (%d): solved with single work",
			100*MixTolerance, c.Pairs(), opts.SplitPairsMax)
		return
	}
	c.Work = WorkSplit
}

// mixesAgree says whether the share of output tokens in the tokens of a
// request agrees within MixTolerance over all sources and reference requests.
func (c *Compiled) mixesAgree() bool {
	lo, hi := math.Inf(1), math.Inf(-1)
	add := func(prompt, output float64) {
		mix := prompt / output
		lo, hi = min(lo, mix), max(hi, mix)
	}
	for _, s := range c.Sources {
		add(s.PromptTokens, s.OutputTokens)
	}
	for e := range c.Engines {
		p := c.Profile(e)
		add(p.PromptTokens, p.OutputTokens)
	}
	return !(hi > lo*(1+MixTolerance)) // equal infinities (no output at all) agree
}

func (c *Compiled) addSinks() error {
	for i := range c.Engines {
		e := &c.Engines[i]
		if e.Limit <= 0 {
			continue
		}
		p := c.Profile(i)
		var err error
		if c.Work == WorkSingle {
			e.Delay, err = profile.NewSink(e.Capacity, e.Limit, 1/e.ReferenceWork,
				[]profile.Curve{p.TTFT, p.TBOT}, []float64{1, p.OutputTokens})
		} else {
			err = e.addSplitSinks(p, c.Fleet.Policy.OutputTokenWork)
		}
		if err != nil {
			return fmt.Errorf("engine %q: %w", e.Name, err)
		}
	}
	return nil
}

// addSplitSinks makes one sink over the prompt tokens and one over the output
// tokens that an engine computes per second. Each may reach the whole work
// limit, which is beyond utilization 1 of its own; the joint limit is a row of
// its own. Processor sharing has no latency there: from the engine's max
// utilization on it goes on with its slope, as a table does beyond its last
// point, so that no engine has a limit but the joint one. An output token is
// outputWork units of work.
func (e *EngineNode) addSplitSinks(p profile.Profile, outputWork float64) (err error) {
	sink := func(refTokens, limit, scale float64, c profile.Curve) (*profile.Sink, error) {
		capacity := e.Capacity / e.ReferenceWork * refTokens // tokens/s of the reference mix at utilization 1
		formula := limit
		if c.PS {
			formula = min(limit, capacity*(e.Limit/e.Capacity))
		}
		s, err := profile.NewSink(capacity, formula, scale, []profile.Curve{c}, []float64{1})
		if err != nil {
			return nil, err
		}
		return s.ExtendTo(limit), nil
	}
	if e.Prefill, err = sink(p.PromptTokens, e.Limit, 1/p.PromptTokens, p.TTFT); err != nil {
		return err
	}
	e.Output, err = sink(p.OutputTokens, e.Limit/outputWork, 1, p.TBOT)
	return err
}

func sortedIndex(n int, less func(i, j int) int) []int {
	index := make([]int, n)
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, less)
	return index
}
