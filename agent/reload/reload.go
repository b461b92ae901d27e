// Package reload keeps an agent on the newest acceptable weight file: it
// watches the file, verifies what comes, and publishes it as a whole or not at
// all.
package reload

import (
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"aead.dev/minisign"

	"github.com/irb-project/irb/agent/pace"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
)

// Options says what to follow and how.
type Options struct {
	// Path is the weight file; a folder stands for its file "weights.toml".
	Path         string
	Fleet        string
	Cluster      string
	Trusted      []minisign.PublicKey
	StateDir     string        // keeps what was accepted over restarts; "": nothing is kept
	RequireFresh bool          // do not start from an expired snapshot
	PollInterval time.Duration // between looks at the file without an event, > 0
	Now          func() time.Time

	// Build makes what is to be published. It may fail, and then the snapshot is
	// refused.
	Build func(*snapshot.Snapshot) (*pick.Table, error)
	// Publish takes a table into service. It cannot fail. May be nil.
	Publish func(*pick.Table)
	// Report is told of every event, in order, by the goroutine of Start or Run.
	Report func(Event)
}

// Serving is the snapshot in service.
type Serving struct {
	Snapshot *snapshot.Snapshot
	Digest   string // of the signed bytes
	KeyIDs   []uint64
}

// Expired says whether the snapshot is past its time at now: it goes on
// serving, degraded.
func (s *Serving) Expired(now time.Time) bool { return !now.Before(s.Snapshot.Expires) }

// Reloader follows one weight file. Start, then Run; Serving and Trigger may be
// called from anywhere at any time, and so may Trust.
type Reloader struct {
	options Options
	state   state
	trusted atomic.Pointer[[]minisign.PublicKey]
	serving atomic.Pointer[Serving]
	trigger chan struct{}
	seed    maphash.Seed

	// What follows belongs to the goroutine of Start and Run.
	highest   mark   // the highest sequence accepted
	unkept    []byte // the file in service if the state folder does not have it yet
	seen      uint64 // hash of the file looked at last, 0 if it could not be read
	read      lastRead
	pacer     pace.Pacer
	buffer    []byte // of the file read last
	last      Event  // reported last about the file
	staleTold bool   // the expiry in service was reported
	unwatched string // why events are missing, as reported last
}

