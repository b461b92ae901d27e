package input

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// latencyMatrix returns a matrix of n clusters and n regions with round trips
// of one decimal, a few of them blank.
func latencyMatrix(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteString("rtt_ms")
	for j := range n {
		fmt.Fprintf(&b, ",region-%d", j)
	}
	for i := range n {
		fmt.Fprintf(&b, "\ncluster-%d", i)
		for range n {
			b.WriteByte(',')
			if rnd.IntN(50) > 0 {
				fmt.Fprintf(&b, "%d.%d", rnd.IntN(300), rnd.IntN(10))
			}
		}
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// latencyPairs returns the same in the long form.
func latencyPairs(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	b.WriteString("from,to,rtt_ms\n")
	for i := range n {
		for j := range n {
			fmt.Fprintf(&b, "cluster-%d,region-%d,%d.%d\n", i, j, rnd.IntN(300), rnd.IntN(10))
		}
	}
	return b.Bytes()
}

func BenchmarkLatency(b *testing.B) {
	matrix, pairs := latencyMatrix(2000), latencyPairs(2000)
	path := filepath.Join(b.TempDir(), "latency.csv")
	if err := os.WriteFile(path, matrix, 0o644); err != nil {
		b.Fatal(err)
	}
	b.Run("read only", func(b *testing.B) { // the floor: the file into memory, each byte looked at
		b.SetBytes(int64(len(matrix)))
		for b.Loop() {
			data, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			sum := 0
			for _, c := range data {
				if c == ',' {
					sum++
				}
			}
			if sum < 2000*2000 {
				b.Fatal(sum)
			}
		}
	})
	b.Run("file to matrix", func(b *testing.B) { // with digest
		b.SetBytes(int64(len(matrix)))
		b.ReportAllocs()
		for b.Loop() {
			f := file{path: path}
			f.load(1 << 30)
			f.hash()
			if readLatency(&f); !f.ok() {
				b.Fatal(f.problems)
			}
		}
	})
	for name, text := range map[string][]byte{"matrix": matrix, "pairs": pairs} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				var r report
				if readLatencyText(&r, text, spansLines(text)); !r.ok() {
					b.Fatal(r.problems)
				}
			}
		})
	}
}

func BenchmarkDemand(b *testing.B) {
	var table, rows bytes.Buffer
	rows.WriteString("cluster,class,rps,prompt_tokens,output_tokens\n")
	for i := range 50_000 {
		fmt.Fprintf(&rows, "cluster-%d,chat,%d.5,900,250\n", i, i%100)
		fmt.Fprintf(&table, "[[demand]]\ncluster = \"cluster-%d\"\nclass = \"chat\"\nrps = %d.5\nprompt_tokens = 900\noutput_tokens = 250\n", i, i%100)
	}
	for name, text := range map[string][]byte{"demand.csv": rows.Bytes(), "demand.toml": table.Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				f := file{path: name, text: text}
				if readDemand(&f); !f.ok() {
					b.Fatal(f.problems)
				}
			}
		})
	}
}
