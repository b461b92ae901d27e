package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/irb-project/irb/solve/model"
)

// transport is a program as a peer sees it: a transportation problem whose
// engines have linear segments. Flows are in work, a mean source supplying 1;
// costs are in ms per request of mean work.
type transport struct {
	engines int
	supply  []float64
	tail    []int32 // per pair, its source
	head    []int32 // per pair, its engine
	cost    []float64

	segmentEngine []int32 // ascending, cheapest first
	width, slope  []float64

	workUnit float64 // work/s of one unit of flow
	meanWork float64 // of a request
}

// newTransport returns p without segments.
func newTransport(p *model.Problem) *transport {
	t := &transport{
		engines: len(p.Engines),
		supply:  make([]float64, len(p.Sources)),
		tail:    make([]int32, p.Pairs()), head: p.Col, cost: make([]float64, p.Pairs()),
	}
	work, requests := 0.0, 0.0
	for _, s := range p.Sources {
		work += s.DemandRPS * s.Work
		requests += s.DemandRPS
	}
	t.workUnit, t.meanWork = work/float64(len(p.Sources)), work/requests
	for i, s := range p.Sources {
		t.supply[i] = s.DemandRPS * s.Work / t.workUnit
		for k := p.Row[i]; k < p.Row[i+1]; k++ {
			t.tail[k] = int32(i)
			t.cost[k] = p.CostMs[k] / s.Work * t.meanWork
		}
	}
	return t
}

// cut returns t with the delays of p as chords of grids.
func (t *transport) cut(p *model.Problem, grids [][]float64) *transport {
	out := *t
	out.segmentEngine, out.width, out.slope = nil, nil, nil
	for e, grid := range grids {
		sink := p.Engines[e].Delay
		for i := 1; i < len(grid); i++ {
			width := grid[i] - grid[i-1]
			out.segmentEngine = append(out.segmentEngine, int32(e))
			out.width = append(out.width, width/t.workUnit)
			out.slope = append(out.slope, (sink.Value(grid[i])-sink.Value(grid[i-1]))/width*t.meanWork)
		}
	}
	return &out
}

// encode writes t as the peers' programs read it: little endian, the numbers of
// sources, engines, pairs and segments as 64 bit integers, then each slice;
// indexes are 32 bit integers.
func (t *transport) encode(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<20)
	for _, part := range []any{
		[]int64{int64(len(t.supply)), int64(t.engines), int64(len(t.cost)), int64(len(t.width))},
		t.supply, t.tail, t.head, t.cost, t.segmentEngine, t.width, t.slope,
	} {
		if err := binary.Write(out, binary.LittleEndian, part); err != nil {
			return err
		}
	}
	return out.Flush()
}

// answer is what a peer's program says.
type answer struct {
	timing
	flow []float64 // per pair
}

// decodeAnswer reads an answer of so many pairs.
func decodeAnswer(data []byte, pairs int) (answer, error) {
	const head = 3
	if len(data) != 8*(head+pairs) {
		return answer{}, fmt.Errorf("answer has %d bytes, want %d for %d pairs", len(data), 8*(head+pairs), pairs)
	}
	value := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:])) }
	a := answer{
		timing: timing{Seconds: value(0), Runs: int(value(1)), PeakBytes: value(2)},
		flow:   make([]float64, pairs),
	}
	for k := range a.flow {
		a.flow[k] = value(head + k)
	}
	return a, nil
}

// solution turns flows into requests/s. Each source is scaled to its demand:
// peers round, or hold rows to their own tolerances only.
func (t *transport) solution(p *model.Problem, flow []float64, proof *model.Solution) *model.Solution {
	out := *proof
	out.Flows = nil
	for i, s := range p.Sources {
		sum := 0.0
		for k := p.Row[i]; k < p.Row[i+1]; k++ {
			sum += max(0, flow[k])
		}
		for k := p.Row[i]; k < p.Row[i+1]; k++ {
			if rps := max(0, flow[k]) / sum * s.DemandRPS; rps > 0 {
				out.Flows = append(out.Flows, model.Flow{Pair: k, RPS: rps})
			}
		}
	}
	return &out
}
