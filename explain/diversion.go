package explain

import (
	"slices"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/model"
)

// diversion is the replay of one loss.
type diversion struct {
	*reactor
	lost    []string
	flows   map[int]float64 // req/s by pair
	work    []float64       // token equivalents/s by engine
	streams []stream
	out     *Reaction
}

func (r *reactor) newDiversion(lost []string) *diversion {
	return &diversion{reactor: r, lost: lost, flows: make(map[int]float64), work: make([]float64, len(r.p.Engines)), out: &Reaction{}}
}

// stream is what one source had on the lost engines.
type stream struct {
	node   int // of the plan
	class  *pick.Class
	stay   []uint64
	keys   []uint64
	rps    float64            // per key
	absorb map[string]float64 // req/s left, by fallback
}

// plan puts what a source has on engines that are left in place, and what it
// had on lost ones on its way.
func (d *diversion) plan(source *snapshot.Source) {
	node, ok := d.source[model.SourceKey{Cluster: source.Cluster, Class: source.Class}]
	if !ok {
		return // idle
	}
	d.out.RefusedRPS += source.ShedRPS
	var moved float64
	for _, w := range source.Weights {
		if slices.Contains(d.lost, w.Engine) {
			moved += w.RPS
		} else {
			d.put(node, w.Engine, w.RPS)
		}
	}
	if moved == 0 {
		return
	}
	d.out.MovedRPS += moved
	table := d.tables[source.Cluster]
	s := stream{node: node, class: table.Class(source.Class), keys: lostKeys(source, d.lost), absorb: make(map[string]float64)}
	s.rps = moved / float64(len(s.keys))
	for _, f := range source.Fallbacks {
		s.absorb[f.Engine] = f.AbsorbRPS
	}
	s.stay = make([]uint64, len(d.s.Engines))
	for i := range s.stay {
		s.stay[i] = pick.StayAll
		if slices.Contains(d.lost, d.s.Engines[i].Name) {
			s.stay[i] = 0
		}
	}
	d.streams = append(d.streams, s)
}

// put adds a flow where the pair is eligible.
func (d *diversion) put(node int, engine string, rps float64) {
	e, known := d.engine[engine]
	if k, eligible := d.pair[[2]int{node, e}]; known && eligible {
		d.flows[k] += rps
		d.work[e] += rps * d.p.Sources[node].Work
	}
}

// divert walks the keys of all streams by turns, so that they share what room
// there is.
func (d *diversion) divert() {
	for turn := range probes {
		for i := range d.streams {
			s := &d.streams[i]
			if n := len(s.keys); turn*n/probes != (turn+1)*n/probes {
				d.walk(s, s.keys[turn*n/probes])
			}
		}
	}
}

// walk sends the requests of one key along the agents' walk: first to engines
// with room, then to fallbacks beyond what they may absorb.
func (d *diversion) walk(s *stream, key uint64) {
	left, steps := s.rps, 0
	for _, beyond := range []bool{false, true} {
		if left <= 0 {
			return
		}
		w := s.class.Walk(pick.Request{Key: key, Stay: s.stay})
		for step, ok := w.Next(); ok && left > 0; step, ok = w.Next() {
			steps++
			engine := d.s.Engines[step.Engine].Name
			take := min(left, d.room(s.node, engine))
			if step.Fallback && !beyond {
				take = min(take, s.absorb[engine])
				s.absorb[engine] -= take
			}
			d.put(s.node, engine, take)
			left -= take
			if beyond {
				d.out.BeyondRPS += take
			}
		}
	}
	if steps == 0 {
		d.out.UnroutedRPS += left
	} else {
		d.out.RefusedRPS += left
	}
}

// room is what an engine can still take of a source, in req/s.
func (d *diversion) room(node int, engine string) float64 {
	e, known := d.engine[engine]
	if !known {
		return 0
	}
	return max(0, d.p.Engines[e].Capacity-d.work[e]) / d.p.Sources[node].Work
}

// lostKeys returns keys spread evenly over the ranges of the lost engines.
func lostKeys(source *snapshot.Source, lost []string) []uint64 {
	type span struct{ from, size uint64 }
	var spans []span
	var total uint64
	for i, from := range source.LayoutFrom {
		if !slices.Contains(lost, source.LayoutTo[i]) {
			continue
		}
		end := uint64(snapshot.QuotaSum)
		if i+1 < len(source.LayoutFrom) {
			end = uint64(source.LayoutFrom[i+1])
		}
		spans = append(spans, span{uint64(from), end - uint64(from)})
		total += end - uint64(from)
	}
	n := min(probes, total)
	keys := make([]uint64, 0, n)
	spread := pick.NewSpread(0)
	var before uint64 // measure of the spans before the present one
	for i := uint64(0); i < n; i++ {
		at := i * total / n
		for at-before >= spans[0].size {
			before += spans[0].size
			spans = spans[1:]
		}
		// The lower half of a key does not place it, but ranks what comes next.
		keys = append(keys, (spans[0].from+at-before)<<32|spread.Next()>>32)
	}
	return keys
}
