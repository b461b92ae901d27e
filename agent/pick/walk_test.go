package pick

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

func steps(c *Class, r Request) (all []Step) {
	w := c.Walk(r)
	for s, ok := w.Next(); ok; s, ok = w.Next() {
		all = append(all, s)
	}
	return all
}

// stayAllBut keeps all keys everywhere but on one engine.
func stayAllBut(engines, e int, stay uint64) []uint64 {
	s := make([]uint64, engines)
	for i := range s {
		s[i] = StayAll
	}
	s[e] = stay
	return s
}

// Every walk gives each owner once, then each fallback once in their order, and
// never an engine that is neither.
func TestWalkIsComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 2, 3, 8, 9, 10, 100} {
		s := testSnapshot(randomQuotas(r, n), 3)
		s.Engines = append(s.Engines, snapshot.Engine{Name: "stranger"})
		s.Sources[0].Fallbacks = append(s.Sources[0].Fallbacks, snapshot.Fallback{Engine: "e0"}) // owns a range already
		c := mustTable(t, s).Class("k")
		for range 200 {
			all := steps(c, Request{Key: r.Uint64()})
			if len(all) != n+3 {
				t.Fatalf("%d owners: %d steps, want %d", n, len(all), n+3)
			}
			seen := map[int]bool{}
			for i, step := range all {
				if seen[step.Engine] || step.Rank != i || step.LastResort || step.Fallback != (i >= n) {
					t.Fatalf("%d owners: step %d is %+v", n, i, step)
				}
				if i >= n && step.Engine != n+(i-n) {
					t.Fatalf("fallback %d is engine %d", i-n, step.Engine)
				}
				seen[step.Engine] = true
			}
		}
	}
}

// The second in rank follows the weights without the first, whether drawn by
// rehash or computed.
func TestSecondRankFollowsWeights(t *testing.T) {
	quotas := []uint64{snapshot.QuotaSum - 3<<24, 1 << 24, 2 << 24} // 0.988, 0.0039, 0.0078: mostly computed
	c := mustTable(t, testSnapshot(quotas, 0)).Class("k")
	r := rand.New(rand.NewPCG(2, 2))
	counts := make([]int, 3)
	total := 0
	for range 100000 {
		all := steps(c, Request{Key: r.Uint64()})
		if all[0].Engine == 0 {
			counts[all[1].Engine]++
			total++
		}
	}
	p := 1.0 / 3
	if d := math.Abs(float64(counts[1]) - p*float64(total)); d > 4*math.Sqrt(float64(total)*p*(1-p)) {
		t.Errorf("engine 1 is second %d of %d times, want a third", counts[1], total)
	}
}

// A penalised engine loses the stated part of its own keys, no other engine
// loses any, a smaller stay loses a superset, and a table built apart from the
// same snapshot (another agent) loses the same ones.
func TestPenaltyMovesOwnKeysOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	s := testSnapshot(randomQuotas(r, 5), 1)
	shuffleRanges(r, s)
	a, b := mustTable(t, s).Class("k"), mustTable(t, s).Class("k")
	const sick = 2
	half, quarter := stayAllBut(6, sick, 1<<63), stayAllBut(6, sick, 1<<62)
	owned, kept := 0, 0
	for range 100000 {
		key := r.Uint64()
		owner := a.Owner(key)
		first := func(c *Class, stay []uint64) int { return steps(c, Request{Key: key, Stay: stay})[0].Engine }
		got := first(a, half)
		if other := first(b, half); other != got {
			t.Fatalf("key %x: one agent says %d, another %d", key, got, other)
		}
		if owner != sick {
			if got != owner {
				t.Fatalf("key %x moved from healthy engine %d to %d", key, owner, got)
			}
			continue
		}
		owned++
		if got == sick {
			kept++
		} else if first(a, quarter) == sick {
			t.Fatalf("key %x stays at a quarter and leaves at a half", key)
		}
	}
	if d := math.Abs(float64(kept) - float64(owned)/2); d > 4*math.Sqrt(float64(owned)/4) {
		t.Errorf("kept %d of %d keys, want half", kept, owned)
	}
}

