package certify

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/irb-project/irb/solve/model"
)

// checker holds a program, an answer, and what is derived from the two before
// the pass over the pairs.
type checker struct {
	p *model.Problem
	s *model.Solution

	workPrice       []float64 // per engine: limit or delay price + caps, ms per unit of work
	prefill, output []float64 // split work: ms per token; nil for single
	groupsOf        [][]int   // per source; nil if there are no groups
	priced          []bool    // per source: a group of it has a price; nil likewise

	work, prompts, outputs []sum // load per engine; the last two for split work
	totalRPS, totalWork    float64
}

// totals is what the pass adds up, over a block of sources or over all.
type totals struct {
	latency, churn sum // ms x req/s
	bound, gross   sum // ms x req/s
	mispriced      sum // ms x req/s
	worst          residual
	price          mispricing
}

func (t *totals) merge(o *totals) {
	t.latency.merge(o.latency)
	t.churn.merge(o.churn)
	t.bound.merge(o.bound)
	t.gross.merge(o.gross)
	t.mispriced.merge(o.mispriced)
	t.worst.keep(o.worst)
	t.price.keep(o.price)
}

// addBound adds a term of the bound.
func (t *totals) addBound(x float64) {
	t.bound.add(x)
	t.gross.add(math.Abs(x))
}

// mispricing is a source whose published price is no marginal cost of its.
type mispricing struct {
	source         int
	cost           float64 // ServedRPS x distance, ms x req/s
	got, least, up float64 // ms
}

func (m *mispricing) keep(o mispricing) {
	if o.cost > m.cost {
		*m = o
	}
}

func (m *mispricing) err(p *model.Problem, gap float64) error {
	s := &p.Sources[m.source]
	return fmt.Errorf("certify: the price of source %s/%s is %.9g ms, by the prices of engines it is from %.9g to %.9g: all such together are off by %.3g of the objective, want at most %.0e",
		s.Cluster, s.Class, m.got, m.least, m.up, gap, GapTol)
}

func newChecker(p *model.Problem, s *model.Solution) *checker {
	c := &checker{p: p, s: s, workPrice: append([]float64(nil), s.EnginePrice...)}
	if p.Work == model.WorkSplit {
		c.prefill, c.output = s.PrefillPrice, s.OutputPrice
		for e := range c.workPrice {
			c.workPrice[e] = max(0, c.workPrice[e])
		}
	}
	for i, k := range p.Caps {
		for _, e := range k.Engines {
			c.workPrice[e] += max(0, s.CapPrice[i])
		}
	}
	if len(p.Groups) > 0 {
		c.groupsOf = make([][]int, len(p.Sources))
		c.priced = make([]bool, len(p.Sources))
		for g := range p.Groups {
			source := p.Groups[g].Source
			c.groupsOf[source] = append(c.groupsOf[source], g)
			c.priced[source] = c.priced[source] || c.groupPrice(g) != 0
		}
	}
	for i := range p.Sources {
		c.totalRPS += p.Sources[i].DemandRPS
		c.totalWork += p.Sources[i].DemandRPS * p.Sources[i].Work
	}
	c.addLoads()
	return c
}

// groupsIn returns the groups of source s.
func (c *checker) groupsIn(s int) []int {
	if c.groupsOf == nil {
		return nil
	}
	return c.groupsOf[s]
}

// groupPrice returns the price of a group, 0 where it could only make the
// bound -Inf: on a maximum that there is not.
func (c *checker) groupPrice(g int) float64 {
	price := c.s.GroupPriceMs[g]
	if price > 0 && math.IsInf(c.p.Groups[g].MaxRPS, 1) {
		return 0
	}
	return price
}

