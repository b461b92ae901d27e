package policy

import (
	"math"
	"testing"

	"github.com/irb-project/irb/solve/simulate/kv"
	"github.com/irb-project/irb/solve/simulate/traffic"
)

// fleet has four endpoints, all eligible, at 1, 20, 20 and 50 ms; the last has
// twice the capacity.
func fleet() *Fleet {
	f := &Fleet{Agents: 1, BlockTokens: 10, Sources: []Source{{Eligible: []int32{0, 1, 2, 3}, NetS: []float64{0.001, 0.02, 0.02, 0.05}}}}
	for range 4 {
		f.Endpoints = append(f.Endpoints, Endpoint{CapacityRPS: 10, CacheBlocks: 100})
	}
	f.Endpoints[3].CapacityRPS = 20
	return f
}

// loads are signals by hand.
type loads []Load

func (l loads) Load(e int32) Load { return l[e] }

func idle() loads {
	l := make(loads, 4)
	for i := range l {
		l[i] = Load{Up: true, LatencyS: 1}
	}
	return l
}

func flight(conversation uint64, prompt float64) *Flight {
	return &Flight{Request: traffic.Request{Conversation: conversation, PromptTokens: prompt, Prefix: kv.Prefix{Conversation: conversation}}}
}

// send routes a request and notes the attempt, as the simulation does.
func send(t *testing.T, p Policy, f *Flight, now float64) int32 {
	t.Helper()
	e, verdict := p.Route(f, now)
	if verdict != Send {
		t.Fatalf("verdict is %v", verdict)
	}
	f.Endpoint, f.SentS = e, now
	f.Tried[f.Attempts] = e
	f.Attempts++
	return e
}

func shares(t *testing.T, p Policy, n int) [4]float64 {
	t.Helper()
	var got [4]float64
	for i := range n {
		got[send(t, p, flight(uint64(i)+1, 100), float64(i))] += 1 / float64(n)
	}
	return got
}

func TestNearestSpillsWhenItFails(t *testing.T) {
	p := NewNearest(fleet(), 1)
	f := flight(1, 100)
	if e := send(t, p, f, 0); e != 0 {
		t.Errorf("first goes to %d, want the nearest, 0", e)
	}
	p.Done(f, Pushback, 0)
	if e := send(t, p, f, 0); e != 1 && e != 2 {
		t.Errorf("then to %d, want the next nearest", e)
	}
	p.Done(f, Pushback, 0)
	send(t, p, f, 0)
	if _, verdict := p.Route(f, 0); verdict != Fail {
		t.Errorf("a fourth attempt: %v, want none", verdict)
	}
}

func TestRoundRobinFollowsCapacity(t *testing.T) {
	got := shares(t, NewRoundRobin(fleet(), 1), 5000)
	for e, want := range []float64{0.2, 0.2, 0.2, 0.4} {
		if math.Abs(got[e]-want) > 0.001 {
			t.Errorf("endpoint %d has %.3f, want %.3f", e, got[e], want)
		}
	}
}

func TestLeastRequests(t *testing.T) {
	p := NewLeastRequests(fleet(), 1)
	got := map[int32]int{}
	for i := range 10 { // none ends
		got[send(t, p, flight(uint64(i)+1, 100), 0)]++
	}
	for e, want := range []int{2, 2, 2, 4} {
		if got[int32(e)] != want {
			t.Errorf("endpoint %d has %d in flight, want %d", e, got[int32(e)], want)
		}
	}
}

// Envoy's outlier ejection: five faults in a row, 30 s.
func TestEjection(t *testing.T) {
	p := NewNearest(fleet(), 1)
	for range consecutiveFaults {
		f := flight(1, 100)
		if e := send(t, p, f, 0); e != 0 {
			t.Fatalf("goes to %d before the ejection", e)
		}
		p.Done(f, Refused, 0)
	}
	if e := send(t, p, flight(1, 100), 29); e == 0 {
		t.Error("an ejected endpoint is asked")
	}
	if e := send(t, p, flight(1, 100), 31); e != 0 {
		t.Error("the ejection does not end")
	}
}

// Of the cold ones the quickest is asked, network included.
func TestPrequalAsksTheQuickest(t *testing.T) {
	l := idle()
	l[0].LatencyS, l[1].LatencyS = 5, 1.2
	l[3].LatencyS = 0.9
	p := NewPrequal(fleet(), 1, l)
	got := map[int32]int{}
	for i := range 200 {
		f := flight(uint64(i)+1, 100)
		if e := send(t, p, f, float64(i)*0.05); i > 20 {
			got[e]++
		}
	}
	if got[3] < 140 || got[0] > 0 {
		t.Errorf("by endpoint %v, want most at 3, none at 0", got)
	}
	l[3].Up = false
	for i := range 100 {
		if e := send(t, p, flight(uint64(i)+1, 100), 20+float64(i)*0.05); i > 40 && e == 3 {
			t.Fatal("goes where no probe is answered")
		}
	}
}

