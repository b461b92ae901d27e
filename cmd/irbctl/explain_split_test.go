package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// townB are the profiles' times between output tokens in ms, at townV.
var townB = [][]float64{{1, 1.25, 2, 4, 8}, {2, 2, 2.5, 3, 6}, {1.5, 1.75, 2.25, 4.25, 9}}

// townOutputWork is the policy's output_token_work.
const townOutputWork = 4.0

// mixedTown is a town whose sources differ in prompt and output, solved with
// split work: prompts queue for prompts and output tokens for output tokens.
type mixedTown struct {
	*town
	prompt, output []float64
}

func newMixedTown(random *rand.Rand, degenerate bool) *mixedTown {
	f := &mixedTown{town: newTown(random, degenerate)}
	f.cached = 0
	mixes := [][2]float64{{500, 50}, {1000, 100}, {2000, 60}, {600, 200}, {1500, 40}}
	for s := range f.rps {
		mix := mixes[random.IntN(len(mixes))]
		f.prompt, f.output = append(f.prompt, mix[0]), append(f.output, mix[1])
		// As much work as the town's own requests.
		f.rps[s] *= (townPrompt + townOutputWork*townOutput) / f.work(s)
	}
	return f
}

func (f *mixedTown) work(s int) float64 { return f.prompt[s] + townOutputWork*f.output[s] }

func (f *mixedTown) write(t *testing.T, folder string) {
	t.Helper()
	f.town.write(t, folder)
	var demand strings.Builder
	demand.WriteString("cluster,rps,prompt_tokens,output_tokens\n")
	for s, cluster := range f.clusters {
		fmt.Fprintf(&demand, "%s,%v,%v,%v\n", cluster, f.rps[s], f.prompt[s], f.output[s])
	}
	path := filepath.Join(folder, "engines.toml")
	engines, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(engines)
	for _, ms := range townB {
		text = strings.Replace(text, "tbot_ms = [1, 1, 1, 1, 1]", "tbot_ms  = "+strings.ReplaceAll(fmt.Sprint(ms), " ", ", "), 1)
	}
	for name, text := range map[string]string{
		"demand.csv": demand.String(), "engines.toml": text,
		"policy.toml": fmt.Sprintf("fleet = \"town\"\nwork = \"split\"\nmax_utilization = %v\noutput_token_work = %v\n", townMaxUtilization, townOutputWork),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// slopes returns a table's value at v and its slopes a little to the left and
// right; beyond its end it goes on.
func slopes(table []float64, v float64) (value, left, right float64) {
	slope := func(v float64) (i int, s float64) {
		for i < len(townV)-2 && v > townV[i+1] {
			i++
		}
		return i, (table[i+1] - table[i]) / (townV[i+1] - townV[i])
	}
	i, s := slope(v)
	_, left = slope(v - 1e-6)
	_, right = slope(v + 1e-6)
	return table[i] + s*(v-townV[i]), left, right
}

// splitCost is what a pair's cost must be, in ms: the externality and the kink
// together are in [extLeft, extRight].
type splitCost struct {
	net, base, delay, extLeft, extRight float64
	full                                bool
}

func (f *mixedTown) expect(c, e int, promptRate, outputRate float64) splitCost {
	kind, q, o := f.profile[e], f.prompt[c], f.output[c]
	vp, vo := promptRate/(f.capacity[e]*townPrompt), outputRate/(f.capacity[e]*townOutput)
	ttft, pLeft, pRight := slopes(townT[kind], vp)
	tbot, oLeft, oRight := slopes(townB[kind], vo)
	ttft0, tbot0 := townT[kind][0], townB[kind][0]
	limit := townMaxUtilization * f.capacity[e] * (townPrompt + townOutputWork*townOutput)
	return splitCost{
		net: f.rtt[c][e], base: ttft0*q/townPrompt + o*tbot0,
		delay:    q*(ttft-ttft0)/townPrompt + o*(tbot-tbot0),
		extLeft:  q*vp*pLeft/townPrompt + o*vo*oLeft,
		extRight: q*vp*pRight/townPrompt + o*vo*oRight,
		full:     promptRate+townOutputWork*outputRate >= limit*(1-1e-6),
	}
}

func (f *mixedTown) judge(t *testing.T, seed uint64, x *told) (kinks, limits int) {
	t.Helper()
	prompt, output := make([]float64, len(f.names)), make([]float64, len(f.names))
	for _, s := range x.Sources {
		c := f.cluster(s.Cluster)
		for _, w := range s.Weights {
			e := f.engine(w.Engine)
			prompt[e] += w.RPS * f.prompt[c]
			output[e] += w.RPS * f.output[c]
		}
	}
	for _, s := range x.Sources {
		c := f.cluster(s.Cluster)
		for i, w := range append(s.Weights, s.Alternatives...) {
			e := f.engine(w.Engine)
			p, cost := f.expect(c, e, prompt[e], output[e]), w.Cost
			where := fmt.Sprintf("seed %d: %s on %s: %+v, want %+v", seed, s.Cluster, w.Engine, cost, p)
			near := func(got, want float64) bool { return math.Abs(got-want) <= 1e-6*max(1, math.Abs(want)) }
			within := func(v float64) bool { return v >= p.extLeft-1e-3 && v <= p.extRight+1e-3 }
			if !near(cost.Net, p.net) || !near(cost.Base, p.base) || !near(cost.Delay, p.delay) {
				t.Errorf("%s: network, base or delay", where)
			}
			if !within(cost.Externality) || cost.Kink < 0 || !within(cost.Externality+cost.Kink) {
				t.Errorf("%s: externality or kink", where)
			}
			if cost.Limit < 0 || cost.Limit > 1e-6*cost.Total && !p.full || cost.Share != 0 || cost.Cache != 0 {
				t.Errorf("%s: limit, share or cache", where)
			}
			if sum := cost.Net + cost.Base + cost.Delay + cost.Externality + cost.Kink + cost.Limit; math.Abs(sum-cost.Total) > 1e-6 {
				t.Errorf("%s: the parts sum to %v", where, sum)
			}
			used, share := i < len(s.Weights), w.RPS/f.rps[c]
			if used && share > 1e-6 && !near(cost.Total, s.PriceMs) || !used && cost.Total < s.PriceMs-1e-3 {
				t.Errorf("%s: the price is %v", where, s.PriceMs)
			}
			if used && share < 1.0/(1<<33) {
				t.Errorf("%s: a weight of %v is less than half a quota", where, share)
			}
			if p.extRight-p.extLeft > 1e-3 {
				kinks++
			}
			if p.full {
				limits++
			}
		}
	}
	return kinks, limits
}

func TestSplitCostsOfRandomFleets(t *testing.T) {
	folder := t.TempDir()
	kinks, limits := 0, 0
	for seed := range uint64(*fleets / 4) {
		random := rand.New(rand.NewPCG(seed, 13))
		f := newMixedTown(random, seed%2 == 0)
		f.write(t, folder)
		k, l := f.judge(t, seed, explained(t, folder))
		kinks, limits = kinks+k, limits+l
		if t.Failed() {
			return
		}
	}
	if kinks < 5 || limits < 5 {
		t.Errorf("pairs seen: %d at kinks, %d at limits: the generator has lost its aim", kinks, limits)
	}
}
