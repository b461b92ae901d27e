package input

import (
	"math"
	"testing"
)

func TestParseRTT(t *testing.T) {
	blank := float32(math.NaN())
	for _, test := range []struct {
		cell string
		want float32
		bad  string
	}{
		{"65", 65, ""},
		{" 2.5\t", 2.5, ""},
		{"0.1", 0.1, ""},
		{"1e2", 100, ""},
		{".5", 0.5, ""},
		{"+3.", 3, ""},
		{"00000000000000000007", 7, ""},
		{"0.00000000000000000", 0, ""},
		{"16777217", 16777216, ""}, // the nearest float32
		{"0", 0, ""},
		{"-0", 0, ""}, // not the zero whose bits differ
		{"", blank, ""},
		{"  ", blank, ""},
		{"NaN", blank, ""},
		{"nan", blank, ""},
		{"-1", blank, "a finite number >= 0 or blank"},
		{"inf", blank, "a finite number >= 0 or blank"},
		{"1e400", blank, "a finite number >= 0 or blank"},
		{"1_0", blank, "a finite number >= 0 or blank"},
		{"0x1p4", blank, "a finite number >= 0 or blank"},
		{"-", blank, "a finite number >= 0 or blank"},
		{"1,5", blank, "a finite number >= 0 or blank"},
		{"1e30", blank, "at most 1e15 or blank"},
		{"0.00000000000000001", blank, "0 or at least 1e-15 or blank"},
	} {
		got, bad := parseRTT([]byte(test.cell))
		if math.Float32bits(got) != math.Float32bits(test.want) || bad != test.bad {
			t.Errorf("%q: got %v (%q), want %v (%q)", test.cell, got, bad, test.want, test.bad)
		}
	}
}

func TestSimpleRTTDoesNotAllocate(t *testing.T) {
	cell := []byte("123.25,7")
	if n := testing.AllocsPerRun(100, func() { simpleRTT(cell) }); n != 0 {
		t.Errorf("a cell allocates %v times, want 0", n)
	}
}
