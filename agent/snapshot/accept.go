package snapshot

import (
	"errors"
	"fmt"
	"time"

	"aead.dev/minisign"
)

// Reason is why a file was refused, a stable value for labels of metrics.
type Reason string

// The reasons in the order of the checks.
const (
	ReasonSize      Reason = "size"      // above the limit
	ReasonTruncated Reason = "truncated" // ends before its signatures do
	ReasonSignature Reason = "signature" // not by a trusted key, or malformed
	ReasonFormat    Reason = "format"    // not a body that this code reads
	ReasonFleet     Reason = "fleet"     // of another fleet
	ReasonSequence  Reason = "sequence"  // older than one accepted before
	ReasonFork      Reason = "fork"      // the sequence of another body
	ReasonFuture    Reason = "future"    // sequence far ahead of the clock
	ReasonExpired   Reason = "expired"
	ReasonMeaning   Reason = "meaning" // fails Check
	ReasonCluster   Reason = "cluster" // nothing in it for this cluster
)

// Reasons returns every reason.
func Reasons() []Reason {
	return []Reason{
		ReasonSize, ReasonTruncated, ReasonSignature, ReasonFormat, ReasonFleet, ReasonSequence,
		ReasonFork, ReasonFuture, ReasonExpired, ReasonMeaning, ReasonCluster,
	}
}

// MaxAhead is how far the time that a sequence stands for may be ahead of the
// clock: one far in the future would lock out all that come after it.
const MaxAhead = 24 * time.Hour

// Rules is what an agent holds a file against.
type Rules struct {
	Fleet   string
	Cluster string // "": any, for those who serve no cluster
	Trusted []minisign.PublicKey
	Now     time.Time

	// MaxBytes is the limit of the file; 0: MaxBytes.
	MaxBytes int

	// HighestSequence is the highest sequence accepted so far, kept over
	// restarts, with the Digest of its body; 0 and "": none.
	HighestSequence int64
	HighestDigest   string

	// ServingSequence is that of the snapshot in service; 0: none.
	ServingSequence int64

	// AllowExpired accepts an expired snapshot, and says so: expiry blocks
	// replacement, not service. For an agent that starts with nothing better,
	// unless it was told to serve fresh snapshots only.
	AllowExpired bool

	// Pause is called again and again between short pieces of the work, so that
	// whoever has other things to do may do them in between; nil: it is not.
	Pause func()
}

// Accepted is a file that passed.
type Accepted struct {
	Snapshot *Snapshot
	Body     []byte   // the signed bytes, a part of the file
	Digest   string   // of Body
	KeyIDs   []uint64 // trusted keys that signed it
	// Expired says that the snapshot is past its time: serve it, degraded.
	Expired bool
	// Unchanged says that the body is the one in service: nothing to do.
	Unchanged bool
}

// Refusal is the error of Accept.
type Refusal struct {
	Reason   Reason
	Sequence int64 // of the refused file; 0: not known to be signed
	Serving  int64 // what goes on serving; 0: nothing
	Err      error // the problem, joined if several
}

// Error reads "snapshot 41 refused: older than 42; still serving 42", on one
// line.
func (r *Refusal) Error() string {
	name := "snapshot"
	if r.Sequence != 0 {
		name = fmt.Sprintf("snapshot %d", r.Sequence)
	}
	serving := "nothing in service"
	if r.Serving != 0 {
		serving = fmt.Sprintf("still serving %d", r.Serving)
	}
	return fmt.Sprintf("%s refused: %s; %s", name, oneLine(r.Err), serving)
}

func (r *Refusal) Unwrap() error { return r.Err }

// oneLine tells the first of joined errors and how many more there are.
func oneLine(err error) string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err.Error()
	}
	errs := joined.Unwrap()
	if len(errs) == 1 {
		return oneLine(errs[0])
	}
	return fmt.Sprintf("%s (and %d more)", oneLine(errs[0]), len(errs)-1)
}

