package pick

import "math/bits"

// StayAll is the threshold of an engine that keeps all its keys.
const StayAll = ^uint64(0)

// Request is what a walk over the engines of a class depends on.
type Request struct {
	Key uint64
	// Stay holds, per engine number, the part of its keys that an engine keeps,
	// times 2^64: StayAll for all, 0 for none (it is out of service). Engines
	// beyond the end of the slice keep all. The walk only reads it.
	Stay []uint64
	Need Need
	// Hard requests belong to the state that one engine holds: they go to the
	// owner of their key or nowhere, penalty or not.
	Hard bool
}

// Need is what an engine must have to serve a request. The zero Need asks for
// nothing. Class.Need makes one.
type Need struct {
	models       bitset // nil: any engine
	capabilities uint64
	tokens       int64
}

// Need returns what a request of this class needs of an engine.
//
// The model is looked at only if the class is not for one model: else the
// solver has seen to it, and the name in the request may be an alias. A
// capability that no engine of the snapshot declares is one that the owner of
// the fleet does not keep book of; it excludes nothing. Tokens is the estimated
// context, prompt and output.
func (c *Class) Need(model string, tokens int64, capabilities ...string) Need {
	n := Need{tokens: tokens}
	t := c.table
	if c.Spec.Model == "" && model != "" && len(t.models) > 0 {
		n.models = t.anyModel
		if set, ok := t.models[model]; ok {
			n.models = set
		}
	}
	for _, name := range capabilities {
		n.capabilities |= t.capabilities[name]
	}
	return n
}

// Reason says why a walk passed over an engine.
type Reason uint8

// The reasons, the gravest last. Engines passed over for ReasonPenalty or
// ReasonContext are offered again when nothing else is left: a penalty is a
// wish and the token count an estimate; serving is better than refusing.
const (
	ReasonNone       Reason = iota
	ReasonPenalty           // its penalty sends this key on
	ReasonContext           // its context seems too short
	ReasonDown              // it is out of service: Stay is 0
	ReasonCapability        // it lacks a capability
	ReasonModel             // it does not serve the model
)

var reasonNames = [...]string{"", "penalty", "context", "down", "capability", "model"}

// String returns the word for logs and labels.
func (r Reason) String() string { return reasonNames[r] }

func (r Reason) soft() bool { return r == ReasonPenalty || r == ReasonContext }

// Step is one engine that a walk offers.
type Step struct {
	Engine     int  // its number in the table
	Rank       int  // its place in the order of this key, 0 for the owner
	Fallback   bool // it owns no range
	LastResort bool // it was passed over before, for Reason
	Reason     Reason
}

// Skipped is an engine that a walk passed over.
type Skipped struct {
	Engine int32
	Rank   int32
	Reason Reason
}

// Walk offers the engines for one request, best first: the owner of the key,
// then the other owners in an order drawn from the key by weight, then the
// fallbacks; engines that refuse the request are passed over. The order depends
// on key and layout alone, so a penalty moves the keys of its own engine only,
// and the same ones on every agent. It never leaves weights and fallbacks.
//
// A Walk is a value for one goroutine and lives on the stack; it takes no lock
// and allocates nothing.
type Walk struct {
	class   *Class
	request Request
	order   order
	resort  bool // second round: what was passed over for a soft reason
	soft    bool // there is something for a second round
	skips   int
	skipped [maxSkipped]Skipped
}

// maxSkipped is how many passed-over engines a walk remembers for the log.
const maxSkipped = 8

// Walk starts the walk of a request.
func (c *Class) Walk(r Request) Walk { return Walk{class: c, request: r} }

// Next returns the next engine to try; ok is false when none is left.
func (w *Walk) Next() (step Step, ok bool) {
	if w.class.Source == nil {
		return Step{}, false
	}
	for {
		rank := w.order.n
		s := w.order.next(&w.class.layout, w.request.Key)
		if s < 0 || w.request.Hard && rank > 0 {
			if w.resort || !w.soft || w.request.Hard {
				return Step{}, false
			}
			w.resort, w.order = true, order{}
			continue
		}
		e := w.class.layout.slots[s].engine
		reason := w.refusal(e)
		switch {
		case w.resort && !reason.soft():
			continue // offered in the first round, or never
		case !w.resort && reason != ReasonNone:
			w.note(Skipped{Engine: int32(e), Rank: int32(rank), Reason: reason})
			continue
		}
		return Step{Engine: e, Rank: rank, Fallback: s >= w.class.layout.owners, LastResort: w.resort, Reason: reason}, true
	}
}

