package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-rendezvous"
	"github.com/kkdai/maglev"
	"github.com/serialx/hashring"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/layout"
)

// picker makes a func that returns the number of a key's engine. remake does so
// after a change of weights; only irb needs to know those before.
type picker struct {
	name   string
	most   int // engines it can take here
	make   func(weights []float64) (func(key string) int, error)
	remake func(before, after []float64) (func(key string) int, error)
}

// aliasesPerEngine is the grain in which libraries without weights get them.
const aliasesPerEngine = 10

// pickers returns all of them; keys is how many keys the bounded one expects.
func pickers(keys int) []picker {
	forgetful := func(name string, most int, build func([]float64) (func(string) int, error)) picker {
		return picker{name, most, build, func(_, after []float64) (func(string) int, error) { return build(after) }}
	}
	return []picker{
		{"irb: layout", math.MaxInt, func(w []float64) (func(string) int, error) {
			ranges, err := lay(nil, w)
			if err != nil {
				return nil, err
			}
			return owner(ranges, len(w))
		}, func(before, after []float64) (func(string) int, error) {
			ranges, err := lay(nil, before)
			if err != nil {
				return nil, err
			}
			if ranges, err = lay(ranges, after); err != nil {
				return nil, err
			}
			return owner(ranges, len(after))
		}},
		forgetful("serialx/hashring: weighted ring", math.MaxInt, ring),
		forgetful("the same ring, bounded loads 125 %", math.MaxInt, func(w []float64) (func(string) int, error) {
			return bounded(w, keys)
		}),
		// Its table takes engines x entries words to build: 5 GB for 10,000 aliases.
		forgetful("kkdai/maglev: 65537 entries", 100, maglevTable),
		forgetful("dgryski/go-rendezvous", math.MaxInt, highestRandomWeight),
	}
}

// engineName sorts like the number.
func engineName(i int) string { return fmt.Sprintf("e%06d", i) }

// engineNumber is the inverse of engineName; an alias has a suffix.
func engineNumber(name string) int {
	n := 0
	for _, digit := range []byte(name[1:7]) {
		n = n*10 + int(digit-'0')
	}
	return n
}

func lay(previous []layout.Range, weights []float64) ([]layout.Range, error) {
	quotas, err := layout.Quotas(weights)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(weights))
	for i := range names {
		names[i] = engineName(i)
	}
	ranges, _, err := layout.Next(previous, names, quotas)
	return ranges, err
}

// owner builds the table that agents pick from.
func owner(ranges []layout.Range, engines int) (func(string) int, error) {
	s := &snapshot.Snapshot{Classes: []snapshot.Class{{Name: "chat"}}}
	for i := range engines {
		s.Engines = append(s.Engines, snapshot.Engine{Name: engineName(i)})
	}
	src := snapshot.Source{Cluster: "here", Class: "chat"}
	for _, r := range ranges {
		src.LayoutFrom = append(src.LayoutFrom, r.From)
		src.LayoutTo = append(src.LayoutTo, r.Engine)
	}
	s.Sources = []snapshot.Source{src}
	table, err := pick.NewTable(s, "here")
	if err != nil {
		return nil, err
	}
	class := table.Class("chat")
	return func(key string) int { return class.Owner(pick.Key("chat", "", pick.Material(key))) }, nil
}

// ringWeights are integers, 100 for an engine of mean weight.
func ringWeights(weights []float64) map[string]int {
	all := make(map[string]int, len(weights))
	for i, w := range weights {
		all[engineName(i)] = max(1, int(math.Round(100*w*float64(len(weights)))))
	}
	return all
}

func ring(weights []float64) (func(string) int, error) {
	r := hashring.NewWithWeights(ringWeights(weights))
	return func(key string) int {
		name, _ := r.GetNode(key)
		return engineNumber(name)
	}, nil
}

// bounded is consistent hashing with bounded loads (Mirrokni, Thorup,
// Zadimoghaddam 2018) on that ring, written out here because the libraries for
// it have no weights: an engine with 125 % of its part passes a key on to the
// next on the ring. The keys stand for requests that are in flight together.
func bounded(weights []float64, keys int) (func(string) int, error) {
	if len(weights) == 0 {
		return nil, errors.New("no engines")
	}
	r := hashring.NewWithWeights(ringWeights(weights))
	room := make([]int, len(weights))
	for i, w := range weights {
		room[i] = int(math.Ceil(1.25 * w * float64(keys)))
	}
	return func(key string) int {
		for size := min(2, len(weights)); ; size = min(4*size, len(weights)) {
			names, _ := r.GetNodes(key, size)
			for _, name := range names {
				if e := engineNumber(name); room[e] > 0 {
					room[e]--
					return e
				}
			}
		}
	}, nil
}

func aliases(weights []float64) (names []string) {
	for i, w := range weights {
		for a := range max(1, int(math.Round(aliasesPerEngine*w*float64(len(weights))))) {
			names = append(names, engineName(i)+"/"+strconv.Itoa(a))
		}
	}
	return names
}

func maglevTable(weights []float64) (func(string) int, error) {
	m, err := maglev.NewMaglev(aliases(weights), 65537)
	if err != nil {
		return nil, err
	}
	return func(key string) int {
		name, err := m.Get(key)
		if err != nil {
			panic(err) // the table is never empty
		}
		return engineNumber(name)
	}, nil
}

func highestRandomWeight(weights []float64) (func(string) int, error) {
	r := rendezvous.New(aliases(weights), xxhash.Sum64String)
	return func(key string) int { return engineNumber(r.Lookup(key)) }, nil
}
