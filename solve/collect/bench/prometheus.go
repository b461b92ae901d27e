package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// counters are the cumulative counters of an engine, by the ends of the names
// that vLLM, SGLang and trtllm-serve give them; the first of several is used.
var counters = [counterKinds][]string{
	ttftSum:      {"time_to_first_token_seconds_sum"},
	ttftCount:    {"time_to_first_token_seconds_count"},
	tbotSum:      {"request_time_per_output_token_seconds_sum", "inter_token_latency_seconds_sum", "time_per_output_token_seconds_sum"},
	tbotCount:    {"request_time_per_output_token_seconds_count", "inter_token_latency_seconds_count", "time_per_output_token_seconds_count"},
	promptTokens: {"prompt_tokens_total"},
	outputTokens: {"generation_tokens_total"},
}

const (
	ttftSum = iota
	ttftCount
	tbotSum
	tbotCount
	promptTokens
	outputTokens
	counterKinds
)

const (
	rateBins   = 10 // of equal width, from 0 to the highest rate
	minWindows = 3  // per bin: the mean of fewer says little
)

// prometheus reads the saved answer of /api/v1/query_range.
func (in *reader) prometheus(line int, raw []byte) {
	var answer struct {
		Status string
		Error  string
		Data   struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		in.problemf(line, "is no answer of Prometheus: %v", err)
		return
	}
	if answer.Status != "success" || answer.Data.ResultType != "matrix" {
		in.problemf(line, "status is %q with a result of type %q, want success with a matrix: the answer of query_range; %s", answer.Status, answer.Data.ResultType, answer.Error)
		return
	}
	var matrix model.Matrix
	if err := json.Unmarshal(answer.Data.Result, &matrix); err != nil {
		in.problemf(line, "is no answer of Prometheus: %v", err)
		return
	}
	runs, notes := FromPrometheus(matrix)
	for i := range notes {
		notes[i].File = in.file
	}
	in.notes = append(in.notes, notes...)
	if len(runs) == 0 {
		in.problemf(line, "has no window with TTFT, TBOT and token counters, want the series named *time_to_first_token_seconds_sum and _count, the same of inter_token_latency_seconds or time_per_output_token_seconds, *prompt_tokens_total and *generation_tokens_total")
	}
	for _, r := range runs {
		in.add(r)
	}
}

// FromPrometheus makes runs of the raw counters of engines over time, as
//
//	{__name__=~".+:(time_to_first_token_seconds|inter_token_latency_seconds)_(sum|count)|.+:(prompt|generation)_tokens_total"}
//
// over a range gives them. Between two samples of an instance the increases
// give its rate and its mean latencies; windows of a model are gathered in bins
// of rate, over all instances: they are replicas of one engine. A counter that
// falls was reset; its window is left out, and so is one with a gap.
func FromPrometheus(matrix model.Matrix) ([]Run, []Note) {
	var runs []Run
	var notes []Note
	instances := gather(matrix)
	models := make(map[string][]window)
	for _, i := range instances {
		models[i.model] = append(models[i.model], i.windows()...)
	}
	for _, name := range sortedKeys(models) {
		found, dropped := bins(name, models[name])
		runs = append(runs, found...)
		if dropped > 0 {
			notes = append(notes, Note{Message: fmt.Sprintf("model %q: %d of %d levels of rate have fewer than %d windows and are not used; take a longer range", name, dropped, dropped+len(found), minWindows)})
		}
	}
	return runs, notes
}

// instance is one engine process, its ranks summed.
type instance struct {
	model string
	// at holds, per time, the sum of each counter over the ranks and how many
	// ranks were seen: a sum over fewer would look like a reset.
	at map[model.Time]*sample
}

type sample struct {
	sum  [counterKinds]float64
	seen [counterKinds]int
}