// istio/istio#41674: an engine out of service loses its keys by the weights of the
// others; all others keep theirs; it is never offered. The layout stays, so that
// every agent finds the same.
func TestCase24UnavailableMovesOwnKeysOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	s := testSnapshot(randomQuotas(r, 4), 0)
	c := mustTable(t, s).Class("k")
	stay := stayAllBut(4, 1, 0)
	counts := make([]int, 4)
	moved := 0
	for range 100000 {
		key := r.Uint64()
		all := steps(c, Request{Key: key, Stay: stay})
		if len(all) != 3 || slices.ContainsFunc(all, func(s Step) bool { return s.Engine == 1 }) {
			t.Fatalf("key %x: %+v", key, all)
		}
		if owner := c.Owner(key); owner != 1 {
			if all[0].Engine != owner {
				t.Fatalf("key %x moved from %d to %d", key, owner, all[0].Engine)
			}
			continue
		}
		moved++
		counts[all[0].Engine]++
	}
	rest := float64(snapshot.QuotaSum - s.Sources[0].Weights[1].Quota)
	for i, w := range s.Sources[0].Weights {
		if i == 1 {
			continue
		}
		p := float64(w.Quota) / rest
		if d := math.Abs(float64(counts[i]) - p*float64(moved)); d > 4*math.Sqrt(float64(moved)*p*(1-p)) {
			t.Errorf("%s took %d of %d, want %.3f of them", w.Engine, counts[i], moved, p)
		}
	}
}

// What a penalty or an estimate refused is offered at last; what cannot serve
// never is.
func TestLastResort(t *testing.T) {
	s := testSnapshot(evenQuotas(3), 1)
	s.Engines[1].MaxContextTokens = 1000
	c := mustTable(t, s).Class("k")
	stay := []uint64{1, StayAll, 0, StayAll} // e0 keeps next to nothing, e2 is down
	need := c.Need("", 5000)
	w := c.Walk(Request{Key: 1 << 20, Stay: stay, Need: need})
	want := []Step{
		{Engine: 3, Rank: 3, Fallback: true},
		{Engine: 0, Rank: 0, LastResort: true, Reason: ReasonPenalty},
		{Engine: 1, LastResort: true, Reason: ReasonContext},
	}
	for _, wanted := range want {
		got, ok := w.Next()
		if wanted.Engine == 1 {
			wanted.Rank = got.Rank // 1 or 2, by the key
		}
		if !ok || got != wanted {
			t.Fatalf("got %+v, %v, want %+v", got, ok, wanted)
		}
	}
	for range 2 {
		if got, ok := w.Next(); ok {
			t.Fatalf("got %+v after the last", got)
		}
	}
	reasons := map[int32]Reason{}
	for _, s := range w.Skipped() {
		reasons[s.Engine] = s.Reason
	}
	if len(w.Skipped()) != 3 || reasons[0] != ReasonPenalty || reasons[1] != ReasonContext || reasons[2] != ReasonDown {
		t.Errorf("skipped %+v", w.Skipped())
	}
}

func TestHardStaysOrNothing(t *testing.T) {
	s := testSnapshot(evenQuotas(3), 2)
	s.Engines[0].MaxContextTokens = 10
	c := mustTable(t, s).Class("k")
	need := c.Need("", 1000)
	for _, tt := range []struct {
		stay uint64
		want int
	}{{StayAll, 1}, {1, 1}, {0, 0}} {
		r := Request{Key: 1 << 20, Need: need, Stay: stayAllBut(5, 0, tt.stay), Hard: true}
		all := steps(c, r)
		if len(all) != tt.want || tt.want == 1 && all[0] != (Step{Engine: 0}) {
			t.Errorf("stay %d: %+v, want %d step to the owner", tt.stay, all, tt.want)
		}
	}
}

