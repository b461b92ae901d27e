package bench

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// sharedServer is a sweep of a server that its requests share evenly, each
// taking 1 s alone: with N in flight TTFT and TBOT are 200 N ms, and a request
// of 5 tokens takes 200 N + 4 x 200 N ms = N s. Throughput is 1 req/s always.
func sharedServer(concurrencies ...int) string {
	var b strings.Builder
	b.WriteString("concurrency,ttft_ms,tpot_ms,prompt_tokens,output_tokens\n")
	for _, n := range concurrencies {
		fmt.Fprintf(&b, "%d,%d,%d,100,5\n", n, 200*n, 200*n)
	}
	return b.String()
}

// fit reads one file and returns its only profile.
func fit(t *testing.T, name, text string, o FitOptions) *Profile {
	t.Helper()
	profiles := fitAll(t, name, text, o)
	if len(profiles) != 1 {
		t.Fatalf("%d profiles, want 1", len(profiles))
	}
	return profiles[0]
}

func fitAll(t *testing.T, name, text string, o FitOptions) []*Profile {
	t.Helper()
	results, err := Read([]File{{name, []byte(text)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Fit(results.Runs, o)
}

func near9(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

// TestProcessorSharing: a closed loop over an evenly shared server gives the
// curve of the open one, R = S/(1-v): N in flight are v = 1 - 1/N. Power
// v/R = v (1-v) is greatest at v = 0.5, and R is twice that of v = 0.5 at 0.75.
func TestProcessorSharing(t *testing.T) {
	p := fit(t, "x.csv", sharedServer(1, 2, 4, 8, 16), FitOptions{})
	if p.Refusal != "" || len(p.Points) != 5 || p.RunsLeftOut != 0 {
		t.Fatalf("got %+v, want a profile of 5 points", p)
	}
	for i, n := range []float64{1, 2, 4, 8, 16} {
		q := p.Points[i]
		if math.Abs(q.Utilization-(1-1/n)) > minStep/2 || !near9(q.TTFTMs, 200*n) || !near9(q.InFlight, n) {
			t.Errorf("point %d is %+v, want utilization %v and TTFT %v", i, q, 1-1/n, 200*n)
		}
	}
	if p.CapacityRPS != 1 || p.CapacityAtLeast {
		t.Errorf("capacity %v, at least %v, want 1 and reached", p.CapacityRPS, p.CapacityAtLeast)
	}
	if p.Knee != 0.5 || p.MaxUtilization != 0.75 || p.WorstRelError != 0 {
		t.Errorf("knee %v, max %v, error %v, want 0.5, 0.75, 0", p.Knee, p.MaxUtilization, p.WorstRelError)
	}
}

// TestMaxUtilization: which of the rules binds.
func TestMaxUtilization(t *testing.T) {
	flat := "concurrency,ttft_ms,tpot_ms,prompt_tokens,output_tokens\n" +
		"1,100,10,100,11\n2,100,10,100,11\n4,100,10,100,11\n" // 200 ms each: X = 5, 10, 20; v = 0, 0.25, 0.75
	for _, tc := range []struct {
		name, text string
		o          FitOptions
		max        float64
		because    string
	}{
		{"twice the knee", sharedServer(1, 2, 4, 8), FitOptions{}, 0.75, "a request takes 4800 ms there, twice as long as at the knee"},
		{"TTFT limit", sharedServer(1, 2, 4, 8), FitOptions{TTFTLimitMs: 400}, 0.5, "the TTFT and TBOT limits hold up to there"},
		{"TBOT limit", sharedServer(1, 2, 4, 8), FitOptions{TBOTLimitMs: 300}, 0.25, "the TTFT and TBOT limits hold up to there"},
		{"limit that idle breaks", sharedServer(1, 2, 4, 8), FitOptions{TTFTLimitMs: 199}, 0, "the TTFT and TBOT limits hold up to there"},
		{"measured", flat, FitOptions{}, 0.75, "the highest utilization measured"},
		{"bursts", flat + "64,100,10,100,11\n", FitOptions{}, 0.9, "leaves 10 % for bursts"},
	} {
		p := fit(t, "x.csv", tc.text, tc.o)
		if p.MaxUtilization != tc.max || p.MaxBecause != tc.because {
			t.Errorf("%s: %v because %q, want %v because %q", tc.name, p.MaxUtilization, p.MaxBecause, tc.max, tc.because)
		}
	}
}

// TestOpenLoop: the rate is the load; what falls behind is overload, yet shows
// the capacity.
func TestOpenLoop(t *testing.T) {
	p := fit(t, "x.csv", `request_rate_rps,throughput_rps,ttft_ms,tpot_ms,isl,osl
1,1,50,10,100,11
5,5,60,11,100,11
9,8.8,90,14,100,11
20,10,5000,30,100,11
`, FitOptions{})
	if p.Refusal != "" || p.CapacityRPS != 10 || p.CapacityAtLeast || p.RunsLeftOut != 1 {
		t.Fatalf("got %+v, want capacity 10 and one run left out", p)
	}
	var v []float64
	for _, q := range p.Points {
		v = append(v, q.Utilization)
	}
	for i, want := range []float64{0.1, 0.5, 0.88} {
		if !near9(v[i], want) {
			t.Errorf("utilization %v, want 0.1, 0.5, 0.88", v)
		}
	}
	// The lowest run, at 10 %, stands for the engine without load.
	if p.Spec.Utilization[0] != 0 || p.Spec.TTFTMs[0] != 50 || len(p.Spec.Utilization) != 4 {
		t.Errorf("table %v %v, want 0 with 50 ms before the three", p.Spec.Utilization, p.Spec.TTFTMs)
	}
	wantNote(t, p.Notes, "x.csv:5: left out: overload, 10 of 20 req/s offered were completed, want at least 95.0 %")
}

// TestMixedLoops: the closed loop with 2 in flight and the open loop at half of
// capacity are the same load of an evenly shared server.
func TestMixedLoops(t *testing.T) {
	p := fit(t, "x.csv", `concurrency,request_rate_rps,throughput_rps,ttft_ms,tpot_ms,isl,osl
1,,,200,200,100,5
2,,,400,400,100,5
,0.5,0.5,420,420,100,5
4,,,800,800,100,5
`, FitOptions{})
	if len(p.Points) != 3 || p.Points[1].Utilization != 0.5 || p.Points[1].TTFTMs != 410 || p.CapacityRPS != 1 {
		t.Errorf("got %+v, want three points, the second at 0.5 with the mean of 400 and 420 ms", p.Points)
	}
	wantNote(t, p.Notes, "x.csv:4: has the utilization of line 3, 50.0 %; the mean of both is used")
}

// TestSeveralFiles: a run is named by its file where the other is in another.
func TestSeveralFiles(t *testing.T) {
	const head = "concurrency,ttft_ms,tpot_ms,isl,osl\n"
	results, err := Read([]File{
		{"a.csv", []byte(head + "1,110,10,100,11\n")},
		{"b.csv", []byte(head + "4,100,11,100,11\n8,200,20,100,11\n")},
		{"c.csv", []byte(head + "8,200,22,100,11\n")},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := Fit(results.Runs, FitOptions{})[0]
	wantNote(t, p.Notes, "b.csv:2: TTFT falls from 110 ms (a.csv:2, concurrency 1) to 100 ms at concurrency 4; the fit levels it out")
	wantNote(t, p.Notes, "c.csv:2: 2 runs at concurrency 8 (b.csv:3, line 2) are merged into their mean; their latencies differ by up to 5.0 %")
	if strings.Join(p.Files, " ") != "a.csv b.csv c.csv" || p.Name != "a" {
		t.Errorf("profile %q from %q, want a from all three", p.Name, p.Files)
	}
}

// TestManyRows: a log of requests is no sweep.
func TestManyRows(t *testing.T) {
	text := "concurrency,ttft_ms,tpot_ms,isl,osl\n" + strings.Repeat("1,50,10,100,11\n", maxRuns+2)
	_, err := Read([]File{{"x.csv", []byte(text)}}, Options{})
	if want := "x.csv:50002: has more than 50000 rows, want one for each level of load; is it a log of single requests?"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func wantNote(t *testing.T, notes []Note, want string) {
	t.Helper()
	var all []string
	for _, n := range notes {
		if n.String() == want {
			return
		}
		all = append(all, n.String())
	}
	t.Errorf("no note %q among\n%s", want, strings.Join(all, "\n"))
}

// TestNotes: every kind of row that cannot be used, or only with a word, says
// where, what, and what is wanted.
func TestNotes(t *testing.T) {
	const head = "concurrency,ttft_ms,tpot_ms,isl,osl,throughput_rps,completed,failed\n"
	good := head + "1,100,10,100,11,,,\n2,110,11,100,11,,,\n8,200,20,100,11,,,\n" // X 5, 9.091, 20; v 0, .2273, .875
	for _, tc := range []struct{ name, text, want string }{
		{"missing TTFT", good + "4,,10,100,11,,,\n", "x.csv:5: left out: TTFT is missing or 0, want a number of ms"},
		{"NaN", good + "4,nan,10,100,11,,,\n", `x.csv:5: left out: ttft_ms is "nan", want a finite number > 0`},
		{"negative", good + "4,100,-1,100,11,,,\n", `x.csv:5: left out: tpot_ms is "-1", want a finite number > 0`},
		{"both", good + "4,x,y,100,11,,,\n", `x.csv:5: left out: ttft_ms is "x", want a finite number > 0; tpot_ms is "y", want a finite number > 0`},
		{"short row", good + "4,100\n", "x.csv:5: left out: row has 2 cells, want 8 as in the header"},
		{"seconds in ms", good + "4,0.15,0.012,100,11,,,\n", "x.csv:5: left out: TTFT is 0.15 ms, want 1 to 3600000; is the unit right?; TBOT is 0.012 ms, want 0.05 to 5000; is the unit right?"},
		{"no load", good + ",100,10,100,11,,,\n", "x.csv:5: left out: no load is stated, want a concurrency or a request rate"},
		{"failures", good + "4,150,15,100,11,,90,10\n", "x.csv:5: left out: 10 of 100 requests failed, want at most 5.0 %"},
		{"Little's law", good + "4,150,15,100,11,40,,\n", "x.csv:5: left out: 40 req/s of 0.3 s each keep 12 requests in flight, the test kept 4 (Little's law); is a unit wrong?"},
		{"ramp", good + "4,150,15,100,11,8,,\n", "x.csv:5: on average 2.4 of 4 requests were in flight: much of the run was ramp, more requests would measure better"},
		{"repeat", good + "8,220,20,100,11,,,\n", "x.csv:5: 2 runs at concurrency 8 (line 4, line 5) are merged into their mean; their latencies differ by up to 5.0 %"},
		{"overload", good + "16,600,60,100,11,,,\n", "x.csv:5: left out: overload, throughput falls from 20 at concurrency 8 (line 4) to 13.3333 req/s as concurrency rises to 16"},
		{"dip", good + "4,300,30,100,11,,,\n", "x.csv:5: left out: an outlier, throughput falls from 9.09091 at concurrency 2 (line 3) to 6.66667 req/s at 4 and rises again; measure again"},
		{"peak", good + "4,50,5,100,11,,,\n16,400,38,100,11,,,\n", "x.csv:5: left out: an outlier, 40 req/s at concurrency 4, but 20 at concurrency 8 (line 4); measure again"},
		// λ = 9 - 1/0.15 = 2.3, below the 9.09 - 1/0.22 = 4.5 of concurrency 2.
		{"too short", good + "3,100,5,100,11,9,,\n", "x.csv:5: left out: an outlier, a latency of 0.15 s is too short for its throughput of 9 req/s beside the other runs; measure again"},
		{"fall", good + "4,100,11,100,11,,,\n", "x.csv:5: TTFT falls from 110 ms (line 3, concurrency 2) to 100 ms at concurrency 4; the fit levels it out"},
		{"not saturated", head + "1,100,10,100,11,,,\n2,100,10,100,11,,,\n4,100,10,100,11,,,\n", "x.csv:4: throughput still rises at the highest load, concurrency 4; the capacity of 20 req/s is what was seen, not a limit; measure higher"},
		{"not saturated, with an outlier", head + "1,100,10,100,11,,,\n2,100,10,100,11,,,\n3,400,40,100,11,,,\n4,100,10,100,11,,,\n", "x.csv:5: throughput still rises at the highest load, concurrency 4; the capacity of 20 req/s is what was seen, not a limit; measure higher"},
		// X is 20, 22.86, 23.02 and λ = 7/0.4 = 17.5 at first: v = 17.5/23.02.
		{"no idle run", head + "8,200,20,100,11,,,\n16,350,35,100,11,,,\n32,690,70,100,11,,,\n", "x.csv:2: the lowest run is at 76.0 % of capacity; its latency stands for the engine without load, which is lower; measure concurrency 1"},
		{"two points", head + "1,100,10,100,11,,,\n8,200,20,100,11,,,\n", "x.csv:3: two levels of load make a straight line; five or more show the bend"},
		// The constant nearest to 100 and 80 is (1/100+1/80)/(1/100²+1/80²) = 87.8.
		{"bad fit", head + "1,100,10,100,11,,,\n8,80,20,100,11,,,\n", "x.csv:2: the fit is off by up to 12.2 %"},
		{"lengths", head + "1,100,10,100,11,,,\n4,120,12,112,11,,,\n8,200,20,106,11,,,\n", "x.csv:2: the mean lengths of the runs differ by up to 5.7 % from their mean: some of the curve is that"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var notes []Note
			for _, p := range fitAll(t, "x.csv", tc.text, FitOptions{}) {
				notes = append(notes, p.Notes...)
			}
			wantNote(t, notes, tc.want)
		})
	}
}

func TestRefusals(t *testing.T) {
	const head = "concurrency,ttft_ms,tpot_ms,isl,osl\n"
	for _, tc := range []struct{ name, text, want string }{
		{"single level", head + "8,100,10,100,11\n8,110,10,100,11\n", "a single level of load (concurrency 8) makes no curve, want at least two, better five"},
		{"nothing usable", head + ",100,10,100,11\n", "no run can be used; the first: left out: no load is stated, want a concurrency or a request rate"},
		// The nearest non-decreasing curve to 300, 100 is sum(1/y)/sum(1/y²) = 120: off by 60 %.
		{"falling", head + "1,300,10,100,11\n8,100,10,100,11\n", "no fit: ttft_ms is 300 at utilization 0, the nearest convex non-decreasing curve has 120 there: off by 60.0 %, want at most 25 % unless the profile accepts it"},
	} {
		p := fit(t, "x.csv", tc.text, FitOptions{})
		if p.Refusal != tc.want {
			t.Errorf("%s: refused with %q, want %q", tc.name, p.Refusal, tc.want)
		}
	}
	p := fit(t, "x.csv", head+"1,300,10,100,11\n8,100,10,100,11\n", FitOptions{AcceptError: true})
	if p.Refusal != "" || !p.Spec.AcceptErrorAbove25 || math.Abs(p.WorstRelError-0.6) > 1e-9 {
		t.Errorf("accepted: refusal %q, said %v, error %v, want none, true, 0.6", p.Refusal, p.Spec.AcceptErrorAbove25, p.WorstRelError)
	}
	p = fit(t, "x.csv", head+"1,100,10,100,11\n8,200,20,100,11\n", FitOptions{AcceptError: true})
	if p.Spec.AcceptErrorAbove25 {
		t.Error("a good fit says that it accepts a bad one")
	}
}
