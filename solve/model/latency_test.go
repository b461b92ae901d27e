package model

import (
	"fmt"
	"math"
	"testing"
)

func TestLatencyIndex(t *testing.T) {
	blank := float32(math.NaN())
	l := Latency{
		From:  []string{"us-east", "us-west"},
		To:    []string{"region-a", "c-1", "region-c"},
		RTTMs: []float32{2, 65, 70, 66, blank, 3},
	}
	x := l.Index()
	for _, test := range []struct {
		cluster, engine, region string
		want                    float64 // -1: no such row or column
	}{
		{"us-east", "a-1", "region-a", 2},
		{"us-east", "c-1", "region-c", 65}, // its own column goes before its region's
		{"us-east", "c-2", "region-c", 70},
		{"us-west", "c-1", "region-c", math.NaN()}, // also where it is blank
		{"us-west", "c-2", "region-c", 3},
		{"us-east", "d-1", "region-d", -1},
		{"eu-west", "a-1", "region-a", -1},
	} {
		row, okRow := x.Row(test.cluster)
		column, okColumn := x.Column(Engine{Name: test.engine, Region: test.region})
		got := -1.0
		if okRow && okColumn {
			got = l.At(row, column)
		}
		if got != test.want && !(math.IsNaN(got) && math.IsNaN(test.want)) {
			t.Errorf("%s to %s in %s: got %v ms, want %v", test.cluster, test.engine, test.region, got, test.want)
		}
	}
}

func TestLatencyIndexDoesNotAllocateOnLookup(t *testing.T) {
	l := Latency{From: []string{"c"}, To: []string{"r"}, RTTMs: []float32{1}}
	x := l.Index()
	e := Engine{Name: "e", Region: "r"}
	if n := testing.AllocsPerRun(100, func() {
		row, _ := x.Row("c")
		column, _ := x.Column(e)
		_ = l.At(row, column)
	}); n != 0 {
		t.Errorf("a look-up allocates %v times, want 0", n)
	}
}

func BenchmarkLatencyIndex(b *testing.B) {
	l := Latency{RTTMs: make([]float32, 2000*2000)}
	for i := range 2000 {
		l.From = append(l.From, fmt.Sprintf("cluster-%d", i))
		l.To = append(l.To, fmt.Sprintf("engine-%d", i))
	}
	for b.Loop() {
		l.Index()
	}
}
