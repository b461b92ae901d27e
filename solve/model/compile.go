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

func sortedIndex(n int, less func(i, j int) int) []int {
	index := make([]int, n)
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, less)
	return index
}