// addLoads sums the loads of engines. Flows are few beside pairs, some one per
// source and engine, so this needs no second thread.
func (c *checker) addLoads() {
	c.work = make([]sum, len(c.p.Engines))
	if c.prefill != nil {
		c.prompts = make([]sum, len(c.p.Engines))
		c.outputs = make([]sum, len(c.p.Engines))
	}
	source := 0
	for _, f := range c.s.Flows {
		for f.Pair >= c.p.Row[source+1] {
			source++
		}
		s, e := &c.p.Sources[source], c.p.Col[f.Pair]
		c.work[e].add(s.Work * f.RPS)
		if c.prefill != nil {
			c.prompts[e].add(s.PromptTokens * f.RPS)
			c.outputs[e].add(s.OutputTokens * f.RPS)
		}
	}
}

// blockPairs is about how many pairs one block of sources has. Blocks are
// summed each by itself and merged in order, so the result does not depend on
// the number of threads.
const blockPairs = 1 << 16

// blocks returns the first source of every block, and the end.
func (c *checker) blocks() []int {
	starts, size := []int{0}, 0
	for s := range c.p.Sources {
		size += 1 + c.p.Row[s+1] - c.p.Row[s]
		if size >= blockPairs {
			starts, size = append(starts, s+1), 0
		}
	}
	if starts[len(starts)-1] < len(c.p.Sources) {
		starts = append(starts, len(c.p.Sources))
	}
	return starts
}

// sources makes the pass over all sources and their pairs.
func (c *checker) sources() totals {
	starts := c.blocks()
	parts := make([]totals, len(starts)-1)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(parts)) {
		wg.Go(func() {
			pass := newPass(c)
			for b := next.Add(1) - 1; int(b) < len(parts); b = next.Add(1) - 1 {
				pass.block(starts[b], starts[b+1], &parts[b])
			}
		})
	}
	wg.Wait()
	var total totals
	for i := range parts {
		total.merge(&parts[i])
	}
	return total
}

// engines adds delays and conjugates, and checks the limits of engines.
func (c *checker) engines(t *totals) {
	for e := range c.p.Engines {
		node := &c.p.Engines[e]
		work := c.work[e].value()
		t.worst.atMost(row{kind: rowCapacity, i: e}, work, node.Limit, c.totalWork)
		if c.prefill == nil {
			if node.Delay != nil {
				t.worst.atMost(row{kind: rowCapacity, i: e}, work, node.Delay.Limit, c.totalWork)
				t.latency.add(node.Delay.Value(work))
				t.addBound(-node.Delay.Conjugate(c.s.EnginePrice[e]))
			}
			continue
		}
		if node.Prefill == nil || node.Output == nil {
			continue
		}
		prompts, outputs := c.prompts[e].value(), c.outputs[e].value()
		t.worst.atMost(row{kind: rowPrefill, i: e}, prompts, node.Prefill.Limit, c.totalWork)
		t.worst.atMost(row{kind: rowOutput, i: e}, outputs, node.Output.Limit, c.totalWork)
		t.latency.add(node.Prefill.Value(prompts))
		t.latency.add(node.Output.Value(outputs))
		t.addBound(-node.Prefill.Conjugate(c.prefill[e]))
		t.addBound(-node.Output.Conjugate(c.output[e]))
		t.addBound(-max(0, c.s.EnginePrice[e]) * node.Limit)
	}
}

// caps adds what caps cost in the bound, and checks them.
func (c *checker) caps(t *totals) {
	for i, k := range c.p.Caps {
		var work sum
		for _, e := range k.Engines {
			work.merge(c.work[e])
		}
		t.worst.atMost(row{kind: rowCap, i: i}, work.value(), k.MaxWork, c.totalWork)
		t.addBound(-max(0, c.s.CapPrice[i]) * k.MaxWork)
	}
}

// groupConstants adds what groups cost in the bound; their rows are checked in
// the pass over their sources.
func (c *checker) groupConstants(t *totals) {
	for g := range c.p.Groups {
		if price := c.groupPrice(g); price > 0 {
			t.addBound(-price * c.p.Groups[g].MaxRPS)
		} else if price < 0 {
			t.addBound(-price * c.p.Groups[g].MinRPS)
		}
	}
}
