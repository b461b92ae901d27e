package bench

import (
	"testing"

	"github.com/prometheus/common/model"
)

// counter makes a series of samples 60 s apart; negative values are gaps.
func counter(name, instance string, values ...float64) *model.SampleStream {
	s := &model.SampleStream{Metric: model.Metric{"__name__": model.LabelValue(name), "instance": model.LabelValue(instance), "model_name": "m"}}
	for i, v := range values {
		if v >= 0 {
			s.Values = append(s.Values, model.SamplePair{Timestamp: model.Time(60000 * (i + 1)), Value: model.SampleValue(v)})
		}
	}
	return s
}

// engineCounters are the six counters of an instance whose requests, 10 prompt
// and 3 output tokens each, have a TTFT of 0.5 s and a TBOT of 0.02 s; count is
// the counter of requests.
func engineCounters(instance string, count ...float64) model.Matrix {
	scaled := func(f float64) []float64 {
		out := make([]float64, len(count))
		for i, c := range count {
			out[i] = c * f
		}
		return out
	}
	return model.Matrix{
		counter("vllm:time_to_first_token_seconds_sum", instance, scaled(0.5)...),
		counter("vllm:time_to_first_token_seconds_count", instance, count...),
		counter("vllm:inter_token_latency_seconds_sum", instance, scaled(2*0.02)...),
		counter("vllm:inter_token_latency_seconds_count", instance, scaled(2)...),
		counter("vllm:prompt_tokens_total", instance, scaled(10)...),
		counter("vllm:generation_tokens_total", instance, scaled(3)...),
	}
}

func TestFromPrometheus(t *testing.T) {
	for _, tc := range []struct {
		name   string
		matrix model.Matrix
		rates  []float64 // of the runs
		notes  int
	}{
		{"steady", engineCounters("a", 0, 60, 120, 180), []float64{1}, 0},
		// 60 requests in each window but that of the restart, which says nothing.
		{"reset", engineCounters("a", 600, 660, 0, 60, 120), []float64{1}, 0},
		// The window over the gap has two minutes and two minutes' requests.
		{"gap", engineCounters("a", 0, 60, -1, 180, 240), []float64{1}, 0},
		{"idle", engineCounters("a", 0, 60, 60, 120, 180), []float64{1}, 0},
		{"replicas are one engine each", append(engineCounters("a", 0, 60, 120), engineCounters("b", 0, 60, 120)...), []float64{1}, 0},
		{"ranks of an instance are summed", append(engineCounters("a", 0, 60, 120, 180), engineCounters("a", 0, 60, 120, 180)...), []float64{2}, 0},
		{"a rank that comes late is no jump", append(engineCounters("a", 0, 60, 120, 180, 240), engineCounters("a", -1, 1000, 1060, 1120, 1180)...), []float64{2}, 0},
		{"two rates", engineCounters("a", 0, 60, 120, 180, 300, 420, 540), []float64{1, 2}, 0},
		{"a rate seen once", engineCounters("a", 0, 60, 120, 180, 300), []float64{1}, 1},
		{"too little", engineCounters("a", 0, 60), nil, 1},
		{"a counter is missing", engineCounters("a", 0, 60, 120, 180)[:5], nil, 0},
		{"nothing", nil, nil, 0},
	} {
		runs, notes := FromPrometheus(tc.matrix)
		if len(runs) != len(tc.rates) || len(notes) != tc.notes {
			t.Errorf("%s: %d runs, %d notes %v, want %d and %d", tc.name, len(runs), len(notes), notes, len(tc.rates), tc.notes)
			continue
		}
		for i, r := range runs {
			if !near9(r.CompletedRPS, tc.rates[i]) || !near9(r.TTFTMs, 500) || !near9(r.TBOTMs, 20) || !near9(r.PromptTokens, 10) || !near9(r.OutputTokens, 3) {
				t.Errorf("%s: run %d is %+v, want %v req/s, 500 and 20 ms, 10 and 3 tokens", tc.name, i, r, tc.rates[i])
			}
		}
	}
}

// TestPrometheusNames: of several spellings of a time one is used, the mean
// over requests first.
func TestPrometheusNames(t *testing.T) {
	m := engineCounters("a", 0, 60, 120, 180)
	m = append(m, counter("vllm:request_time_per_output_token_seconds_sum", "a", 0, 1.8, 3.6, 5.4),
		counter("vllm:request_time_per_output_token_seconds_count", "a", 0, 60, 120, 180))
	runs, _ := FromPrometheus(m)
	if len(runs) != 1 || !near9(runs[0].TBOTMs, 30) {
		t.Errorf("got %+v, want a TBOT of 30 ms", runs)
	}
	for name, want := range map[string]int{
		"sglang:time_to_first_token_seconds_sum":       ttftSum,
		"trtllm_time_per_output_token_seconds_count":   tbotCount,
		"vllm:request_prompt_tokens_total":             -1,
		"vllm:time_to_first_token_seconds_bucket":      -1,
		"gateway_http_time_to_first_token_seconds_sum": -1,
	} {
		if kind, _ := counterKind(name); kind != want {
			t.Errorf("%s is counter %d, want %d", name, kind, want)
		}
	}
}