// New returns a Reloader with nothing in service. The error is about the state
// folder, which cannot be made or read.
func New(o Options) (*Reloader, error) {
	if info, err := os.Stat(o.Path); err == nil && info.IsDir() {
		o.Path = filepath.Join(o.Path, "weights.toml")
	}
	r := &Reloader{options: o, state: state{dir: o.StateDir, fleet: o.Fleet}, trigger: make(chan struct{}, 1), seed: maphash.MakeSeed()}
	r.Trust(o.Trusted)
	var err error
	if r.highest, err = r.state.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// Serving returns what is in service, nil if nothing is. It takes no lock.
func (r *Reloader) Serving() *Serving { return r.serving.Load() }

// Trust replaces the keys that snapshots must be signed by to be accepted from
// now on. What is in service goes on serving.
func (r *Reloader) Trust(keys []minisign.PublicKey) { r.trusted.Store(&keys) }

// Trigger has Run look at the file at once and report what it finds, also if
// that is nothing new.
func (r *Reloader) Trigger() {
	select {
	case r.trigger <- struct{}{}:
	default: // one is waiting already
	}
}

// Start takes the best snapshot there is into service: the weight file, else
// the one kept before the restart; an expired one only if there is no fresh
// one. Without any nothing is in service, and Run goes on looking.
func (r *Reloader) Start() {
	file, err := r.readFile()
	kept, keptErr := r.state.readAccepted()
	keptEvent := Event{Result: Unreadable, Err: keptErr, FromState: true}
	for _, allowExpired := range []bool{false, true} {
		if allowExpired && r.options.RequireFresh {
			break
		}
		if err == nil {
			if next, event := r.examine(file, allowExpired); next != nil {
				r.seen = r.hash(file)
				r.adopt(next, event)
				return
			}
		}
		if keptErr == nil {
			var next *candidate
			next, keptEvent = r.examine(kept, allowExpired)
			keptEvent.FromState = true
			if next != nil {
				r.adopt(next, keptEvent)
				break
			}
		}
	}
	if r.Serving() == nil && !errors.Is(keptErr, os.ErrNotExist) {
		r.options.Report(keptEvent)
	}
	r.check(true) // says why it is not the weight file
}

// hash tells one file from another. It is keyed, since a file that looks like
// the last one is not looked at, and fast, since every poll takes it.
func (r *Reloader) hash(file []byte) uint64 {
	var sum maphash.Hash
	sum.SetSeed(r.seed)
	for piece := range slices.Chunk(file, pieceBytes) {
		_, _ = sum.Write(piece) // never fails
		r.pacer.Pause()
	}
	return sum.Sum64()
}

// poll looks at the weight file once if it may have changed without an event.
func (r *Reloader) poll() {
	if r.last.Result != string(snapshot.ReasonFuture) && r.untouched() {
		r.renew()
		return
	}
	r.check(false)
}

// renew does what time brings with it.
func (r *Reloader) renew() {
	r.tellStale()
	if r.unkept != nil && r.state.keep(r.unkept, r.highest) == nil {
		r.unkept = nil
	}
}

// glance takes the weight file into service if it is good, and says nothing if
// it is not: it may be half written.
func (r *Reloader) glance() {
	file, err := r.readFile()
	if err != nil {
		return
	}
	sum := r.hash(file)
	if sum == r.seen {
		return
	}
	if next, event := r.examine(file, r.mayExpire()); next != nil {
		r.seen = sum
		r.adopt(next, event)
	}
}

// mayExpire says whether even an expired snapshot is better than what there is.
func (r *Reloader) mayExpire() bool { return r.Serving() == nil && !r.options.RequireFresh }

// check looks at the weight file once. asked says that somebody waits for an
// answer, also if nothing changed.
func (r *Reloader) check(asked bool) {
	r.renew()
	file, err := r.readFile()
	if err != nil {
		r.seen = 0
		event := Event{Result: Unreadable, Err: err}
		if asked || !event.same(r.last) {
			r.tell(event)
		}
		return
	}
	sum := r.hash(file)
	// One from the future need only wait.
	if sum == r.seen && !asked && r.last.Result != string(snapshot.ReasonFuture) {
		return
	}
	changed := sum != r.seen
	r.seen = sum
	next, event := r.examine(file, r.mayExpire())
	switch {
	case next != nil:
		r.adopt(next, event)
	case asked || changed && !(event.Result == Unchanged && r.last.ok()) || !event.same(r.last):
		r.tell(event)
	}
}

// candidate is a snapshot that passed every test.
type candidate struct {
	accepted *snapshot.Accepted
	table    *pick.Table
	file     []byte
}

// examine holds a file against the rules and builds its table. next is nil if
// there is nothing to adopt; the event says why.
func (r *Reloader) examine(file []byte, allowExpired bool) (next *candidate, event Event) {
	now := r.options.Now()
	rules := snapshot.Rules{
		Fleet: r.options.Fleet, Cluster: r.options.Cluster, Trusted: *r.trusted.Load(), Now: now,
		HighestSequence: r.highest.sequence, HighestDigest: r.highest.digest, AllowExpired: allowExpired,
		Pause: r.pacer.Pause,
	}
	if s := r.Serving(); s != nil {
		rules.ServingSequence = s.Snapshot.Sequence
	}
	accepted, err := snapshot.Accept(file, rules)
	var refusal *snapshot.Refusal
	if errors.As(err, &refusal) {
		return nil, Event{Result: string(refusal.Reason), Sequence: refusal.Sequence, Err: err}
	}
	event = Event{Result: Accepted, Sequence: accepted.Snapshot.Sequence, Expired: accepted.Expired}
	if accepted.Unchanged {
		event.Result = Unchanged
		return nil, event
	}
	r.pacer.Pause()
	table, err := r.options.Build(accepted.Snapshot)
	r.pacer.Pause()
	if err != nil {
		event.Result, event.Err = BuildFailed, fmt.Errorf("snapshot %d refused: %w", event.Sequence, err)
		return nil, event
	}
	return &candidate{accepted, table, file}, event
}

// adopt takes a snapshot into service.
func (r *Reloader) adopt(next *candidate, event Event) {
	r.highest = mark{sequence: next.accepted.Snapshot.Sequence, digest: next.accepted.Digest}
	if !event.FromState {
		// A full disk is no reason to serve old weights; check tries again.
		r.unkept = nil
		if event.StateErr = r.state.keep(next.file, r.highest); event.StateErr != nil {
			r.unkept = slices.Clone(next.file) // which is the buffer
		}
	}
	// Everything that can fail is above this line: from here on the new snapshot
	// is served, and nothing of the old one is. Published first: who asks for
	// what is in service may send requests by it.
	if r.options.Publish != nil {
		r.options.Publish(next.table)
	}
	r.serving.Store(&Serving{
		Snapshot: next.accepted.Snapshot,
		Digest:   next.accepted.Digest,
		KeyIDs:   next.accepted.KeyIDs,
	})
	r.staleTold = event.Expired
	r.tell(event)
}

// tell reports an event about the file.
func (r *Reloader) tell(e Event) {
	r.last = e
	r.options.Report(e)
}

// tellStale reports once that the snapshot in service has expired.
func (r *Reloader) tellStale() {
	s := r.Serving()
	if s == nil || r.staleTold || !s.Expired(r.options.Now()) {
		return
	}
	r.staleTold = true
	r.options.Report(Event{Result: Stale, Sequence: s.Snapshot.Sequence, Expired: true})
}