func TestNeed(t *testing.T) {
	s := testSnapshot(evenQuotas(4), 0)
	s.Engines[0].Models = []string{"org/a"}
	s.Engines[1].Models = []string{"org/b"}
	s.Engines[2].Capabilities = []string{"tools"}
	s.Engines[3].Models = []string{"org/a"}
	s.Engines[3].Capabilities = []string{"tools", "vision"}
	c := mustTable(t, s).Class("k")
	tests := []struct {
		model        string
		capabilities []string
		want         []int
	}{
		{"", nil, []int{0, 1, 2, 3}},
		{"org/a", nil, []int{0, 2, 3}},
		{"org/b", nil, []int{1, 2}},
		{"org/unknown", nil, []int{2}},
		{"org/a", []string{"tools"}, []int{2, 3}},
		{"", []string{"tools", "vision"}, []int{3}},
		{"", []string{"nobody declares this"}, []int{0, 1, 2, 3}},
		{"org/b", []string{"vision"}, nil},
	}
	for _, tt := range tests {
		var got []int
		for _, step := range steps(c, Request{Key: 1, Need: c.Need(tt.model, 0, tt.capabilities...)}) {
			got = append(got, step.Engine)
		}
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("model %q, capabilities %v: engines %v, want %v", tt.model, tt.capabilities, got, tt.want)
		}
	}
	// In a class for one model the name in the request may be an alias.
	s.Classes[0].Model = "org/a"
	c = mustTable(t, s).Class("k")
	if got := steps(c, Request{Need: c.Need("alias", 0)}); len(got) != 4 {
		t.Errorf("class for one model: %d engines, want all 4", len(got))
	}
}

func TestWalkAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	s := testSnapshot(randomQuotas(r, 1000), 2)
	s.Engines[0].Models = []string{"m"}
	table := mustTable(t, s)
	stay := stayAllBut(1002, 3, 0)
	spread := NewSpread(1)
	allocs := testing.AllocsPerRun(100, func() {
		c := table.Match(Facts{Method: "POST", Path: "/v1/chat/completions", Model: "m"})
		w := c.Walk(Request{Key: Key("k", "tenant", spread.Next()), Stay: stay, Need: c.Need("m", 100, "tools")})
		for range 12 {
			step, _ := w.Next()
			sink += step.Engine
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func TestExplainAgreesWithWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	s := testSnapshot(randomQuotas(r, 12), 2)
	shuffleRanges(r, s)
	table := mustTable(t, s)
	c := table.Class("k")
	stay := make([]uint64, 14)
	for i := range stay {
		stay[i] = r.Uint64()
	}
	stay[4] = 0
	for range 1000 {
		req := Request{Key: r.Uint64(), Stay: stay, Hard: r.IntN(10) == 0}
		e, err := c.Explain(req)
		if err != nil {
			t.Fatal(err)
		}
		if p := uint64(e.Position); p < e.From || p >= e.To || e.Engine != s.Engines[c.Owner(req.Key)].Name {
			t.Fatalf("%+v", e)
		}
		var offered, walked []string
		for _, choice := range e.Order {
			if choice.Skipped == "" {
				offered = append(offered, choice.Engine)
			}
		}
		for _, step := range steps(c, req) {
			walked = append(walked, s.Engines[step.Engine].Name)
		}
		if !slices.Equal(offered, walked) {
			t.Fatalf("explained %v, walked %v", offered, walked)
		}
	}
}

func BenchmarkWalkFirst(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			c := mustTable(b, testSnapshot(randomQuotas(r, n), 2)).Class("k")
			stay := stayAllBut(n, 1, 1<<63)
			b.ReportAllocs()
			sum, key := 0, uint64(1)
			for b.Loop() {
				key = key*6364136223846793005 + 1442695040888963407
				w := c.Walk(Request{Key: key, Stay: stay})
				step, _ := w.Next()
				sum += step.Engine
			}
			sink = sum
		})
	}
}
