package bench

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// vllm reads a result of `vllm bench serve --save-result` (benchmark_serving.py
// before), or of SGLang's bench_serving, which has the same keys. Times are in
// ms by their names. A finite request_rate is an open loop that max_concurrency
// only bounds; with "inf" max_concurrency is what the loop keeps in flight.
func (in *reader) vllm(line int, o object) {
	r := Run{Line: line}
	done := o.number("completed")
	r.Completed, r.Failed = done, o.number("failed")
	if done > 0 {
		r.PromptTokens = o.number("total_input_tokens") / done
		r.OutputTokens = o.number("total_output_tokens") / done
	}
	r.TTFTMs = o.first("mean_ttft_ms", "median_ttft_ms")
	r.TBOTMs = o.first("mean_tpot_ms", "mean_itl_ms", "median_tpot_ms", "median_itl_ms")
	r.E2EMs = o.first("mean_e2el_ms", "mean_e2e_latency_ms")
	r.CompletedRPS = o.number("request_throughput")
	r.OfferedRPS = o.number("request_rate")
	if r.OfferedRPS == 0 {
		r.Concurrency = o.number("max_concurrency")
	}
	r.Labels = vllmLabels(o)
	switch {
	case o.text("ramp_up_strategy") != "":
		in.add(r, fmt.Sprintf("ramp_up_strategy is %q: the load changed during the run; run one level of load at a time", o.text("ramp_up_strategy")))
	case r.OfferedRPS == 0 && r.Concurrency == 0:
		in.add(r, "request_rate is inf and max_concurrency is not set: a burst has no level of load; run it with --max-concurrency or --request-rate")
	default:
		in.add(r)
	}
}

// vllmLabels returns what names the configuration: the model, and every text
// that the tool does not write itself, as --metadata KEY=VALUE does.
func vllmLabels(o object) []Label {
	var labels []Label
	for _, key := range slices.Sorted(maps.Keys(o)) {
		switch key {
		case "date", "endpoint_type", "tokenizer_id", "request_rate", "ramp_up_strategy":
			continue
		}
		if v := o.text(key); v != "" {
			labels = append(labels, Label{key, v})
		}
	}
	return labels
}

// guidellm reads GuideLLM's benchmarks.json: one benchmark per level of load.
// Its time_per_output_token_ms spreads the TTFT over all tokens, so that
// inter_token_latency_ms is the TBOT. request_latency is in seconds.
func (in *reader) guidellm(line int, o object) {
	list, ok := o["benchmarks"].([]any)
	if !ok {
		in.problemf(line, "benchmarks is no list, want GuideLLM's list of benchmarks")
		return
	}
	for i, element := range list {
		b, _ := element.(map[string]any)
		r := Run{Line: line, Part: fmt.Sprintf("benchmarks[%d]", i)}
		metrics := object(b).sub("metrics")
		mean := func(key string) float64 {
			m := metrics.sub(key)
			if status := m.sub("successful"); status != nil {
				m = status
			}
			return m.first("mean", "median")
		}
		r.TTFTMs, r.TBOTMs, r.E2EMs = mean("time_to_first_token_ms"), mean("inter_token_latency_ms"), 1000*mean("request_latency")
		r.PromptTokens, r.OutputTokens = mean("prompt_token_count"), mean("output_token_count")
		r.CompletedRPS = mean("requests_per_second")
		r.Completed = metrics.number("request_totals", "successful")
		r.Failed = metrics.number("request_totals", "errored")
		model := firstText(o.sub("args")["model"], o.sub("args", "backend_kwargs")["model"], object(b).sub("config", "backend")["model"])
		if model != "" {
			r.Labels = []Label{{"model", model}}
		}
		strategy := object(b).sub("config", "strategy")
		if strategy == nil {
			strategy = object(b).sub("args", "strategy")
		}
		switch kind := strategy.text("type_"); kind {
		case "synchronous":
			r.Concurrency = 1
		case "concurrent":
			r.Concurrency = strategy.first("streams", "max_concurrency")
		case "constant", "poisson", "async":
			r.OfferedRPS = strategy.number("rate")
		case "throughput":
			// As much in flight as the engine takes: what it took is the level.
			r.Concurrency = mean("request_concurrency")
		default:
			in.add(r, fmt.Sprintf("strategy is %q, want synchronous, concurrent, throughput, constant or poisson", kind))
			continue
		}
		in.add(r)
	}
}

