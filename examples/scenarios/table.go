package main

import (
	"fmt"
	"io"
	"sync"
	"text/tabwriter"

	"github.com/irb-project/irb/examples/scenarios/virtual"
)

// printTable plays scenarios with every setup and prints what was measured
// beside what is wanted: a line per figure, a column per setup, "!" where it is
// not as wanted. It returns how many are not.
func printTable(w io.Writer, scenarios []virtual.Scenario, seed uint64) (missed int) {
	setups := virtual.Setups(seed)
	half := len(setups) / 2 // first five engines, then one
	for _, s := range scenarios {
		figures := playAll(s, setups)
		for n, engines := range []string{"five engines", "one engine and two fallbacks"} {
			from := n * half
			fmt.Fprintf(w, "%s: %s; %s\n", s.Name, s.What, engines)
			t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
			printHead(t, setups[from:from+half])
			for row, f := range figures[from] {
				fmt.Fprintf(t, "%s\t%s\t", f.Name, f.Wanted())
				for _, column := range figures[from : from+half] {
					f, mark := column[row], ""
					if !f.Holds() {
						mark = "!"
						missed++
					}
					fmt.Fprintf(t, "%s%s\t", mark, f.Measured())
				}
				fmt.Fprintln(t)
			}
			t.Flush()
			fmt.Fprintln(w)
		}
	}
	return missed
}

func printHead(w io.Writer, setups []virtual.Setup) {
	for _, line := range []struct {
		name string
		cell func(virtual.Setup) string
	}{
		{"agents", func(s virtual.Setup) string { return fmt.Sprint(s.Agents) }},
		{"req/s", func(s virtual.Setup) string { return fmt.Sprint(s.RPS) }},
		{"profiles", func(s virtual.Setup) string {
			if s.WrongProfiles {
				return "±30%"
			}
			return "true"
		}},
	} {
		wanted := ""
		if line.name == "agents" {
			wanted = "wanted"
		}
		fmt.Fprintf(w, "%s\t%s\t", line.name, wanted)
		for _, s := range setups {
			fmt.Fprintf(w, "%s\t", line.cell(s))
		}
		fmt.Fprintln(w)
	}
}

// playAll plays a scenario with all setups at once.
func playAll(s virtual.Scenario, setups []virtual.Setup) [][]virtual.Figure {
	figures := make([][]virtual.Figure, len(setups))
	var wait sync.WaitGroup
	for i, setup := range setups {
		wait.Go(func() { figures[i] = s.Play(setup) })
	}
	wait.Wait()
	return figures
}
