// Package pick decides where a request goes: its class, its key, its engine by
// the layout, the engines after that, and the endpoint inside the engine.
//
// Everything here is immutable once built and uses integers only, so every
// agent on every architecture picks the same for the same key and snapshot.
// The paths of a request take no lock and allocate nothing.
package pick

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/irb-project/irb/agent/snapshot"
)

// Table is what one cluster does by one snapshot. It is immutable and safe for
// any number of goroutines; the snapshot must not be changed after NewTable.
type Table struct {
	snapshot *snapshot.Snapshot
	cluster  string
	classes  []Class
	engines  []engine
	byName   map[string]int // engines
	byClass  map[string]int
	// models holds, per model that some engine declares, the set of engines
	// that serve it; anyModel is the set of those that declare no models.
	models       map[string]bitset
	anyModel     bitset
	capabilities map[string]uint64 // capability -> its bit in engine.capabilities
}

// engine is what a walk looks at per candidate: half a cache line.
type engine struct {
	hash             uint64 // of the name, for penalties
	capabilities     uint64
	maxContextTokens int64 // 0: any
}

// NewTable builds the table of one cluster. It trusts no header: a class that
// matches on one matches nothing, because the header could come from anybody;
// see [Table.Trusting].
//
// NewTable checks what its own work rests on (names, order of the layout) and
// reports every problem; the checks of meaning are those of package snapshot.
func NewTable(s *snapshot.Snapshot, cluster string) (*Table, error) {
	t := &Table{
		snapshot: s, cluster: cluster,
		byName: make(map[string]int, len(s.Engines)), byClass: make(map[string]int, len(s.Classes)),
	}
	errs := t.addEngines()
	t.classes = make([]Class, len(s.Classes))
	for i := range s.Classes {
		c := &t.classes[i]
		c.Spec, c.Number = &s.Classes[i], i
		c.table = t
		c.matcher = newMatcher(c.Spec, nil)
		if _, twice := t.byClass[c.Spec.Name]; twice {
			errs = append(errs, fmt.Errorf("class %q is there twice", c.Spec.Name))
		}
		t.byClass[c.Spec.Name] = i
	}
	sources := 0
	for i := range s.Sources {
		src := &s.Sources[i]
		if src.Cluster != cluster {
			continue
		}
		sources++
		c := t.Class(src.Class)
		switch {
		case c == nil:
			errs = append(errs, fmt.Errorf("source %q: class %q is not in the snapshot", src.Cluster+"/"+src.Class, src.Class))
			continue
		case c.Source != nil:
			errs = append(errs, fmt.Errorf("source %q is there twice", src.Cluster+"/"+src.Class))
			continue
		}
		c.Source = src
		layout, err := newLayout(src, t.byName)
		if err != nil {
			errs = append(errs, fmt.Errorf("source %q: %w", src.Cluster+"/"+src.Class, err))
		}
		c.layout = layout
	}
	if sources == 0 {
		errs = append(errs, fmt.Errorf("cluster %q has no source in snapshot %d", cluster, s.Sequence))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("pick: %w", err)
	}
	return t, nil
}

// Trusting returns a table whose classes may match on these headers, and else
// is t.
func (t *Table) Trusting(headers ...string) *Table {
	next := *t
	next.classes = slices.Clone(t.classes)
	for i := range next.classes {
		c := &next.classes[i]
		c.table = &next
		c.matcher = newMatcher(c.Spec, headers)
	}
	return &next
}

// addEngines fills the tables of engines, models and capabilities.
func (t *Table) addEngines() (errs []error) {
	specs := t.snapshot.Engines
	t.engines = make([]engine, len(specs))
	t.anyModel = newBitset(len(specs))
	t.models = map[string]bitset{}
	t.capabilities = map[string]uint64{}
	for i := range specs {
		e := &specs[i]
		if _, twice := t.byName[e.Name]; twice {
			errs = append(errs, fmt.Errorf("engine %q is there twice", e.Name))
		}
		t.byName[e.Name] = i
		t.engines[i] = engine{hash: xxhash.Sum64String(e.Name), maxContextTokens: int64(e.MaxContextTokens)}
		for _, c := range e.Capabilities {
			if _, known := t.capabilities[c]; !known {
				if len(t.capabilities) == 64 {
					errs = append(errs, fmt.Errorf("engine %q: capability %q is the 65th of the snapshot, want at most 64", e.Name, c))
					continue
				}
				t.capabilities[c] = 1 << len(t.capabilities)
			}
			t.engines[i].capabilities |= t.capabilities[c]
		}
		if len(e.Models) == 0 {
			t.anyModel.add(i)
		}
		for _, m := range e.Models {
			if t.models[m] == nil {
				t.models[m] = newBitset(len(specs))
			}
			t.models[m].add(i)
		}
	}
	for _, set := range t.models {
		set.union(t.anyModel)
	}
	return errs
}

// Snapshot returns the snapshot that the table was built from.
func (t *Table) Snapshot() *snapshot.Snapshot { return t.snapshot }

// Cluster returns the cluster that the table is for.
func (t *Table) Cluster() string { return t.cluster }

// Engines returns the engines of the snapshot; an engine's number is its index.
func (t *Table) Engines() []snapshot.Engine { return t.snapshot.Engines }

// EngineNumber returns the number of the engine of this name.
func (t *Table) EngineNumber(name string) (n int, ok bool) {
	n, ok = t.byName[name]
	return n, ok
}

// Classes returns all classes in the order in which they are tried.
func (t *Table) Classes() []Class { return t.classes }

// Class returns the class of this name, nil if there is none.
func (t *Table) Class(name string) *Class {
	i, ok := t.byClass[name]
	if !ok {
		return nil
	}
	return &t.classes[i]
}

// bitset is a set of engine numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bitset) union(o bitset) {
	for i := range b {
		b[i] |= o[i]
	}
}
