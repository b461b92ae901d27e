package pick

import "github.com/cespare/xxhash/v2"

// Endpoints is the set of endpoints of one engine, equal in weight, ordered for
// each key by highest random weight (Thaler and Ravishankar 1998): the loss or
// the refusal of one moves its own keys only, over all the others alike.
// It is immutable.
type Endpoints struct {
	ids    []string
	hashes []uint64
}

// NewEndpoints makes the set of endpoints with these ids (addresses). Equal ids
// mean the same endpoint and share one place.
func NewEndpoints(ids []string) *Endpoints {
	e := &Endpoints{}
	have := make(map[string]bool, len(ids))
	for _, id := range ids {
		if have[id] {
			continue
		}
		have[id] = true
		e.ids = append(e.ids, id)
		e.hashes = append(e.hashes, xxhash.Sum64String(id))
	}
	return e
}

// Len returns the number of endpoints.
func (e *Endpoints) Len() int { return len(e.ids) }

// ID returns the id of the i-th endpoint.
func (e *Endpoints) ID(i int) string { return e.ids[i] }

// EndpointWalk gives endpoints in the order of one key. It is a value for one
// goroutine, takes no lock and allocates nothing.
type EndpointWalk struct {
	endpoints *Endpoints
	key       uint64
	last      int // index given last
	n         int // given so far
}

// Walk starts at the home endpoint of a key.
func (e *Endpoints) Walk(key uint64) EndpointWalk { return EndpointWalk{endpoints: e, key: key} }

// Next returns the index of the next endpoint; ok is false when none is left.
// Each call looks at every endpoint once.
func (w *EndpointWalk) Next() (i int, ok bool) {
	hashes := w.endpoints.hashes
	if w.n == len(hashes) {
		return 0, false
	}
	var lastScore uint64
	if w.n > 0 {
		lastScore = mix(w.key ^ hashes[w.last])
	}
	best, bestScore := -1, uint64(0)
	for j, h := range hashes {
		// mix is a bijection and the hashes of ids differ but for a collision
		// of xxhash64; the index decides then.
		score := mix(w.key ^ h)
		if w.n > 0 && (score > lastScore || score == lastScore && j <= w.last) {
			continue
		}
		if best < 0 || score > bestScore {
			best, bestScore = j, score
		}
	}
	w.last = best
	w.n++
	return best, true
}
