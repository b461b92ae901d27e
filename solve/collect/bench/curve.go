package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/irb-project/irb/solve/figure"
)

const (
	// saturation is what an open loop must complete of what it offers.
	saturation = 0.95
	// noise is how much two measurements of one thing may differ, relative.
	noise = 0.02
	// minStep is the least distance of two points of a table in utilization.
	minStep = 1e-4
	// idle is the utilization up to which the lowest run counts as no load.
	idle = 0.1
)

// Point is a level of load on a curve.
type Point struct {
	InFlight      float64 `json:"in_flight"` // requests, mean
	ThroughputRPS float64 `json:"throughput_rps"`
	RateRPS       float64 `json:"rate_rps"` // λ
	Utilization   float64 `json:"utilization"`
	TTFTMs        float64 `json:"ttft_ms"`
	TBOTMs        float64 `json:"tbot_ms"`
	Line          int     `json:"line,omitempty"`

	run    Run // the first of those that were merged
	closed bool
}

// curve is what remains of a group when repeats are merged and overload is left
// out, by rising rate.
type curve struct {
	points   []Point
	capacity float64 // req/s, 0 without points
	atLeast  bool    // nothing shows that capacity was reached
	dropped  int     // runs
	notes    []Note
}

func (c *curve) note(r *Run, format string, args ...any) {
	c.notes = append(c.notes, r.remark(format, args...))
}

// newCurve makes the curve of a group.
func newCurve(g *group) *curve {
	c := &curve{}
	for i := range g.faulty {
		c.dropped++
		c.note(&g.faulty[i], "left out: %s", g.faulty[i].Fault)
	}
	for i := range g.runs {
		if r := &g.runs[i]; r.Doubt != "" {
			c.note(r, "%s", r.Doubt)
		}
	}
	if spread := g.spread(); spread > equalShape {
		c.note(&g.runs[0], "the mean lengths of the runs differ by up to %s from their mean: some of the curve is that", figure.Percent(spread))
	}
	var closed, open []Point
	for _, p := range c.merge(g.runs) {
		if p.closed {
			closed = append(closed, p)
		} else {
			open = append(open, p)
		}
	}
	overloaded := false
	open = slices.DeleteFunc(open, func(p Point) bool {
		if p.run.OfferedRPS == 0 || p.run.CompletedRPS == 0 || p.run.CompletedRPS >= saturation*p.run.OfferedRPS {
			return false
		}
		overloaded = true
		c.dropped++
		c.capacity = max(c.capacity, p.ThroughputRPS)
		c.note(&p.run, "left out: overload, %s of %s req/s offered were completed, want at least %s", figure.Rate(p.run.CompletedRPS), figure.Rate(p.run.OfferedRPS), figure.Percent(saturation))
		return true
	})
	kept := c.withoutFalls(closed)
	c.points = append(kept, open...)
	for _, p := range c.points {
		c.capacity = max(c.capacity, p.ThroughputRPS)
	}
	if last := len(closed) - 1; last >= 0 && closed[last].run.Concurrency > kept[len(kept)-1].run.Concurrency {
		overloaded = true
	}
	c.atLeast = !overloaded && !flattens(kept)
	c.toUtilization()
	c.noteFalls()
	return c
}

// merge makes points of runs; those at the same level of load become their
// mean.
func (c *curve) merge(runs []Run) []Point {
	type level struct{ concurrency, offered, completed float64 }
	var order []level
	byLevel := make(map[level][]Run)
	for _, r := range runs {
		l := level{r.Concurrency, r.OfferedRPS, 0}
		if r.Concurrency == 0 && r.OfferedRPS == 0 {
			l.completed = r.CompletedRPS
		}
		if byLevel[l] == nil {
			order = append(order, l)
		}
		byLevel[l] = append(byLevel[l], r)
	}
	points := make([]Point, 0, len(order))
	for _, l := range order {
		same := byLevel[l]
		p := Point{run: same[0], Line: same[0].Line, closed: l.concurrency > 0}
		n := float64(len(same))
		lo, hi := math.Inf(1), 0.0
		for i := range same {
			r := &same[i]
			p.ThroughputRPS += r.Throughput() / n
			p.RateRPS += r.Rate() / n
			p.InFlight += r.Throughput() * r.LatencyS() / n
			p.TTFTMs += r.TTFTMs / n
			p.TBOTMs += r.TBOTMs / n
			lo, hi = min(lo, r.LatencyS()), max(hi, r.LatencyS())
		}
		if len(same) > 1 {
			c.note(&same[len(same)-1], "%d runs at %s (%s) are merged into their mean; their latencies differ by up to %s", len(same), same[0].load(), whereList(same, &same[len(same)-1]), figure.Percent(hi/lo-1))
		}
		points = append(points, p)
	}
	return points
}

