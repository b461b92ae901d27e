package guard

import (
	"testing"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
)

func TestRequestPathAllocatesNothing(t *testing.T) {
	h := newHand(fleet(5, 100, 0.6), Defaults())
	h.pass(time.Second)
	if n := testing.AllocsPerRun(100, func() { request(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func request(h *hand) {
	c := h.class()
	c.Admit(7, false, h.now)
	c.Deposit()
	_ = c.Stay()
	if c.Grade(1, 0, 7, false, h.now) == Out {
		panic("ejected")
	}
	a := c.Begin(1, 0, Work{PromptTokens: 100, Stream: true}, h.now)
	a.First(h.now)
	a.End(Ending{Outcome: Success, Tokens: 10, LastToken: h.now.Add(time.Second)}, h.now.Add(time.Second))
}

func BenchmarkRequest(b *testing.B) {
	h := newHand(fleet(5, 100, 0.6), Defaults())
	h.pass(time.Second)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request(h)
		}
	})
}

func BenchmarkTick(b *testing.B) {
	var classes []snapshot.Class
	for i := range 20 {
		classes = append(classes, snapshot.Class{Name: string(rune('a' + i)), Priority: i % 3})
	}
	h := newHand(fleet(1000, 100, 0.6, classes...), Defaults())
	for b.Loop() {
		h.pass(TickInterval)
	}
}
