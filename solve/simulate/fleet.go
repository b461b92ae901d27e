package simulate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/simulate/engine"
	"github.com/irb-project/irb/solve/simulate/policy"
	"github.com/irb-project/irb/solve/simulate/scenario"
)

// layout is a fleet by numbers: engines in order of name, endpoints in order of
// engine, sources in order of cluster then class.
type layout struct {
	fleet     *model.Fleet
	compiled  *model.Compiled
	engines   []string
	endpoints []policy.Endpoint
	numbers   map[string][]int32 // endpoints by engine
	configs   []engine.Config    // by endpoint
	sources   []policy.Source
	rows      []int // of Fleet.Demand, by source
	cluster   []int32
	clusters  []string
}

func newLayout(fleet *model.Fleet, s *scenario.Scenario, blockTokens int) (*layout, error) {
	compiled, err := model.Compile(fleet, model.CompileOptions{})
	if err != nil {
		return nil, err
	}
	l := &layout{fleet: fleet, compiled: compiled, numbers: map[string][]int32{}}
	for n, node := range compiled.Engines {
		in := &fleet.Engines[compiled.NodeEngine[n]]
		l.engines = append(l.engines, node.Name)
		for _, url := range in.Endpoints {
			l.numbers[node.Name] = append(l.numbers[node.Name], int32(len(l.endpoints)))
			c := engine.Config{
				Profile: compiled.Profile(n), CapacityRPS: in.CapacityRPS * in.Health / float64(len(in.Endpoints)),
				OutputTokenWork: fleet.Policy.OutputTokenWork, BlockTokens: blockTokens, CacheTokens: s.CacheTokens,
			}
			l.configs = append(l.configs, c)
			l.endpoints = append(l.endpoints, policy.Endpoint{Engine: int32(n), Name: node.Name + " " + url, CapacityRPS: c.CapacityRPS})
		}
	}
	if err := l.addSources(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *layout) addSources() error {
	l.rows = sourceRows(l.fleet)
	for _, row := range l.rows {
		d := &l.fleet.Demand[row]
		if n := len(l.clusters); n == 0 || l.clusters[n-1] != d.Cluster {
			l.clusters = append(l.clusters, d.Cluster)
		}
		l.cluster = append(l.cluster, int32(len(l.clusters)-1))
		src := policy.Source{NetS: make([]float64, len(l.endpoints))}
		for e := range src.NetS {
			src.NetS[e] = math.Inf(1)
		}
		for _, n := range l.compiled.EligibleEngines(row) {
			for _, e := range l.numbers[l.engines[n]] {
				src.NetS[e] = l.compiled.NetMs(row, int(n)) / 1000
				src.Eligible = append(src.Eligible, e)
			}
		}
		if len(src.Eligible) == 0 {
			return fmt.Errorf("%s: no engine may serve %s/%s", d.Origin, d.Cluster, d.Class)
		}
		slices.SortStableFunc(src.Eligible, func(a, b int32) int { return cmp.Compare(src.NetS[a], src.NetS[b]) })
		l.sources = append(l.sources, src)
	}
	return nil
}

// sourceRows returns the rows of Fleet.Demand in order of source.
func sourceRows(fleet *model.Fleet) []int {
	rows := make([]int, len(fleet.Demand))
	for i := range rows {
		rows[i] = i
	}
	slices.SortFunc(rows, func(a, b int) int {
		x, y := &fleet.Demand[a], &fleet.Demand[b]
		return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Class, y.Class))
	})
	return rows
}