// Accept says whether an agent may serve a file. All or nothing: the file is
// within the size limit, signed by a trusted key, of a format this code reads,
// of this fleet, newer than all accepted before but not from the future, not
// expired, sound in meaning, and has a part for this cluster. The error is a
// *Refusal.
//
// The body in service is accepted again, as Unchanged, also when it has
// expired. A body with the highest sequence but other bytes is a fork: two
// solvers sign for one fleet, and agents must not follow both.
func Accept(file []byte, rules Rules) (*Accepted, error) {
	refuse := func(reason Reason, sequence int64, err error) (*Accepted, error) {
		return nil, &Refusal{Reason: reason, Sequence: sequence, Serving: rules.ServingSequence, Err: err}
	}
	limit := rules.MaxBytes
	if limit == 0 {
		limit = MaxBytes
	}
	if len(file) > limit {
		return refuse(ReasonSize, 0, fmt.Errorf("%d bytes, want at most %d", len(file), limit))
	}
	pause := rules.Pause
	if pause == nil {
		pause = func() {}
	}
	body, keyIDs, err := verify(file, rules.Trusted, pause)
	if errors.Is(err, ErrTruncated) {
		return refuse(ReasonTruncated, 0, err)
	}
	if err != nil {
		return refuse(ReasonSignature, 0, err)
	}
	s, err := decode(body, pause)
	if err != nil {
		return refuse(ReasonFormat, 0, err)
	}
	a := &Accepted{Snapshot: s, Body: body, Digest: digest(body, pause), KeyIDs: keyIDs}
	if reason, err := a.judge(rules, pause); err != nil {
		return refuse(reason, s.Sequence, err)
	}
	return a, nil
}

// judge holds what a signed body says against the rules.
func (a *Accepted) judge(rules Rules, pause func()) (Reason, error) {
	s := a.Snapshot
	if s.Fleet != rules.Fleet {
		return ReasonFleet, fmt.Errorf("of fleet %q, want %q", s.Fleet, rules.Fleet)
	}
	if s.Sequence < rules.HighestSequence {
		return ReasonSequence, fmt.Errorf("older than %d", rules.HighestSequence)
	}
	if s.Sequence == rules.HighestSequence && rules.HighestDigest != "" && a.Digest != rules.HighestDigest {
		return ReasonFork, fmt.Errorf("a fork: the %d accepted before has other bytes (sha256 %.12s, here %.12s)",
			s.Sequence, rules.HighestDigest, a.Digest)
	}
	// One that was accepted before locks out nothing more: a clock that was set back
	// must not take it out of service, least of all after a restart.
	known := s.Sequence == rules.HighestSequence && a.Digest == rules.HighestDigest
	if latest := rules.Now.Add(MaxAhead); s.Sequence > latest.UnixMilli() && !known {
		return ReasonFuture, fmt.Errorf("from the future: sequence stands for %s, the clock says %s",
			time.UnixMilli(s.Sequence).UTC().Format(time.RFC3339), rules.Now.UTC().Format(time.RFC3339))
	}
	a.Expired = !rules.Now.Before(s.Expires)
	a.Unchanged = known && s.Sequence == rules.ServingSequence
	if a.Expired && !rules.AllowExpired && !a.Unchanged {
		return ReasonExpired, fmt.Errorf("expired at %s, the clock says %s",
			s.Expires.Format(time.RFC3339), rules.Now.UTC().Format(time.RFC3339))
	}
	if err := check(s, pause); err != nil {
		return ReasonMeaning, err
	}
	if rules.Cluster != "" && !s.hasCluster(rules.Cluster) {
		return ReasonCluster, fmt.Errorf("no source of cluster %q in it", rules.Cluster)
	}
	return "", nil
}

func (s *Snapshot) hasCluster(cluster string) bool {
	for i := range s.Sources {
		if s.Sources[i].Cluster == cluster {
			return true
		}
	}
	return false
}
