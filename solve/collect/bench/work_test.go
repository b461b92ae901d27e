package bench

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
)

// shape makes a profile as far as EstimateWork looks.
func shape(prompt, output, capacity float64) *Profile {
	return &Profile{PromptTokens: prompt, OutputTokens: output, CapacityRPS: capacity, Points: make([]Point, 2)}
}

func TestEstimateWork(t *testing.T) {
	// Work capacity 9000 with r = 3: 9000/(p+3o).
	exact := []*Profile{shape(1000, 500, 3.6), shape(300, 900, 3), shape(3000, 500, 2)}
	for _, tc := range []struct {
		name             string
		profiles         []*Profile
		r, worst         float64
		reason, sentence string
	}{
		// With r = 4 the work is 10800, 11700, 10000; W = sum w²/sum w = 10878.
		{"exact", exact, 3, 0, "", "output_token_work = 3 from 3 request shapes: as one number it is off by up to 0.0 % of capacity; 4 would be off by up to 8.1 %"},
		// Two equal shapes measured at 2 and 3: C a p is 2x and 3x, nearest to 1
		// at x = 5/13, off by 3/13 and 2/13; the third is met by b.
		{"contradiction", []*Profile{shape(100, 1e-9, 2), shape(100, 1e-9, 3), shape(1e-9, 100, 1)}, 2.6, 3.0 / 13, "", ""},
		{"two", exact[:2], 3, 0, "", "output_token_work = 3 from 2 request shapes, which always fit exactly; a third would test it; 4 would be off by up to"},
		{"one mix", []*Profile{shape(100, 100, 3), shape(200, 200, 1)}, 0, 0, "all shapes have the same ratio of output to prompt tokens", "output_token_work: none, all shapes"},
		{"no prompt work", []*Profile{shape(100, 10, 10), shape(1000, 9, 12)}, 0, 0, "capacity does not depend on prompt tokens in these runs", ""},
		{"no output work", []*Profile{shape(10, 100, 10), shape(9, 1000, 12)}, 0, 0, "capacity does not depend on output tokens in these runs", ""},
	} {
		list := EstimateWork(tc.profiles)
		if len(list) != 1 {
			t.Errorf("%s: %d estimates, want 1", tc.name, len(list))
			continue
		}
		w := list[0]
		if math.Abs(w.OutputTokenWork-tc.r) > 1e-6 || math.Abs(w.WorstRelError-tc.worst) > 1e-6 || w.Reason != tc.reason || !strings.HasPrefix(w.String(), tc.sentence) {
			t.Errorf("%s: %+v, %s, want %v, off by %v, %q, %q", tc.name, w, w, tc.r, tc.worst, tc.reason, tc.sentence)
		}
	}
	lowerBound := shape(10, 20, 5)
	lowerBound.CapacityAtLeast = true
	if list := EstimateWork([]*Profile{exact[0], lowerBound}); len(list) != 0 {
		t.Errorf("estimate %v from a capacity that is a lower bound", list)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("x", 100)
	of := func(prompt float64, labels ...Label) *group {
		return &group{labels: labels, promptTokens: prompt, outputTokens: 10, runs: []Run{{File: "a/sweep 1.csv"}}}
	}
	for _, tc := range []struct {
		list []*group
		want []string
	}{
		{[]*group{of(1)}, []string{"sweep-1"}},
		{[]*group{of(1, Label{"gpu", "h100"}, Label{"note", "x"})}, []string{"h100"}},
		{[]*group{of(1, Label{"model", "a/b-8B"}, Label{"attention_dp", "1"}), of(1, Label{"model", "a/b-8B"}, Label{"attention_dp", "2"})}, []string{"b-8B-adp1", "b-8B-adp2"}},
		{[]*group{of(1, Label{"gpu", long}), of(2000, Label{"gpu", long})}, []string{strings.Repeat("x", 58) + "-1-10", strings.Repeat("x", 55) + "-2000-10"}},
		{[]*group{of(1, Label{"gpu", "a b"}), of(1, Label{"gpu", "a/b"}), of(1, Label{"gpu", "a:b"})}, []string{"a-b", "b", "a-b-2"}},
		{[]*group{of(1, Label{"gpu", "../"})}, []string{"profile"}},
	} {
		got := profileNames(tc.list)
		for i, name := range got {
			if name != tc.want[i] || !ValidName(name) {
				t.Errorf("names %q, want %q", got, tc.want)
			}
		}
	}
	for _, name := range []string{"", "-a", "a/b", long} {
		if ValidName(name) {
			t.Errorf("%q is valid", name)
		}
	}
}

// TestTOMLComments: text of the input cannot leave a comment.
func TestTOMLComments(t *testing.T) {
	text := strings.ReplaceAll(sharedServer(1, 2, 4, 8), "concurrency,", "\"gpu\nx = 1\",concurrency,")
	text = strings.ReplaceAll(text, "\n1,", "\n\"h\n[engine]\",1,")
	for _, n := range []string{"2", "4", "8"} {
		text = strings.ReplaceAll(text, "\n"+n+",", "\n\"h\n[engine]\","+n+",")
	}
	results, err := Read([]File{{"a\nb.csv", []byte(text)}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := TOML(results.Sources, Fit(results.Runs, FitOptions{}), nil, time.Unix(0, 0))
	var tree map[string]any
	if _, err := toml.Decode(out, &tree); err != nil || len(tree) != 1 || len(tree["profile"].(map[string]any)) != 1 {
		t.Errorf("%v, %v, want one profile and nothing else:\n%s", tree, err, out)
	}
}