// inferencePerf reads a stage_N_lifecycle_metrics.json of inference-perf. Times
// are in seconds. The summary over all stages is no level of load.
func (in *reader) inferencePerf(line int, o object) {
	success, load := o.sub("successes"), o.sub("load_summary")
	r := Run{Line: line, Labels: []Label{{"folder", filepath.ToSlash(filepath.Dir(in.file))}}}
	latency := success.sub("latency")
	mean := func(of object, key string) float64 { return of.sub(key).first("mean", "median") }
	r.TTFTMs = 1000 * mean(latency, "time_to_first_token")
	r.TBOTMs = 1000 * mean(latency, "time_per_output_token")
	if r.TBOTMs == 0 {
		r.TBOTMs = 1000 * mean(latency, "inter_token_latency")
	}
	r.E2EMs = 1000 * mean(latency, "request_latency")
	for _, key := range []string{"prompt_tokens", "prompt_len"} {
		r.PromptTokens = max(r.PromptTokens, mean(success, key))
	}
	for _, key := range []string{"output_tokens", "output_len"} {
		r.OutputTokens = max(r.OutputTokens, mean(success, key))
	}
	r.CompletedRPS = success.number("throughput", "requests_per_sec")
	r.Completed, r.Failed = success.number("count"), o.number("failures", "count")
	r.Concurrency = load.number("concurrency")
	if r.Concurrency == 0 {
		r.OfferedRPS = load.number("requested_rate")
	}
	switch {
	case r.OfferedRPS == 0 && r.Concurrency == 0:
		in.add(r, "states no requested_rate and no concurrency: a summary over stages; give the stage files")
	case latency["time_to_first_token"] == nil:
		in.add(r, "has no time_to_first_token: the test did not stream; run it with streaming: true")
	default:
		in.add(r)
	}
}

// genAIPerf reads profile_export_genai_perf.json or profile_export_aiperf.json:
// every metric states its unit.
func (in *reader) genAIPerf(line int, o object) {
	r := Run{Line: line}
	var faults []string
	ms := func(key string) float64 {
		m := o.sub(key)
		v := m.first("avg", "p50")
		scale, known := units[m.text("unit")]
		if v != 0 && !known {
			faults = append(faults, fmt.Sprintf("%s has the unit %q, want ms, s or us", key, m.text("unit")))
		}
		return v * scale
	}
	average := func(key string) float64 { return o.sub(key).number("avg") }
	r.TTFTMs, r.TBOTMs, r.E2EMs = ms("time_to_first_token"), ms("inter_token_latency"), ms("request_latency")
	r.PromptTokens = average("input_sequence_length")
	r.OutputTokens = average("output_sequence_length")
	r.CompletedRPS = average("request_throughput")
	r.Completed, r.Failed = average("request_count"), average("error_request_count")
	config := o.sub("input_config")
	// The place of these in input_config changes between versions.
	r.OfferedRPS = anywhere(map[string]any(config), "request_rate")
	if r.OfferedRPS == 0 {
		r.Concurrency = anywhere(map[string]any(config), "concurrency")
	}
	if model := firstText(config["model"], config["model_names"], config.sub("endpoint")["model_names"]); model != "" {
		r.Labels = []Label{{"model", model}}
	}
	if r.OfferedRPS == 0 && r.Concurrency == 0 {
		faults = append(faults, "input_config states no concurrency and no request_rate")
		r.CompletedRPS = 0
	}
	in.add(r, slices.Compact(faults)...)
}

// anywhere returns the first number under a key, or the only one of its list,
// at any depth, in order of keys; 0 if there is none.
func anywhere(value any, key string) float64 {
	switch x := value.(type) {
	case map[string]any:
		found := x[key]
		if list, ok := found.([]any); ok && len(list) == 1 {
			found = list[0]
		}
		if v, ok := found.(float64); ok {
			return v
		}
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if v := anywhere(x[k], key); v != 0 {
				return v
			}
		}
	case []any:
		for _, element := range x {
			if v := anywhere(element, key); v != 0 {
				return v
			}
		}
	}
	return 0
}

// firstText returns the first value that is a string or starts with one.
func firstText(values ...any) string {
	for _, value := range values {
		if list, ok := value.([]any); ok && len(list) > 0 {
			value = list[0]
		}
		if s, ok := value.(string); ok && s != "" {
			return s
		}
	}
	return ""
}