// Seven answers tell of one request in flight, one of nine: above the quantile
// of 0.84 it is hot, however quick.
func TestPrequalLeavesTheHot(t *testing.T) {
	p := NewPrequal(fleet(), 1, idle())
	at := &p.pools[0][0]
	for range 7 {
		at.probes = append(at.probes, probe{endpoint: 2, inFlight: 1, latencyS: 1})
	}
	at.probes = append(at.probes, probe{endpoint: 0, inFlight: 9, latencyS: 0.1})
	if hot := p.hotFrom(at); hot != 2 {
		t.Errorf("hot from %d, want 2", hot)
	}
	if e := send(t, p, flight(1, 100), 0); e != 2 {
		t.Errorf("goes to %d, want the cold one, 2", e)
	}
}

func TestSGLang(t *testing.T) {
	p := NewSGLang(fleet(), 1)
	home := send(t, p, flight(1, 500), 0)
	if e := send(t, p, flight(2, 500), 0); e == home {
		t.Error("a stranger goes to the endpoint with the larger record")
	}
	if e := send(t, p, flight(1, 600), 0); e != home {
		t.Errorf("the next turn goes to %d, want %d", e, home)
	}
	if e := send(t, p, flight(1, 5000), 0); e == home { // 60 of 500 blocks are known: 12 %
		t.Error("a short match counts")
	}
	for range sglangAbsolute + 1 { // none ends
		send(t, p, flight(1, 600), 0)
	}
	if e := send(t, p, flight(1, 600), 0); e == home {
		t.Error("the imbalance is not seen")
	}
}

func TestLLMD(t *testing.T) {
	l := idle()
	p := NewLLMD(fleet(), 1, l)
	if err := p.Tick(0); err != nil {
		t.Fatal(err)
	}
	home := send(t, p, flight(1, 500), 0)
	if e := send(t, p, flight(1, 500), 0); e != home {
		t.Errorf("the next turn goes to %d, want %d", e, home)
	}
	l[home].Waiting, l[home].KVUsage = 10, 0.9 // 3 + 0 + 0.2 against 0 + 2 + 2
	if e := send(t, p, flight(1, 500), 0); e != home {
		t.Error("the load counts before it is polled")
	}
	if err := p.Tick(1); err != nil {
		t.Fatal(err)
	}
	if e := send(t, p, flight(1, 500), 1); e == home {
		t.Error("a queue and a full cache do not outweigh the prefix")
	}
}

// The controller by hand: an endpoint whose TTFT, TBOT and utilization are
// twice, once and once the mean has a score of 4/3.
func TestLegacyStep(t *testing.T) {
	l := idle()
	for i := range l {
		l[i].Utilization = 0.5
	}
	p := NewLegacy(fleet(), 1, l, Gains{Gain: 0.6, Smoothing: 1, IntervalS: 15})
	for e, ttft := range []float64{0.8, 0.2, 0.3, 0.3} { // mean 0.4
		f := flight(1, 100)
		f.Endpoint, f.SentS = int32(e), 10
		p.First(f, 10+ttft)
		f.FirstS, f.Tokens = 10+ttft, 100
		p.Done(f, Success, 11+ttft) // 10 ms a token
	}
	if err := p.Tick(15); err != nil {
		t.Fatal(err)
	}
	// Scores (2+1+1)/3, (0.5+1+1)/3, (0.75+1+1)/3 twice.
	raw := []float64{10 * (1 - 0.6/3), 10 * (1 + 0.6*0.5/3), 10 * (1 + 0.6*0.25/3), 20 * (1 + 0.6*0.25/3)}
	sum := raw[0] + raw[1] + raw[2] + raw[3]
	for e, w := range p.weights[0] {
		if want := raw[e] * 50 / sum; math.Abs(w-want) > 1e-9 {
			t.Errorf("weight %d is %.4f, want %.4f", e, w, want)
		}
	}
}

// A change of weights moves only the conversations that it must, and shares
// follow weights.
func TestLegacyHashesConsistently(t *testing.T) {
	p := NewLegacy(fleet(), 1, idle(), LegacyDefaults())
	got := shares(t, p, 20_000)
	if math.Abs(got[3]-0.4) > 0.015 || math.Abs(got[0]-0.2) > 0.012 { // four standard deviations
		t.Errorf("shares %v, want 0.2, 0.2, 0.2, 0.4", got)
	}
	before := make([]int32, 5000)
	for i := range before {
		before[i] = send(t, p, flight(uint64(i)+1, 100), 0)
	}
	p.weights[0][0] *= 2
	for i := range before {
		if e := send(t, p, flight(uint64(i)+1, 100), 0); e != before[i] && e != 0 {
			t.Fatalf("conversation %d moved from %d to %d, although only 0 has a new weight", i, before[i], e)
		}
	}
}