func (w *Walk) note(s Skipped) {
	w.soft = w.soft || s.Reason.soft()
	if w.skips < maxSkipped {
		w.skipped[w.skips] = s
		w.skips++
	}
}

// Skipped returns the engines passed over so far, the first eight of them. The
// slice is the walk's own.
func (w *Walk) Skipped() []Skipped { return w.skipped[:w.skips] }

// refusal returns why engine e should not get the request, the gravest reason.
func (w *Walk) refusal(e int) Reason {
	n := &w.request.Need
	eng := &w.class.table.engines[e]
	stay := StayAll
	if e < len(w.request.Stay) {
		stay = w.request.Stay[e]
	}
	switch {
	case n.models != nil && !n.models.has(e):
		return ReasonModel
	case n.capabilities&^eng.capabilities != 0:
		return ReasonCapability
	case stay == 0:
		return ReasonDown
	case eng.maxContextTokens > 0 && n.tokens > eng.maxContextTokens && !w.request.Hard:
		return ReasonContext
	case !stays(w.request.Key, eng.hash, stay) && !w.request.Hard:
		return ReasonPenalty
	}
	return ReasonNone
}

// stays says whether an engine that keeps stay / 2^64 of its keys keeps this
// one: hash2(key, engine) < stay, where hash2 mixes the key with the digest of
// the engine's name.
func stays(key, engineHash, stay uint64) bool {
	return stay == StayAll || mix(key^engineHash) < stay
}

// order generates the slots of a layout in the order of a key.
type order struct {
	n     int // slots given so far
	draws uint64
	seen  [maxDrawn]int32 // the owners given first
	start int             // of the round over the owners that come after those
	round int
}

const (
	// maxDrawn owners are drawn by weight; those after them come in the order
	// of slots, which needs no memory of what was given.
	maxDrawn = 8
	// maxRehash draws are made for a rank before it is computed instead. Both
	// have the same distribution: weights without those seen.
	maxRehash = 4
	// drawStep is another odd step than golden: else the draws of a keyless
	// request would be those of the next one.
	drawStep = 0xD1B54A32D192ED03
)

// next returns the next slot, -1 after the last.
func (o *order) next(l *layout, key uint64) int {
	n := o.n
	o.n++
	switch {
	case n == 0:
		s := l.at(Position(key))
		o.seen[0] = int32(s)
		return s
	case n < min(l.owners, maxDrawn):
		s := o.draw(l, key)
		o.seen[n] = int32(s)
		return s
	case n < l.owners:
		return o.remaining(l, key)
	case n < len(l.slots):
		return n // fallbacks follow the owners
	}
	o.n = n
	return -1
}

// draw returns an owner not yet seen with probability in proportion to quota.
func (o *order) draw(l *layout, key uint64) int {
	for range maxRehash {
		o.draws++
		if s := l.at(Position(mix(key + o.draws*drawStep))); !o.has(s) {
			return s
		}
	}
	left := uint64(1) << 32
	for _, s := range o.seen[:o.n-1] {
		left -= l.slots[s].quota
	}
	o.draws++
	at, _ := bits.Mul64(mix(key+o.draws*golden), left)
	for s := range l.slots[:l.owners] {
		if o.has(s) {
			continue
		}
		if q := l.slots[s].quota; at >= q {
			at -= q
			continue
		}
		return s
	}
	return -1 // not reached: the quotas of the unseen sum to left
}

// remaining goes once round the owners from a place drawn from the key.
func (o *order) remaining(l *layout, key uint64) int {
	if o.round == 0 {
		hi, _ := bits.Mul64(mix(key), uint64(l.owners))
		o.start = int(hi)
	}
	for {
		s := (o.start + o.round) % l.owners
		o.round++
		if !o.has(s) {
			return s
		}
	}
}

// has says whether slot s is among those drawn.
func (o *order) has(s int) bool {
	for _, seen := range o.seen[:min(o.n-1, maxDrawn)] {
		if int(seen) == s {
			return true
		}
	}
	return false
}

// Owner returns the number of the engine that owns a key by the layout. The
// class must be routable.
func (c *Class) Owner(key uint64) int {
	return c.layout.slots[c.layout.at(Position(key))].engine
}
