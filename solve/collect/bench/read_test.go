package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/irb-project/irb/solve/input"
)

const fixtures = "../../../fixtures/profile"

func readFixtures(t testing.TB, pattern string) *Results {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(fixtures, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures %s: %v", pattern, err)
	}
	var files []File
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{filepath.Base(path), data})
	}
	results, err := Read(files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestFormats reads one file of every tool; the numbers are those in the files.
func TestFormats(t *testing.T) {
	for _, tc := range []struct {
		pattern, format string
		index, runs     int
		want            Run
	}{
		{"vllm.jsonl", "vLLM", 2, 7, Run{
			File: "vllm.jsonl", Line: 3, Labels: []Label{{"backend", "openai"}, {"model_id", "example/model-8b"}},
			PromptTokens: 1024, OutputTokens: 256, Concurrency: 32, CompletedRPS: 10.719, TTFTMs: 103.24, TBOTMs: 11.3024, Completed: 256}},
		{"guidellm.json", "GuideLLM", 1, 5, Run{
			File: "guidellm.json", Line: 1, Part: "benchmarks[1]", Labels: []Label{{"model", "example/model-8b"}},
			PromptTokens: 512, OutputTokens: 128, Concurrency: 8, CompletedRPS: 6.9351, TTFTMs: 35.14, TBOTMs: 8.8064, E2EMs: 1153.55, Completed: 400}},
		{"inference-perf/stage_1*", "inference-perf", 0, 1, Run{
			File: "stage_1_lifecycle_metrics.json", Line: 1, Labels: []Label{{"folder", "."}},
			PromptTokens: 200, OutputTokens: 64, OfferedRPS: 20, CompletedRPS: 19.9, TTFTMs: 33, TBOTMs: 4, E2EMs: 285, Completed: 1200}},
		{"aiperf-c16.json", "GenAI-Perf or AIPerf", 0, 1, Run{
			File: "aiperf-c16.json", Line: 1, Labels: []Label{{"model", "example/model-8b"}},
			PromptTokens: 550, OutputTokens: 100, Concurrency: 16, CompletedRPS: 15.94158, TTFTMs: 50.73, TBOTMs: 9.6256, E2EMs: 1003.66, Completed: 200}},
		// Four windows of 60 s: 120 requests each, TTFT 55 ms, TBOT 11 ms.
		{"prometheus.json", "Prometheus", 1, 4, Run{
			File: "prometheus.json", Part: `model "example/model-8b", 4 windows about 2 req/s`, Labels: []Label{{"model", "example/model-8b"}},
			PromptTokens: 800, OutputTokens: 101, CompletedRPS: 2, TTFTMs: 55, TBOTMs: 11}},
		{"sweep.csv", "CSV", 0, 11, Run{
			File: "sweep.csv", Line: 3, Labels: []Label{{"gpu", "x1"}, {"tp", "1"}},
			PromptTokens: 1000, OutputTokens: 101, Concurrency: 1, TTFTMs: 50, TBOTMs: 10}},
	} {
		results := readFixtures(t, tc.pattern)
		if len(results.Runs) != tc.runs || results.Sources[0].Format != tc.format {
			t.Errorf("%s: %d runs of %q, want %d of %q", tc.pattern, len(results.Runs), results.Sources[0].Format, tc.runs, tc.format)
			continue
		}
		if diff := cmp.Diff(tc.want, results.Runs[tc.index], cmpopts.EquateApprox(1e-6, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.pattern, diff)
		}
	}
}

// TestJSONForms are what the fixtures do not have.
func TestJSONForms(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       Run // the first
		fault      string
	}{
		{"vLLM with a finite rate is an open loop", `{"request_throughput": 4.9, "request_rate": 5.0, "max_concurrency": 64, "completed": 10, "failed": 0, "total_input_tokens": 1000, "total_output_tokens": 110, "mean_ttft_ms": 50, "mean_tpot_ms": 9}`,
			Run{PromptTokens: 100, OutputTokens: 11, OfferedRPS: 5, CompletedRPS: 4.9, TTFTMs: 50, TBOTMs: 9, Completed: 10}, ""},
		{"vLLM burst", `{"request_throughput": 4.9, "request_rate": "inf", "max_concurrency": null, "completed": 10, "total_input_tokens": 1000, "total_output_tokens": 110, "mean_ttft_ms": 50, "mean_tpot_ms": 9}`,
			Run{PromptTokens: 100, OutputTokens: 11, CompletedRPS: 4.9, TTFTMs: 50, TBOTMs: 9, Completed: 10},
			"request_rate is inf and max_concurrency is not set: a burst has no level of load; run it with --max-concurrency or --request-rate"},
		{"vLLM ramp and metadata", `{"request_throughput": 4.9, "request_rate": "inf", "ramp_up_strategy": "linear", "max_concurrency": 4, "gpu": "h100", "completed": 10, "total_input_tokens": 1000, "total_output_tokens": 110, "mean_ttft_ms": 50, "mean_tpot_ms": 9}`,
			Run{Labels: []Label{{"gpu", "h100"}}, PromptTokens: 100, OutputTokens: 11, Concurrency: 4, CompletedRPS: 4.9, TTFTMs: 50, TBOTMs: 9, Completed: 10},
			`ramp_up_strategy is "linear": the load changed during the run; run one level of load at a time`},
		{"Python's Infinity and NaN", `[{"request_throughput": 10, "request_rate": Infinity, "max_concurrency": 2, "completed": 10, "total_input_tokens": 1000, "total_output_tokens": 110, "mean_ttft_ms": 100, "mean_tpot_ms": NaN, "median_tpot_ms": 10, "generated_texts": ["NaN \" NaN"]}]`,
			Run{PromptTokens: 100, OutputTokens: 11, Concurrency: 2, CompletedRPS: 10, TTFTMs: 100, TBOTMs: 10, Completed: 10}, ""},
		{"GuideLLM, older", `{"args": {"backend_kwargs": {"model": "m"}}, "benchmarks": [{"args": {"strategy": {"type_": "constant", "rate": 3}}, "metrics": {"requests_per_second": {"mean": 2.9}, "prompt_token_count": {"mean": 100}, "output_token_count": {"mean": 11}, "time_to_first_token_ms": {"mean": 50}, "inter_token_latency_ms": {"mean": 9}}}]}`,
			Run{Part: "benchmarks[0]", Labels: []Label{{"model", "m"}}, PromptTokens: 100, OutputTokens: 11, OfferedRPS: 3, CompletedRPS: 2.9, TTFTMs: 50, TBOTMs: 9}, ""},
		{"inference-perf, newer", `{"load_summary": {"count": 5, "requested_rate": 9, "concurrency": 4}, "successes": {"count": 5, "latency": {"time_to_first_token": {"mean": 0.1}, "time_per_output_token": {"mean": 0.01}}, "throughput": {"requests_per_sec": 20}, "prompt_tokens": {"total": 500, "mean": 100}, "output_tokens": {"mean": 11}}, "failures": {"count": 0}}`,
			Run{Labels: []Label{{"folder", "."}}, PromptTokens: 100, OutputTokens: 11, Concurrency: 4, CompletedRPS: 20, TTFTMs: 100, TBOTMs: 10, Completed: 5}, ""},
		{"inference-perf without streaming", `{"load_summary": {"requested_rate": 9}, "successes": {"latency": {"time_to_first_token": null, "time_per_output_token": {"mean": 0.01}}, "throughput": {"requests_per_sec": 20}, "prompt_len": {"mean": 100}, "output_len": {"mean": 11}}}`,
			Run{Labels: []Label{{"folder", "."}}, PromptTokens: 100, OutputTokens: 11, OfferedRPS: 9, CompletedRPS: 20, TBOTMs: 10},
			"has no time_to_first_token: the test did not stream; run it with streaming: true; TTFT is missing or 0, want a number of ms"},
		{"GenAI-Perf in seconds", `{"time_to_first_token": {"unit": "s", "avg": 0.05}, "inter_token_latency": {"unit": "us", "avg": 9000}, "input_sequence_length": {"unit": "tokens", "avg": 100}, "output_sequence_length": {"avg": 11}, "request_throughput": {"unit": "requests/sec", "avg": 14}, "input_config": {"model": ["m"], "perf_analyzer": {"stimulus": {"concurrency": 2}}}}`,
			Run{Labels: []Label{{"model", "m"}}, PromptTokens: 100, OutputTokens: 11, Concurrency: 2, CompletedRPS: 14, TTFTMs: 50, TBOTMs: 9}, ""},
		{"AIPerf with phases", `{"time_to_first_token": {"unit": "ms", "avg": 50}, "inter_token_latency": {"unit": "ms", "avg": 9}, "input_sequence_length": {"avg": 100}, "output_sequence_length": {"avg": 11}, "request_throughput": {"avg": 3.9}, "input_config": {"endpoint": {"model_names": ["m"]}, "phases": [{"name": "warm-up"}, {"request_rate": 4, "concurrency": 64}]}}`,
			Run{Labels: []Label{{"model", "m"}}, PromptTokens: 100, OutputTokens: 11, OfferedRPS: 4, CompletedRPS: 3.9, TTFTMs: 50, TBOTMs: 9}, ""},
		{"GenAI-Perf in days", `{"time_to_first_token": {"unit": "days", "avg": 0.05}, "inter_token_latency": {"unit": "ms", "avg": 9}, "input_sequence_length": {"avg": 100}, "output_sequence_length": {"avg": 11}, "input_config": {"concurrency": [2]}}`,
			Run{PromptTokens: 100, OutputTokens: 11, Concurrency: 2, TBOTMs: 9},
			`time_to_first_token has the unit "days", want ms, s or us; TTFT is missing or 0, want a number of ms`},
	} {
		results, err := Read([]File{{"x.json", []byte(tc.text)}}, Options{})
		if err != nil || len(results.Runs) != 1 {
			t.Errorf("%s: %v, want one run", tc.name, err)
			continue
		}
		tc.want.File, tc.want.Line, tc.want.Fault = "x.json", 1, tc.fault
		if diff := cmp.Diff(tc.want, results.Runs[0], cmpopts.EquateApprox(1e-9, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestUnreadable: what makes a file useless, all of it at once.
func TestUnreadable(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"empty", " \n", "x: is empty"},
		{"header only", "concurrency,ttft_ms,tpot_ms,isl,osl\n", "x: has no results"},
		{"no units", "concurrency,TTFT,TPOT,isl,osl\n1,2,3,4,5\n", `x:1: column "TTFT" does not say its unit, want it in the name: TTFT_ms, TTFT_s or TTFT_us
x:1: column "TPOT" does not say its unit, want it in the name: TPOT_ms, TPOT_s or TPOT_us`},
		{"no columns", "a,b\n1,2\n", `x:1: has no column of TTFT, like ttft_ms or mean_ttft_ms
x:1: has no column of TBOT, like tpot_ms, itl_ms or tbot_ms
x:1: has no column of load, want concurrency, request_rate_rps or throughput_rps
x:1: has no column prompt_tokens (or isl), want one, or --prompt-tokens
x:1: has no column output_tokens (or osl), want one, or --output-tokens`},
		{"twice", "concurrency,ttft_ms,tpot_ms,isl,osl,isl\n", `x:1: column "isl" is there twice`},
		{"quotes", "concurrency,ttft_ms,tpot_ms,isl,osl\n1,\"2\n", `x:2: is not CSV: extraneous or missing " in quoted-field`},
		{"broken JSON", "{\n\"a\": 1,\n", "x:3: is not JSON: unexpected EOF"},
		{"not JSON", "{\n\"a\": 1,\n\"b\": x}", "x:3: is not JSON: invalid character 'x' looking for beginning of value"},
		{"second document", "{\"request_throughput\": 1}\n{\"b\": x}", "x:2: is not JSON: invalid character 'x' looking for beginning of value"},
		{"list", "[1]", "x:1: has a float64 where a result is wanted, an object"},
		{"other JSON", `{"b": 1, "a": 2}`, `x:1: is no result of vllm bench serve, GuideLLM, inference-perf, GenAI-Perf, AIPerf or a Prometheus range query; its keys are ["a" "b"]`},
		{"instant query", `{"status": "success", "data": {"resultType": "vector", "result": []}}`, `x:1: status is "success" with a result of type "vector", want success with a matrix: the answer of query_range; `},
		{"failed query", `{"status": "error", "error": "bad_data", "data": {}}`, `x:1: status is "error" with a result of type "", want success with a matrix: the answer of query_range; bad_data`},
		{"other series", `{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {"__name__": "up"}, "values": [[1, "1"], [2, "1"]]}]}}`, "x:1: has no window with TTFT, TBOT and token counters, want the series named *time_to_first_token_seconds_sum and _count, the same of inter_token_latency_seconds or time_per_output_token_seconds, *prompt_tokens_total and *generation_tokens_total"},
	} {
		_, err := Read([]File{{"x", []byte(tc.text)}}, Options{})
		var problems *input.Problems
		if !errors.As(err, &problems) || err.Error() != tc.want {
			t.Errorf("%s: got %v, want\n%s", tc.name, err, tc.want)
		}
	}
}

func TestColumns(t *testing.T) {
	for _, tc := range []struct {
		name string
		want column
	}{
		{"Mean TTFT (ms)", column{quantity: ttft, scale: 1, rank: 0}},
		{"ttft_s", column{quantity: ttft, scale: 1000, rank: 2}},
		{"ttft_ms_p50", column{quantity: ttft, scale: 1, rank: 4}},
		{"Time to First Token [us]", column{quantity: ttft, scale: 1e-3, rank: 2}},
		{"tpot_ms", column{quantity: tbot, scale: 1, rank: 2}},
		{"mean_itl_ms", column{quantity: tbot, scale: 1, rank: 1}},
		{"Median TPOT (ms)", column{quantity: tbot, scale: 1, rank: 4}},
		{"e2e_s_mean", column{quantity: e2e, scale: 1000, rank: 0}},
		{"ISL", column{quantity: prompt, scale: 1, rank: 3}},
		{"Max Concurrency", column{quantity: concurrency, scale: 1, rank: 1}},
	} {
		if got, ok := parseColumn(tc.name); !ok || got != tc.want {
			t.Errorf("%q is %+v (%v), want %+v", tc.name, got, ok, tc.want)
		}
	}
	for _, name := range []string{"ttft_ms_p99", "slo_ttft_ms", "gpu", "std_ttft_ms", "tpot_limit_ms", "shuttft_ms", ""} {
		if got, ok := parseColumn(name); ok {
			t.Errorf("%q is %+v, want no quantity", name, got)
		}
	}
	// A mean goes before a column that does not say, and that before a median.
	p := fit(t, "x.csv", "concurrency,ttft_ms_p50,ttft_ms_mean,ttft_ms,tpot_ms,isl,osl\n1,1000,100,2000,10,100,11\n4,1000,110,2000,11,100,11\n", FitOptions{})
	if p.Points[0].TTFTMs != 100 {
		t.Errorf("TTFT %v, want the mean, 100", p.Points[0].TTFTMs)
	}
}

// TestTokenRates: lengths and rates from tokens per second.
func TestTokenRates(t *testing.T) {
	results, err := Read([]File{
		{"lengths.csv", []byte("concurrency,ttft_ms,tpot_ms,throughput_rps,input_tok_s,output_tok_s\n1,100,10,5,500,55\n")},
		{"rate.csv", []byte("concurrency,ttft_ms,tpot_ms,isl,osl,output_tok_s\n1,100,10,100,11,55\n")},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results.Runs {
		if r.PromptTokens != 100 || r.OutputTokens != 11 || r.CompletedRPS != 5 || r.Fault != "" {
			t.Errorf("%s: %+v, want 100 and 11 tokens at 5 req/s", r.File, r)
		}
	}
}

func TestBy(t *testing.T) {
	const text = "gpu,note,concurrency,ttft_ms,tpot_ms,isl,osl\na,x,1,100,10,100,11\na,y,4,120,12,100,11\n"
	results, err := Read([]File{{"x.csv", []byte(text)}}, Options{By: []string{"gpu"}})
	if err != nil || len(Fit(results.Runs, FitOptions{})) != 1 {
		t.Errorf("by gpu: %v, want one configuration", err)
	}
	if s := results.Sources[0]; strings.Join(s.By, " ") != "gpu" || strings.Join(s.Ignored, " ") != "note" {
		t.Errorf("by %q, ignored %q, want gpu and note", s.By, s.Ignored)
	}
	_, err = Read([]File{{"x.csv", []byte(text)}}, Options{By: []string{"gpus"}})
	if want := `x.csv:1: has no column "gpus" to tell configurations apart; it has gpu, note, concurrency, ttft_ms, tpot_ms, isl, osl`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestSelect(t *testing.T) {
	runs := []Run{{Labels: []Label{{"gpu", "a"}, {"tp", "1"}}}, {Labels: []Label{{"gpu", "b"}, {"tp", "2"}}}}
	for _, tc := range []struct {
		labels []Label
		n      int
		err    string
	}{
		{nil, 2, ""},
		{[]Label{{"gpu", "b"}}, 1, ""},
		{[]Label{{"gpu", "c"}}, 0, `no run has gpu = "c", want one of "a", "b"`},
		{[]Label{{"gpu", "a"}, {"tp", "2"}}, 0, `no run has tp = "2", want one of "1"`},
		{[]Label{{"cpu", "a"}}, 0, `no run has a "cpu", want one of "gpu", "tp"`},
	} {
		got, err := Select(runs, tc.labels)
		if len(got) != tc.n || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%v: %d runs, %v, want %d, %s", tc.labels, len(got), err, tc.n, tc.err)
		}
	}
}
