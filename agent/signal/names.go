package signal

// family is the engine software that a name belongs to.
type family uint8

const (
	vLLM family = iota
	sgLang
	trtLLM
	triton
	tgi
	llamaCpp
	families
)

var familyNames = [families]string{"vllm", "sglang", "trtllm", "triton", "tgi", "llamacpp"}

// series is one row of the table of metrics.
type series struct {
	family     family
	quantity   Quantity
	name       string
	label      string // only series with this label have the quantity; "": all
	labelValue string
	use        use
}

// use is how several rows of one family and quantity go together.
type use uint8

const (
	expected use = iota // its absence is worth an alarm
	instead             // another spelling, read if the rows above it are absent
	added               // part of the quantity, where it exists
)

// metricNames returns the table: the names that engines have for the quantities
// (checked against captures of each engine; the old name below the new one).
func metricNames() []series {
	return []series{
		{vLLM, Running, "vllm:num_requests_running", "", "", expected},
		{vLLM, Waiting, "vllm:num_requests_waiting", "", "", expected},
		{vLLM, Waiting, "vllm:num_requests_swapped", "", "", added}, // V0: preempted to host memory
		{vLLM, KVUsage, "vllm:kv_cache_usage_perc", "", "", expected},
		{vLLM, KVUsage, "vllm:gpu_cache_usage_perc", "", "", instead}, // V0 and early V1

		{sgLang, Running, "sglang:num_running_reqs", "", "", expected},
		{sgLang, Waiting, "sglang:num_queue_reqs", "", "", expected},
		{sgLang, KVUsage, "sglang:token_usage", "", "", expected},

		{trtLLM, Running, "trtllm_num_requests_running", "", "", expected},
		{trtLLM, Waiting, "trtllm_num_requests_waiting", "", "", expected},
		{trtLLM, KVUsage, "trtllm_kv_cache_utilization", "", "", expected},

		{triton, Running, "nv_trt_llm_request_metrics", "request_type", "scheduled", expected},
		{triton, Waiting, "nv_trt_llm_request_metrics", "request_type", "waiting", expected},
		{triton, KVUsage, "nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction", expected},

		{tgi, Running, "tgi_batch_current_size", "", "", expected},
		{tgi, Waiting, "tgi_queue_size", "", "", expected},

		{llamaCpp, Running, "llamacpp:requests_processing", "", "", expected},
		{llamaCpp, Waiting, "llamacpp:requests_deferred", "", "", expected},
		{llamaCpp, KVUsage, "llamacpp:kv_cache_usage_ratio", "", "", instead}, // gone since mid 2025
	}
}

// orcaName is the quantity that a named metric of an ORCA report has, by its
// name without a prefix that ends in a colon.
func orcaName(name string) (q Quantity, ok bool) {
	switch name {
	case "num_requests_running", "num_running_reqs", "requests_processing":
		return Running, true
	case "num_requests_waiting", "num_queue_reqs", "requests_deferred":
		return Waiting, true
	case "kv_cache_usage_perc", "gpu_cache_usage_perc", "kv_cache_utilization", "token_usage":
		return KVUsage, true
	}
	return 0, false
}