// whereList names the first few runs in a sentence about another one.
func whereList(runs []Run, from *Run) string {
	const most = 4
	var names []string
	for i := range runs[:min(most, len(runs))] {
		names = append(names, runs[i].seenFrom(from))
	}
	if len(runs) > most {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}

// withoutFalls returns the longest part of a closed loop's points along which
// throughput rises, within noise, as more requests are in flight: of several
// that with the most throughput. What it leaves out beyond the peak is
// overload, within the rise it is an outlier.
//
// It sorts points by concurrency.
func (c *curve) withoutFalls(points []Point) []Point {
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.run.Concurrency, b.run.Concurrency) })
	// best[i] describes the best chain that ends at i.
	type chain struct {
		length, before int
		sum            float64
	}
	best := make([]chain, len(points))
	end := -1
	for i, p := range points {
		best[i] = chain{length: 1, before: -1, sum: p.ThroughputRPS}
		for j, q := range points[:i] {
			follows := p.ThroughputRPS >= (1-noise)*q.ThroughputRPS && p.RateRPS > q.RateRPS
			longer := chain{length: best[j].length + 1, before: j, sum: best[j].sum + p.ThroughputRPS}
			if follows && (longer.length > best[i].length || longer.length == best[i].length && longer.sum > best[i].sum) {
				best[i] = longer
			}
		}
		if end < 0 || best[i].length > best[end].length || best[i].length == best[end].length && best[i].sum > best[end].sum {
			end = i
		}
	}
	keep := make([]bool, len(points))
	for i := end; i >= 0; i = best[i].before {
		keep[i] = true
	}
	var kept []Point
	for i, p := range points {
		if keep[i] {
			kept = append(kept, p)
			continue
		}
		c.dropped++
		c.noteDropped(points, keep, i)
	}
	return kept
}

// noteDropped says why points[i] was left out, by its kept neighbours.
func (c *curve) noteDropped(points []Point, keep []bool, i int) {
	var before, after *Point
	for j := range points {
		switch {
		case keep[j] && j < i:
			before = &points[j]
		case keep[j] && j > i && after == nil:
			after = &points[j]
		}
	}
	p := &points[i]
	x := figure.Rate(p.ThroughputRPS)
	at := func(q *Point) string {
		return fmt.Sprintf("%s at concurrency %v (%s)", figure.Rate(q.ThroughputRPS), q.run.Concurrency, q.run.seenFrom(&p.run))
	}
	switch {
	case after != nil && after.ThroughputRPS < (1-noise)*p.ThroughputRPS:
		c.note(&p.run, "left out: an outlier, %s req/s at concurrency %v, but %s; measure again", x, p.run.Concurrency, at(after))
	case after == nil && p.ThroughputRPS < before.ThroughputRPS:
		c.note(&p.run, "left out: overload, throughput falls from %s to %s req/s as concurrency rises to %v", at(before), x, p.run.Concurrency)
	case before != nil && p.ThroughputRPS < (1-noise)*before.ThroughputRPS:
		c.note(&p.run, "left out: an outlier, throughput falls from %s to %s req/s at %v and rises again; measure again", at(before), x, p.run.Concurrency)
	default:
		c.note(&p.run, "left out: an outlier, a latency of %s s is too short for its throughput of %s req/s beside the other runs; measure again", figure.Rate(p.run.LatencyS()), x)
	}
}

// flattens says whether a closed loop shows its capacity: the last step gains
// less than half of the throughput that it would gain without any queueing.
func flattens(points []Point) bool {
	if len(points) < 2 {
		return false
	}
	a, b := points[len(points)-2], points[len(points)-1]
	gain := math.Log(b.ThroughputRPS/a.ThroughputRPS) / math.Log(b.run.Concurrency/a.run.Concurrency)
	return gain < 0.5
}

// toUtilization sorts the points by rate and merges those that are nearly one;
// the first stands for the engine without load.
func (c *curve) toUtilization() {
	slices.SortStableFunc(c.points, func(a, b Point) int { return cmp.Compare(a.RateRPS, b.RateRPS) })
	var merged []Point
	for _, p := range c.points {
		p.Utilization = math.Round(p.RateRPS/c.capacity/minStep) * minStep
		if last := len(merged) - 1; last >= 0 && p.Utilization <= merged[last].Utilization {
			q := &merged[last]
			c.note(&p.run, "has the utilization of %s, %s; the mean of both is used", q.run.seenFrom(&p.run), figure.Percent(p.Utilization))
			q.TTFTMs, q.TBOTMs = (q.TTFTMs+p.TTFTMs)/2, (q.TBOTMs+p.TBOTMs)/2
			continue
		}
		merged = append(merged, p)
	}
	c.points = merged
}

// noteFalls says where latency falls as load rises: the fit levels it out.
func (c *curve) noteFalls() {
	for i := 1; i < len(c.points); i++ {
		a, b := &c.points[i-1], &c.points[i]
		for _, x := range []struct {
			name     string
			from, to float64
		}{{"TTFT", a.TTFTMs, b.TTFTMs}, {"TBOT", a.TBOTMs, b.TBOTMs}} {
			if x.to < (1-noise)*x.from {
				c.note(&b.run, "%s falls from %s ms (%s, %s) to %s ms at %s; the fit levels it out", x.name, figure.Ms(x.from), a.run.seenFrom(&b.run), a.run.load(), figure.Ms(x.to), b.run.load())
			}
		}
	}
}