// gather sorts series by instance, in order of name.
func gather(matrix model.Matrix) []*instance {
	best := bestNames(matrix)
	byKey := make(map[string]*instance)
	for _, series := range matrix {
		kind, rank := counterKind(string(series.Metric[model.MetricNameLabel]))
		if kind < 0 {
			continue
		}
		name := cmp.Or(string(series.Metric["model_name"]), string(series.Metric["model"]))
		if rank != best[name][kind] {
			continue
		}
		key := name + "\x00" + string(series.Metric["instance"]) + "\x00" + string(series.Metric["pod"])
		i := byKey[key]
		if i == nil {
			i = &instance{model: name, at: make(map[model.Time]*sample)}
			byKey[key] = i
		}
		for _, p := range series.Values {
			s := i.at[p.Timestamp]
			if s == nil {
				s = &sample{}
				i.at[p.Timestamp] = s
			}
			s.sum[kind] += float64(p.Value)
			s.seen[kind]++
		}
	}
	list := make([]*instance, 0, len(byKey))
	for _, key := range sortedKeys(byKey) {
		list = append(list, byKey[key])
	}
	return list
}

// bestNames says, per model, which spelling of each counter to use.
func bestNames(matrix model.Matrix) map[string][counterKinds]int {
	best := make(map[string][counterKinds]int)
	seen := make(map[string][counterKinds]bool)
	for _, series := range matrix {
		kind, rank := counterKind(string(series.Metric[model.MetricNameLabel]))
		if kind < 0 {
			continue
		}
		name := cmp.Or(string(series.Metric["model_name"]), string(series.Metric["model"]))
		b, s := best[name], seen[name]
		if !s[kind] || rank < b[kind] {
			b[kind], s[kind] = rank, true
		}
		best[name], seen[name] = b, s
	}
	return best
}

// counterKind returns what a series counts, -1 if it is none of ours.
func counterKind(name string) (kind, rank int) {
	for kind, ends := range counters {
		for rank, end := range ends {
			if rest, ok := strings.CutSuffix(name, end); ok && (rest == "" || strings.HasSuffix(rest, ":") || rest == "trtllm_") {
				return kind, rank
			}
		}
	}
	return -1, 0
}

// window is what an instance did between two samples.
type window struct {
	seconds  float64
	increase [counterKinds]float64
}

// windows returns the windows in which all counters are known and rose.
func (i *instance) windows() []window {
	times := sortedKeys(i.at)
	var list []window
	for k := 1; k < len(times); k++ {
		a, b := i.at[times[k-1]], i.at[times[k]]
		w := window{seconds: times[k].Sub(times[k-1]).Seconds()}
		good := a.seen == b.seen
		for kind := range counterKinds {
			w.increase[kind] = b.sum[kind] - a.sum[kind]
			if !(w.increase[kind] > 0) || math.IsInf(w.increase[kind], 0) || a.seen[kind] == 0 {
				good = false // a reset, idle, NaN, or unknown
			}
		}
		if good {
			list = append(list, w)
		}
	}
	return list
}

// bins gathers the windows of a model by rate, in first tokens per second, and
// returns a run for each bin with enough windows, and how many have fewer. All
// runs have the mean lengths of the whole range: which requests come at which
// rate is chance.
func bins(name string, windows []window) (runs []Run, dropped int) {
	top := 0.0
	var all window
	for _, w := range windows {
		top = max(top, w.increase[ttftCount]/w.seconds)
		all.add(w)
	}
	var sums [rateBins]window
	var counts [rateBins]int
	for _, w := range windows {
		b := min(rateBins-1, int(rateBins*w.increase[ttftCount]/w.seconds/top))
		sums[b].add(w)
		counts[b]++
	}
	for b, s := range sums {
		switch {
		case counts[b] == 0:
			continue
		case counts[b] < minWindows:
			dropped++
			continue
		}
		rate := s.increase[ttftCount] / s.seconds
		runs = append(runs, Run{
			Part:         fmt.Sprintf("model %q, %d windows about %.4g req/s", name, counts[b], rate),
			Labels:       []Label{{"model", name}},
			PromptTokens: all.increase[promptTokens] / all.increase[ttftCount],
			OutputTokens: all.increase[outputTokens] / all.increase[ttftCount],
			CompletedRPS: rate,
			TTFTMs:       1000 * s.increase[ttftSum] / s.increase[ttftCount],
			TBOTMs:       1000 * s.increase[tbotSum] / s.increase[tbotCount],
		})
	}
	return runs, dropped
}

func (w *window) add(other window) {
	w.seconds += other.seconds
	for kind := range w.increase {
		w.increase[kind] += other.increase[kind]
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
