package guard

import (
	"slices"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

// TestClassesThatShareEnginesAreAdmittedTogether: directly or through others.
func TestClassesThatShareEnginesAreAdmittedTogether(t *testing.T) {
	s := fleet(6, 100, 0.5, snapshot.Class{Name: "a"}, snapshot.Class{Name: "b"}, snapshot.Class{Name: "c"}, snapshot.Class{Name: "d"}, snapshot.Class{Name: "e"})
	for i, reach := range []string{"e0 e1", "e2 e3", "e4", "e5", "e1 e2"} {
		src := &s.Sources[i]
		src.LayoutTo = strings.Fields(reach)
		src.Weights = slices.DeleteFunc(src.Weights, func(w snapshot.Weight) bool { return !slices.Contains(src.LayoutTo, w.Engine) })
	}
	p := New(Defaults(), nil).NewPlan(spec(s), start)
	var got []string
	for _, a := range p.admissions {
		var names []string
		for i, c := range a.classes {
			names = append(names, c.name)
			if c.admission != a || c.place != i {
				t.Errorf("class %s is not told of its admission", c.name)
			}
		}
		got = append(got, strings.Join(names, " "))
	}
	slices.Sort(got)
	if want := []string{"a b e", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("admissions of %q, want %q", got, want)
	}
}
