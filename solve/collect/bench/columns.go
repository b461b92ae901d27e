package bench

import (
	"slices"
	"strings"
)

// quantity is what a column measures.
type quantity int

const (
	ttft quantity = iota
	tbot
	e2e
	prompt
	output
	concurrency
	offered
	completed
	inputTokS
	outputTokS
	requestsOK
	requestsFailed
)

// optional says whether a run can do without: a wrong cell is as good as none.
func (q quantity) optional() bool {
	return q == e2e || q >= inputTokS
}

// column is where a quantity stands in a table.
type column struct {
	quantity quantity
	index    int
	name     string
	scale    float64 // from the column's unit to ms, req/s, tokens; 0: a time without a unit
	rank     int     // the lowest of several columns of a quantity is used
}

// spellings are the words for times in column names, in the order of trust: a
// mean over requests before one over tokens, which chunks of several tokens
// distort.
var spellings = []struct {
	word     string
	quantity quantity
	rank     int
}{
	{"time_to_first_token", ttft, 0}, {"ttft", ttft, 0},
	{"time_per_output_token", tbot, 0}, {"tpot", tbot, 0},
	{"time_between_output_tokens", tbot, 0}, {"tbot", tbot, 0},
	{"inter_token_latency", tbot, 1}, {"itl", tbot, 1},
	{"request_latency", e2e, 0}, {"e2e_latency", e2e, 0}, {"e2el", e2e, 0}, {"e2e", e2e, 0},
}

// The other words of such a column. The solver minimises means, so that a mean
// goes before a column that does not say what it is, and that before a median.
var (
	statistics = map[string]int{"mean": 0, "avg": 0, "average": 0, "median": 4, "p50": 4}
	units      = map[string]float64{"ms": 1, "msec": 1, "milliseconds": 1, "s": 1000, "sec": 1000, "seconds": 1000, "us": 1e-3, "usec": 1e-3, "microseconds": 1e-3}
)

// plainRank is the rank of a time that does not say which statistic it is.
const plainRank = 2

// names are the columns that are no times, the first of each quantity before
// the later ones.
var names = map[quantity][]string{
	prompt:         {"prompt_tokens", "prompt_tokens_mean", "mean_prompt_tokens", "isl", "isl_tokens", "input_tokens", "input_tokens_mean", "mean_input_tokens", "input_len", "input_length", "prompt_len", "input_sequence_length"},
	output:         {"output_tokens", "output_tokens_mean", "mean_output_tokens", "osl", "osl_tokens", "output_len", "output_length", "output_sequence_length"},
	concurrency:    {"concurrency", "max_concurrency", "concurrent_requests", "streams", "users", "concurrent_users", "num_concurrency"},
	offered:        {"request_rate_rps", "request_rate", "requested_rps", "offered_rps", "rate_rps", "scheduled_rps", "target_rps", "target_qps", "qps"},
	completed:      {"throughput_rps", "completed_rps", "request_throughput_rps", "request_throughput", "throughput_req_s", "requests_per_second", "rps"},
	inputTokS:      {"input_tok_s", "input_token_throughput", "prompt_tok_s"},
	outputTokS:     {"output_tok_s", "output_token_throughput", "output_throughput", "throughput_tok_s"},
	requestsOK:     {"completed", "successful", "requests_ok", "requests_completed", "successful_requests"},
	requestsFailed: {"failed", "requests_failed", "failed_requests", "errors", "errored"},
}

// parseColumn says what a column measures: "Mean TTFT (ms)", "ttft_s_p50".
func parseColumn(name string) (column, bool) {
	name = plainName(name)
	for q, list := range names {
		if i := slices.Index(list, name); i >= 0 {
			return column{quantity: q, scale: 1, rank: i}, true
		}
	}
	for _, s := range spellings {
		rest, found := cutWord(name, s.word)
		if !found {
			continue
		}
		c := column{quantity: s.quantity, rank: s.rank + plainRank}
		for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return r == '_' }) {
			rank, statistic := statistics[word]
			scale, unit := units[word]
			switch {
			case statistic:
				c.rank = s.rank + rank
			case unit:
				c.scale = scale
			default:
				return column{}, false // a percentile, a limit, a spread
			}
		}
		return c, true
	}
	return column{}, false
}

// plainName returns a column name in lower case with _ between words.
func plainName(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
	return strings.Join(words, "_")
}

// cutWord removes a word, or several, from a plain name.
func cutWord(name, word string) (rest string, found bool) {
	before, after, found := strings.Cut("_"+name+"_", "_"+word+"_")
	return before + "_" + after, found
}

// ofOneRun says whether a column that is no measurement that we use differs
// between the runs of one configuration: another measurement, a time, an id.
func ofOneRun(name string) bool {
	name = plainName(name)
	for _, s := range spellings {
		if _, found := cutWord(name, s.word); found {
			return true
		}
	}
	words := strings.Split(name, "_")
	has := func(list ...string) bool {
		return slices.ContainsFunc(list, func(w string) bool { return slices.Contains(words, w) })
	}
	return strings.HasSuffix(name, "batch_size") ||
		has("run", "date", "time", "timestamp", "utc", "seed", "stage", "source", "file", "notes", "comment", "id",
			"duration", "wall", "throughput", "tok", "rps", "qps", "requests", "samples", "sent", "prompts", "latency", "rate", "usage", "hit", "queue", "result", "completed", "error") &&
			name != "model_id"
}
