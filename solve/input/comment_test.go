package input

import (
	"math"
	"slices"
	"testing"
)

// Lines that begin with # are comments in all CSV files, whichever reader takes
// them, and lines keep their numbers.
func TestComments(t *testing.T) {
	for name, text := range map[string]string{
		"matrix":        "# made by \"hand\"\nrtt_ms,a,b\n# odd \" quote\neast,1,2\n\n#west,0,0\nwest,3,\n",
		"quoted matrix": "# made\nrtt_ms,a,b\n# more\n\"east\",1,2\n#west,0,0\nwest,3,\n",
		"pairs":         "#\nfrom,to,rtt_ms\n# odd \" quote\neast,a,1\neast,b,2\n#west,b,0\nwest,a,3\n",
	} {
		for _, strict := range []bool{false, true} {
			r := &report{file: "latency.csv"}
			m := readLatencyText(r, []byte(text), strict)
			if m == nil || !r.ok() {
				t.Errorf("%s, strict %v: %v", name, strict, r.problems)
				continue
			}
			if !slices.Equal(m.From, []string{"east", "west"}) || m.RTTMs[0] != 1 || m.RTTMs[1] != 2 || m.RTTMs[2] != 3 || !math.IsNaN(float64(m.RTTMs[3])) {
				t.Errorf("%s, strict %v: %v %v", name, strict, m.From, m.RTTMs)
			}
		}
	}
	f := &file{report: report{file: "demand.csv"}, text: []byte("# made by hand\ncluster,rps\n# more\neast,5\nwest,x\n")}
	rows := readDemandCSV(f)
	if len(rows) != 2 || rows[0].RPS != 5 || len(f.problems) != 1 || f.problems[0].Line != 5 {
		t.Errorf("demand: %+v, %v", rows, f.problems)
	}
}
