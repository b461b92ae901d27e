package signal

import (
	"math"
	"strings"
	"testing"
)

func same(a, b Report) bool {
	eq := func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }
	return eq(a.Running, b.Running) && eq(a.Waiting, b.Waiting) && eq(a.KVUsage, b.KVUsage)
}

func TestParseORCA(t *testing.T) {
	u := Unknown()
	for _, test := range []struct {
		value string
		want  Report
	}{
		{"TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3", Report{u, 3, 0.4}},
		{"named_metrics.kv_cache_usage_perc=0.4,named_metrics.num_requests_waiting=3", Report{u, 3, 0.4}},
		{`JSON {"named_metrics":{"kv_cache_usage_perc":0.4,"num_requests_running":7}}`, Report{7, u, 0.4}},
		{`{"cpu_utilization":0.5,"namedMetrics":{"vllm:num_requests_waiting":12}}`, Report{u, 12, u}},
		{"TEXT cpu_utilization=0.3", Nothing()},
		{"TEXT num_requests_waiting=3", Nothing()}, // no named metric
		{"TEXT utilization.token_usage=0.3, named_metrics.token_usage=0.6", Report{u, u, 0.6}},
		{"TEXT named_metrics.kv_cache_usage_perc=40", Nothing()}, // no fraction: not believed
		{"TEXT named_metrics.num_requests_waiting=-1", Nothing()},
		{`JSON {"rps_fractional":2.5,"eps":0,"request_cost":{"x":1}}`, Nothing()},
		{"JSON {}", Nothing()},
	} {
		got, err := ParseORCA(test.value)
		if err != nil || !same(got, test.want) {
			t.Errorf("%s: got %v, %v, want %v", test.value, got, err, test.want)
		}
	}
}

func TestParseORCARefuses(t *testing.T) {
	for value, want := range map[string]string{
		"TEXT named_metrics.num_requests_waiting=NaN": "want a finite number",
		"TEXT eps=Inf":      "want a finite number",
		"TEXT eps=1e999":    "want a finite number",
		"TEXT eps=three":    "want a finite number",
		"TEXT eps=1, eps=1": "twice",
		"TEXT named_metrics.a=1, named_metrics.a=2": "twice",
		"TEXT eps":               "want NAME=NUMBER",
		"TEXT =1":                "want NAME=NUMBER",
		"TEXT eps=1,":            "want NAME=NUMBER",
		"":                       "want NAME=NUMBER",
		"BIN AAAA":               "binary",
		`JSON {"eps":1,"eps":2}`: "twice",
		`JSON {"named_metrics":{"a":1},"namedMetrics":{}}`: "twice",
		`JSON {"named_metrics":{"a":1,"a":1}}`:             "twice",
		`JSON {"named_metrics":{"a":"NaN"}}`:               "want a finite number",
		`JSON {"named_metrics":{"a":{"b":1}}}`:             "want a finite number",
		`JSON {"named_metrics":3}`:                         "malformed",
		`JSON {"eps":1e999}`:                               "want a finite number",
		`JSON {"eps":1} x`:                                 "follows",
		`JSON [1]`:                                         "malformed",
		`JSON {"eps":1`:                                    "EOF",
		"TEXT a=" + strings.Repeat("0", maxReportBytes):    "bytes",
	} {
		got, err := ParseORCA(value)
		if err == nil || !strings.Contains(err.Error(), want) || !got.Empty() {
			t.Errorf("%.60s: got %v, error %v, want %q", value, got, err, want)
		}
	}
	if _, err := ParseORCA("TEXT a0=1" + many(maxReportFields)); err == nil || !strings.Contains(err.Error(), "more than 64") {
		t.Errorf("too many fields: error %v", err)
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(", b" + strings.Repeat("x", i) + "=1")
	}
	return b.String()
}

func TestParseORCATextAllocatesNothing(t *testing.T) {
	n := testing.AllocsPerRun(100, func() {
		if _, err := ParseORCA("TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3"); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzParseORCA(f *testing.F) {
	for _, s := range []string{
		"TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3", "TEXT a=1, a=NaN",
		`JSON {"named_metrics":{"kv_cache_usage_perc":0.4}}`, `{"eps":1,"utilization":{"x":2}}`, "BIN AA==", "", "{",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r, err := ParseORCA(value)
		if err != nil && !r.Empty() {
			t.Errorf("%q: refused with %v, but it says %v", value, err, r)
		}
		checkBelievable(t, r)
	})
}

func checkBelievable(t *testing.T, r Report) {
	for q, x := range []float64{r.Running, r.Waiting, r.KVUsage} {
		if Known(x) && !believable(Quantity(q), x) {
			t.Errorf("%v is %v", Quantity(q), x)
		}
	}
}

func BenchmarkParseORCA(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseORCA("TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3"); err != nil {
			b.Fatal(err)
		}
	}
}
