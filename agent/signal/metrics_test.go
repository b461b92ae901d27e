package signal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseMetrics(t *testing.T) {
	u := Unknown()
	for _, test := range []struct {
		name, text string
		want       Report
		missing    []Missing
	}{
		{"vLLM, two data-parallel ranks", `# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 8.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="1",model_name="m"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.3
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.9
vllm:lora_requests_info{max_lora="0"} 1.7e+09
`, Report{12, 3, 0.4}, nil},
		{"vLLM V0", `vllm:num_requests_running{model_name="m"} 1
vllm:num_requests_swapped{model_name="m"} 2
vllm:num_requests_waiting{model_name="m"} 3
vllm:gpu_cache_usage_perc{model_name="m"} 0.25
`, Report{1, 5, 0.25}, nil},
		{"SGLang", `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="a{b"} 162.0
sglang:num_queue_reqs{model_name="a{b"} 2826.0
sglang:token_usage{model_name="a{b"} 0.28
`, Report{162, 2826, 0.28}, nil},
		{"trtllm-serve", "trtllm_num_requests_running{model_name=\"m\"} 2\r\ntrtllm_num_requests_waiting{model_name=\"m\"} 1\r\ntrtllm_kv_cache_utilization{model_name=\"m\"} 0.5\r\n",
			Report{2, 1, 0.5}, nil},
		{"Triton", `nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 4
nv_trt_llm_request_metrics{model="m",request_type="scheduled",version="1"} 6
nv_trt_llm_request_metrics{model="m",request_type="max",version="1"} 512
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m"} 0.4875
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="m"} 6239
`, Report{6, 4, 0.4875}, nil},
		{"TGI", "tgi_queue_size 3\ntgi_batch_current_size 9\n", Report{9, 3, u}, nil},
		{"llama.cpp, with a line that no parser takes", "llamacpp:n_busy_slots_per_decode -nan\nllamacpp:requests_processing 1\nllamacpp:requests_deferred 2\n",
			Report{1, 2, u}, nil},
		{"a TYPE that does not fit and is there twice", "# TYPE tgi_queue_size histogram\n# TYPE tgi_queue_size gauge\ntgi_queue_size 3\ntgi_batch_current_size 1",
			Report{1, 3, u}, nil},
		{"renamed", "vllm:num_requests_running 3\nvllm:queue_length 4\n",
			Report{3, u, u}, []Missing{{"vllm", Waiting}, {"vllm", KVUsage}}},
		{"one rank without a number", "vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} NaN\nvllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc 0.1\n",
			Report{u, 1, 0.1}, nil},
		{"values that cannot be", "vllm:num_requests_running -1\nvllm:num_requests_waiting +Inf\nvllm:kv_cache_usage_perc 55\n", Nothing(), nil},
	} {
		s, err := ParseMetrics([]byte(test.text))
		if err != nil || !same(s.Report, test.want) || !slices.Equal(s.Missing, test.missing) {
			t.Errorf("%s: got %v missing %v, error %v, want %v missing %v", test.name, s.Report, s.Missing, err, test.want, test.missing)
		}
	}
}

func TestParseMetricsRefuses(t *testing.T) {
	s, err := ParseMetrics([]byte("# nothing\nprocess_cpu_seconds_total 3\n"))
	if !errors.Is(err, ErrNoSeries) || !s.Report.Empty() {
		t.Errorf("other metrics: %v, %v", s, err)
	}
	s, err = ParseMetrics([]byte("vllm:num_requests_running{a=\"b\" 3\n"))
	if err == nil || !s.Report.Empty() {
		t.Errorf("a broken line: %v, %v", s, err)
	}
	s, err = newReader().readMetrics(strings.NewReader(strings.Repeat("x 1\n", 100)), 50)
	if err == nil || !strings.Contains(err.Error(), "over 50 bytes") || !s.Report.Empty() {
		t.Errorf("too long: %v, %v", s, err)
	}
}

// TestCase17RenamedMetric: an engine renames a metric: the old and the new name
// are read, and a name that is unknown here is missed aloud, not taken for zero.
func TestCase17RenamedMetric(t *testing.T) {
	for name, known := range map[string]bool{"kv_cache_usage_perc": true, "gpu_cache_usage_perc": true, "hbm_usage": false} {
		s, err := ParseMetrics([]byte("vllm:num_requests_running 0\nvllm:num_requests_waiting 0\nvllm:" + name + " 0.5\n"))
		if err != nil || Known(s.Report.KVUsage) != known || (len(s.Missing) == 0) != known {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// TestOrderOfLinesDoesNotMatter: a report is the same however the lines are
// shuffled, and doubling every rank doubles the counts.
func TestOrderOfLinesDoesNotMatter(t *testing.T) {
	lines := []string{}
	for rank := range 4 {
		lines = append(lines,
			fmt.Sprintf("vllm:num_requests_running{engine=\"%d\"} %d", rank, rank+1),
			fmt.Sprintf("vllm:num_requests_waiting{engine=\"%d\"} %d", rank, 2*rank),
			fmt.Sprintf("vllm:gpu_cache_usage_perc{engine=\"%d\"} 0.%d", rank, rank))
	}
	want, err := ParseMetrics([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(lines)
	got, err := ParseMetrics([]byte(strings.Join(lines, "\n")))
	if err != nil || got.Report.Running != want.Report.Running || got.Report.Waiting != want.Report.Waiting {
		t.Errorf("reversed: %v, %v, want %v", got.Report, err, want.Report)
	}
	text := strings.Join(lines, "\n")
	got, err = ParseMetrics([]byte(text + "\n" + strings.ReplaceAll(text, `engine="`, `engine="1`)))
	if err != nil || got.Report.Running != 2*want.Report.Running || got.Report.Waiting != 2*want.Report.Waiting {
		t.Errorf("doubled: %v, %v, want twice %v", got.Report, err, want.Report)
	}
}

func FuzzParseMetrics(f *testing.F) {
	for _, s := range []string{
		"vllm:num_requests_running{engine=\"0\"} 8\n# x\nvllm:num_requests_waiting NaN\n", "tgi_queue_size 3 123456\n",
		"nv_trt_llm_request_metrics{request_type=\"waiting\"} 4\n", "llamacpp:requests_processing -nan\n", "sglang:token_usage{", "",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseMetrics(text)
		if err != nil && !s.Report.Empty() {
			t.Errorf("refused with %v, but it says %v", err, s.Report)
		}
		checkBelievable(t, s.Report)
	})
}

// BenchmarkParseMetrics reads some 200 kB, most of it histograms, as a vLLM
// engine with a few models has.
func BenchmarkParseMetrics(b *testing.B) {
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"%d\",model_name=\"m\"} 1.0\n", i)
	}
	text.WriteString("vllm:num_requests_running{engine=\"0\"} 8\nvllm:num_requests_waiting{engine=\"0\"} 1\nvllm:kv_cache_usage_perc 0.5\n")
	r := newReader()
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := r.parse([]byte(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}
