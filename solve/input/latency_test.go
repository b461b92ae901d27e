package input

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/irb-project/irb/solve/model"
)

// A file of many blocks, with everything odd that a row may be, reads the same
// on any number of processors and through encoding/csv.
func TestMatrixInBlocks(t *testing.T) {
	for seed := range uint64(6) {
		text := oddMatrix(rand.New(rand.NewPCG(seed, 3)))
		var strict report
		want := readLatencyText(&strict, text, true)
		sortProblems(strict.problems)
		for _, procs := range []int{1, 2, 7} {
			before := runtime.GOMAXPROCS(procs)
			var fast report
			got := readLatencyText(&fast, text, false)
			runtime.GOMAXPROCS(before)
			sortProblems(fast.problems)
			if diff := cmp.Diff(strict.problems, fast.problems); diff != "" {
				t.Fatalf("seed %d, %d processors: problems (-strict +fast):\n%s", seed, procs, diff)
			}
			if fast.ok() && !sameLatency(want, got) {
				t.Fatalf("seed %d, %d processors: the matrix is not that of encoding/csv", seed, procs)
			}
		}
	}
}

// sameLatency compares to the bit; cmp.Diff takes a second for so many cells.
func sameLatency(a, b *latency) bool {
	sameBits := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
	return slices.Equal(a.From, b.From) && slices.Equal(a.To, b.To) && slices.Equal(a.rowLines, b.rowLines) &&
		slices.EqualFunc(a.RTTMs, b.RTTMs, sameBits)
}

// oddMatrix returns some 350 kB of matrix; in every second one something is
// wrong with a few rows.
func oddMatrix(rnd *rand.Rand) []byte {
	const columns = 150
	bad := rnd.IntN(2) == 0
	var b strings.Builder
	b.WriteString("rtt_ms")
	for j := range columns {
		fmt.Fprintf(&b, ",region-%d", j)
	}
	for i := range 400 {
		b.WriteString([]string{"\n", "\r\n", "\n\n", "\r\n\r\n\n"}[rnd.IntN(4)])
		n := columns
		if bad && rnd.IntN(100) == 0 {
			n += rnd.IntN(3) - 1
		}
		fmt.Fprintf(&b, []string{"c%d", " c%d", `"c%d"`}[rnd.IntN(3)], i)
		for range n {
			b.WriteByte(',')
			switch k := rnd.IntN(1000); {
			case k < 10:
				b.WriteString([]string{"", "nan", " 1", "1.5e1", `"2.5"`, "+3", "-0", "0.10000000000000000001", "00000000000000000007"}[rnd.IntN(9)])
			case k == 10 && bad:
				b.WriteString([]string{"-1", "x", "1e99", "1..2", `"1"2`}[rnd.IntN(5)])
			default:
				fmt.Fprintf(&b, "%.*f", rnd.IntN(4), rnd.Float64()*math.Pow(10, float64(rnd.IntN(4))))
			}
		}
	}
	return []byte(b.String())
}

// The forms, and any order of rows and columns, say the same.
func TestLatencyFormsAgree(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		rows, columns := 1+rnd.IntN(12), 1+rnd.IntN(12)
		cell := make(map[[2]int]string)
		for i := range rows {
			for j := range columns {
				if cell[[2]int{i, j}] = fmt.Sprint(rnd.IntN(3000)) + "e-1"; rnd.IntN(5) == 0 {
					cell[[2]int{i, j}] = ""
				}
			}
		}
		matrix := func(from, to []int) string {
			var b strings.Builder
			for _, j := range to {
				fmt.Fprintf(&b, ",r%d", j)
			}
			for _, i := range from {
				fmt.Fprintf(&b, "\nc%d", i)
				for _, j := range to {
					b.WriteString("," + cell[[2]int{i, j}])
				}
			}
			return b.String()
		}
		pairs := []string{}
		for i := range rows {
			for j := range columns {
				// A blank pair may also be left out, unless its row would vanish.
				if c := cell[[2]int{i, j}]; c != "" || i == 0 || j == 0 || rnd.IntN(2) == 0 {
					pairs = append(pairs, fmt.Sprintf("%s,r%d,c%d", c, j, i))
				}
			}
		}
		rnd.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		want := lookUps(t, matrix(rnd.Perm(rows), rnd.Perm(columns)))
		for _, text := range []string{
			matrix(rnd.Perm(rows), rnd.Perm(columns)),
			"rtt_ms,to,from\n" + strings.Join(pairs, "\n"),
			"rtt_ms,to,from\r\n" + strings.Join(pairs, "\r\n\r\n") + "\r\n",
		} {
			if diff := cmp.Diff(want, lookUps(t, text), cmpopts.EquateNaNs()); diff != "" {
				t.Fatalf("round trips differ:\n%s\n%s", diff, text)
			}
		}
	}
}

