package lp

import (
	"testing"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// tableProfile is a profile for a reference request of 1024 prompt and 256
// output tokens, an output token being 4 units of work.
type tableProfile struct{ v, ttftMs, tbotMs []float64 }

const (
	refPrompt = 1024
	refOutput = 256
	refWork   = refPrompt + 4*refOutput
)

var (
	h100 = tableProfile{
		v:      []float64{0, 0.25, 0.5, 0.75, 0.9, 1},
		ttftMs: []float64{80, 85, 100, 140, 220, 400},
		tbotMs: []float64{12, 13, 15, 18, 22, 30},
	}
	flat = tableProfile{v: []float64{0, 1}, ttftMs: []float64{80, 80}, tbotMs: []float64{12, 12}}
)

func (p tableProfile) baseMs() float64 { return p.ttftMs[0] + refOutput*p.tbotMs[0] }

func (p tableProfile) curves() (ttft, tbot profile.Curve) {
	return profile.Curve{V: p.v, Ms: p.ttftMs}, profile.Curve{V: p.v, Ms: p.tbotMs}
}

// single is an engine of rps reference requests per second, single work.
func (p tableProfile) single(t testing.TB, name string, rps, maxUtilization float64) model.EngineNode {
	t.Helper()
	e := engine(name, rps, maxUtilization)
	ttft, tbot := p.curves()
	var err error
	e.Delay, err = profile.NewSink(e.Capacity, e.Limit, 1.0/refWork, []profile.Curve{ttft, tbot}, []float64{1, refOutput})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// split is the same engine with split work.
func (p tableProfile) split(t testing.TB, name string, rps, maxUtilization float64) model.EngineNode {
	t.Helper()
	e := engine(name, rps, maxUtilization)
	ttft, tbot := p.curves()
	var err error
	if e.Prefill, err = profile.NewSink(rps*refPrompt, e.Limit, 1.0/refPrompt, []profile.Curve{ttft}, []float64{1}); err != nil {
		t.Fatal(err)
	}
	if e.Output, err = profile.NewSink(rps*refOutput, e.Limit/4, 1, []profile.Curve{tbot}, []float64{1}); err != nil {
		t.Fatal(err)
	}
	return e
}

func engine(name string, rps, maxUtilization float64) model.EngineNode {
	capacity := rps * refWork
	return model.EngineNode{Name: name, Region: "region-" + name[:1], ReferenceWork: refWork,
		Capacity: capacity, Limit: capacity * maxUtilization}
}
