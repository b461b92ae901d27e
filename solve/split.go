package solve

import (
	"github.com/irb-project/irb/agent/snapshot"
)

// Split takes a snapshot apart into one per cluster, in order of name, each
// with the sources of its cluster and the engines that these name. They have
// the head of the whole, and so its sequence.
func Split(whole *snapshot.Snapshot) []*snapshot.Snapshot {
	var parts []*snapshot.Snapshot
	for i := 0; i < len(whole.Sources); {
		j := i
		for j < len(whole.Sources) && whole.Sources[j].Cluster == whole.Sources[i].Cluster {
			j++
		}
		parts = append(parts, part(whole, whole.Sources[i:j]))
		i = j
	}
	return parts
}

func part(whole *snapshot.Snapshot, sources []snapshot.Source) *snapshot.Snapshot {
	p := *whole
	p.Part, p.Sources = sources[0].Cluster, sources
	p.Groups, p.Caps, p.Cuts = nil, nil, nil // the proof needs all sources
	named := make(map[string]bool)
	for _, s := range sources {
		for _, w := range s.Weights {
			named[w.Engine] = true
		}
		for _, a := range s.Alternatives {
			named[a.Engine] = true
		}
		for _, f := range s.Fallbacks {
			named[f.Engine] = true
		}
	}
	p.Engines = nil
	for _, e := range whole.Engines {
		if named[e.Name] {
			p.Engines = append(p.Engines, e)
		}
	}
	return &p
}