// lookUps returns every round trip by name.
func lookUps(t *testing.T, text string) map[string]float64 {
	t.Helper()
	var r report
	l := readLatencyText(&r, []byte(text), false)
	if !r.ok() {
		t.Fatalf("%v in\n%s", r.problems, text)
	}
	index := l.Index()
	all := make(map[string]float64)
	for _, from := range l.From {
		for _, to := range l.To {
			row, _ := index.Row(from)
			column, _ := index.Column(model.Engine{Name: "none", Region: to})
			all[from+" to "+to] = l.At(row, column)
		}
	}
	return all
}

// The problems of a hopeless file are counted, a bounded number is kept, and a
// readable number is shown.
func TestProblemsAreCapped(t *testing.T) {
	const rows, columns = 2000, 100
	text := "x" + strings.Repeat(",a", columns) + strings.Repeat("\nb"+strings.Repeat(",-1", columns), rows)
	for _, strict := range []bool{false, true} {
		r := report{file: "latency.csv"}
		readLatencyText(&r, []byte(text), strict)
		_, err := join([]*report{&r})
		problems := err.(*Problems)
		// Every cell, all columns but the first, all rows but the first.
		if want := rows*columns + columns - 1 + rows - 1; len(problems.List)+problems.Omitted != want {
			t.Errorf("%d problems kept and %d omitted, want %d in all", len(problems.List), problems.Omitted, want)
		}
		if len(problems.List) != maxKept {
			t.Errorf("%d problems kept, want %d", len(problems.List), maxKept)
		}
		shown := strings.Split(err.Error(), "\n")
		if want := fmt.Sprintf("and %d more", rows*columns+columns-1+rows-1-maxShown); len(shown) != maxShown+1 || shown[maxShown] != want {
			t.Errorf("shows %d lines, the last %q, want %d and %q", len(shown), shown[len(shown)-1], maxShown+1, want)
		}
		if want := `latency.csv:1: column "a" is there twice`; shown[0] != want {
			t.Errorf("shows first %q, want %q", shown[0], want)
		}
	}
}

// A long form whose names multiply beyond any matrix is refused as it is read.
func TestPairsTooLarge(t *testing.T) {
	var b strings.Builder
	b.WriteString("from,to,rtt_ms\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "c0,r%d,1\nc%d,r0,1\n", i+1, i+1)
	}
	r := report{file: "latency.csv"}
	if l := readLatencyText(&r, []byte(b.String()), false); l != nil {
		t.Errorf("there is a matrix of %d x %d", len(l.From), len(l.To))
	}
	want := "latency.csv:32768: is the line where 16384 names in from times 16385 in to exceed 268435456 cells"
	if len(r.problems) != 1 || r.problems[0].String() != want {
		t.Errorf("got %v, want %s", r.problems, want)
	}
}

// A matrix that is too large is refused before it is allocated.
func TestMatrixTooLarge(t *testing.T) {
	text := "x" + strings.Repeat(",r", 2000) + strings.Repeat("\nc", 200_000)
	for _, strict := range []bool{false, true} {
		r := report{file: "latency.csv"}
		readLatencyText(&r, []byte(text), strict)
		want := "latency.csv: has 200000 rows and 2000 columns, want at most 268435456 cells"
		if len(r.problems) != 1 || r.problems[0].String() != want {
			t.Errorf("got %v, want %s", r.problems, want)
		}
	}
}
