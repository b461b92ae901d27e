package input

import (
	"math"

	"github.com/irb-project/irb/solve/model"
)

// checkLatency checks the rows and columns of the latency matrix against the
// clusters and engines.
func (in *inputs) checkLatency() {
	index := in.latency.Index()
	clusters := make(map[string]bool)
	for _, d := range in.demand {
		if clusters[d.Cluster] || !validName(d.Cluster) {
			continue
		}
		clusters[d.Cluster] = true
		if _, ok := index.Row(d.Cluster); !ok && !in.latencyFile.partial {
			in.demandFile.add(d.at.key("cluster").line, didYouMean(d.Cluster, in.latency.From), "cluster %s has no row in %s", quote(d.Cluster), in.latencyFile.file)
		}
	}
	in.warnRows(clusters)
	if in.engines != nil {
		in.warnColumns()
		in.warnEngines(index, clusters)
	}
}

// warnRows warns of rows without demand.
func (in *inputs) warnRows(clusters map[string]bool) {
	idle := tally{line: in.latency.headerLine}
	for i, name := range in.latency.From {
		if !clusters[name] {
			idle.add(name, in.latency.rowLines[i])
		}
	}
	idle.warn(&in.latencyFile.report, "row has no demand", "rows have no demand", "")
}

// warnColumns warns of columns without an engine.
func (in *inputs) warnColumns() {
	var unused tally
	for _, name := range in.latency.To {
		if _, ok := in.engineByName[name]; !ok && !in.regions[name] {
			unused.add(name, in.latency.headerLine)
		}
	}
	unused.warn(&in.latencyFile.report, "column has no engine", "columns have no engine", "")
}

// warnEngines warns of engines without a column, and of engines that are where
// a cluster is and yet not reachable from it: public tables leave their
// diagonal blank.
func (in *inputs) warnEngines(index model.LatencyIndex, clusters map[string]bool) {
	var apart, unreached tally
	seen := make(map[[2]int]bool)
	for _, e := range in.engines {
		column, ok := index.Column(e.Engine)
		if !ok {
			unreached.add(e.Name, e.at.line)
			continue
		}
		for _, place := range []string{e.Region, e.Name} {
			row, ok := index.Row(place)
			if ok && clusters[place] && !seen[[2]int{row, column}] && math.IsNaN(in.latency.At(row, column)) {
				seen[[2]int{row, column}] = true
				apart.add(place, in.latency.rowLines[row])
			}
		}
	}
	unreached.warn(&in.enginesFile.report, "engine has no column in "+in.latencyFile.file, "engines have no column in "+in.latencyFile.file,
		", neither by name nor by region, so nothing is routed there")
	apart.warn(&in.latencyFile.report, "cluster cannot reach the engines in its own place", "clusters cannot reach the engines in their own place",
		": the cell is blank; if they can, write the round trip inside the place")
}
