package reload

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
)

func TestStartAndReload(t *testing.T) {
	a := newAgent(t, nil)
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
	a.serves(1000)
	a.check(false)
	a.quiet() // the same content is no reload
	a.write(signed(t, testSnapshot(1001)))
	a.check(false)
	a.expect(Accepted, 1001)
	a.serves(1001)
	a.check(true)
	a.expect(Unchanged, 1001) // somebody asked
	if n := len(a.published); n != 2 {
		t.Errorf("published %d tables, want 2", n)
	}
	if a.Serving().Expired(a.now()) || len(a.Serving().KeyIDs) != 1 || a.Serving().Digest == "" {
		t.Errorf("%+v", a.Serving())
	}
}

func TestFolderStandsForItsFile(t *testing.T) {
	a := newAgent(t, func(o *Options) { o.Path = filepath.Dir(o.Path) })
	a.path = filepath.Join(a.dir, "weights.toml")
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
}

// Whatever is wrong with a file, it is refused with the reason, once, and the
// old snapshot goes on serving.
func TestRefusals(t *testing.T) {
	good := signed(t, testSnapshot(1001))
	change := func(f func(*snapshot.Snapshot)) []byte {
		s := testSnapshot(1001)
		f(s)
		return signed(t, s)
	}
	_, foreign := testKey(t, 2)
	body, _, err := snapshot.Split(good)
	must(t, err)
	foreignFile, err := snapshot.Sign(body, foreign)
	must(t, err)
	tests := []struct {
		name   string
		file   []byte
		result string
		known  bool // the sequence is told
	}{
		{"empty", nil, "truncated", false},
		{"cut in the body", good[:len(good)/2], "truncated", false},
		{"cut in the signature", good[:len(good)-10], "truncated", false},
		{"flipped bit", flip(good, len(body)/2), "signature", false},
		{"flipped bit in the signature", flip(good, len(good)-30), "signature", false},
		{"bytes after the signatures", append(bytes.Clone(good), "x\n"...), "signature", false},
		{"foreign key", foreignFile, "signature", false},
		{"other fleet", change(func(s *snapshot.Snapshot) { s.Fleet = "staging" }), "fleet", true},
		{"older", signed(t, testSnapshot(999)), "sequence", true},
		{"fork", change(func(s *snapshot.Snapshot) { s.Sequence, s.Author = 1000, "somebody else" }), "fork", true},
		{"far future", signed(t, testSnapshot(1000+2*24*3600*1000)), "future", true},
		{"expired", change(func(s *snapshot.Snapshot) { s.Expires = s.Created.Add(time.Second) }), "expired", true},
		{"quotas", change(func(s *snapshot.Snapshot) { s.Sources[0].Weights[0].Quota-- }), "meaning", true},
		{"other cluster", change(func(s *snapshot.Snapshot) { s.Sources[0].Cluster = "d" }), "cluster", true},
		{"no table", change(func(s *snapshot.Snapshot) { s.Author = "refuse me" }), "build", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAgent(t, func(o *Options) {
				build := o.Build
				o.Build = func(s *snapshot.Snapshot) (*pick.Table, error) {
					if s.Author == "refuse me" {
						return nil, errors.New("no table can be made")
					}
					return build(s)
				}
			})
			a.write(signed(t, testSnapshot(1000)))
			a.Start()
			a.expect(Accepted, 1000)
			a.write(tt.file)
			a.check(false)
			e := <-a.events
			if e.Result != tt.result || e.Err == nil || (e.Sequence != 0) != tt.known {
				t.Fatalf("%+v: %s, want %s", e, e, tt.result)
			}
			if !slices.Contains(Results(), e.Result) {
				t.Errorf("%q is not among Results", e.Result)
			}
			a.check(false)
			a.quiet()
			a.serves(1000)
			if len(a.published) != 1 {
				t.Errorf("published %d tables, want 1", len(a.published))
			}
			a.check(true) // asked, it says it again
			if again := <-a.events; !again.same(e) {
				t.Errorf("asked again: %s, want %s", again, e)
			}
			a.write(good)
			a.check(false)
			a.expect(Accepted, 1001)
		})
	}
}

func flip(file []byte, i int) []byte {
	file = bytes.Clone(file)
	file[i] ^= 1
	return file
}

// A refused file that gives way to the one in service is told as good again.
func TestRecovery(t *testing.T) {
	a := newAgent(t, nil)
	good := signed(t, testSnapshot(1000))
	a.write(good)
	a.Start()
	a.expect(Accepted, 1000)
	a.write(good[:100])
	a.check(false)
	a.expect("truncated", 0)
	a.write(good)
	a.check(false)
	a.expect(Unchanged, 1000)
	must(t, os.Remove(a.path))
	a.check(false)
	a.expect(Unreadable, 0)
	a.check(false)
	a.quiet()
	a.write(good)
	a.check(false)
	a.expect(Unchanged, 1000)
	a.serves(1000)
}

// A file from the future is told once and taken when its time has come.
func TestFutureIsTakenLater(t *testing.T) {
	a := newAgent(t, nil)
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
	ahead := int64(30 * time.Hour / time.Millisecond)
	a.write(signed(t, testSnapshot(ahead)))
	a.check(false)
	a.expect("future", ahead)
	a.setTime(created.Add(7 * time.Hour))
	a.check(false)
	a.expect(Stale, 1000) // the old one has expired meanwhile
	a.expect(Accepted, ahead)
}

// A clock that was set back, as on a machine that starts without one, takes
// nothing out of service that was accepted: not while the agent runs, nor after a
// restart, from the file and from the state.
func TestClockSetBack(t *testing.T) {
	a := newAgent(t, nil)
	const late = int64(40 * 24 * time.Hour / time.Millisecond)
	a.setTime(time.UnixMilli(late))
	s := testSnapshot(late)
	s.Created, s.Expires = time.UnixMilli(late), time.UnixMilli(late).Add(time.Hour)
	a.write(signed(t, s))
	a.Start()
	a.expect(Accepted, late)
	a.setTime(time.UnixMilli(0))
	a.check(true)
	a.expect(Unchanged, late)
	for _, remove := range []bool{false, true} {
		if remove {
			must(t, os.Remove(a.path))
		}
		a.reopen(a.options)
		a.Start()
		if e := a.expect(Accepted, late); e.FromState != remove {
			t.Errorf("%+v", e)
		}
		a.serves(late)
		if remove {
			a.expect(Unreadable, 0)
		}
	}
	// Another one of so far ahead is not taken.
	s.Sequence++
	a.write(signed(t, s))
	a.check(false)
	a.expect("future", late+1)
	a.serves(late)
}

// Expiry blocks replacement, not service.
func TestExpiredGoesOnServing(t *testing.T) {
	a := newAgent(t, nil)
	file := signed(t, testSnapshot(1000))
	a.write(file)
	a.Start()
	a.expect(Accepted, 1000)
	a.setTime(created.Add(2 * time.Hour))
	a.check(false)
	if e := a.expect(Stale, 1000); e.String() != "snapshot 1000 has expired and goes on serving" {
		t.Error(e)
	}
	a.check(false)
	a.quiet()
	if !a.Serving().Expired(a.now()) {
		t.Error("not marked as expired")
	}
	// A restart with nothing but that serves it, and says so; from the state too.
	for _, remove := range []bool{false, true} {
		if remove {
			must(t, os.Remove(a.path))
		}
		a.reopen(a.options)
		a.Start()
		if e := a.expect(Accepted, 1000); !e.Expired || e.FromState != remove {
			t.Errorf("%+v", e)
		}
		a.serves(1000)
		if remove {
			a.expect(Unreadable, 0)
		}
		a.check(false)
		a.quiet()
	}
	// Unless told otherwise.
	a.write(file)
	fresh := a.options
	fresh.RequireFresh = true
	a.reopen(fresh)
	a.Start()
	a.expect("expired", 1000) // the kept one
	a.expect("expired", 1000) // the weight file
	a.serves(0)
}

// What was accepted outlives a restart: the highest sequence, the file with
// exactly its signed bytes, and service when the weight file is gone or bad.
func TestStateOutlivesRestart(t *testing.T) {
	newest := signed(t, testSnapshot(1001))
	a := newAgent(t, nil)
	a.write(newest)
	a.Start()
	a.expect(Accepted, 1001)
	kept, err := os.ReadFile(filepath.Join(a.options.StateDir, "accepted.toml"))
	if err != nil || !bytes.Equal(kept, newest) {
		t.Fatalf("kept %d bytes, %v, want the %d of the file", len(kept), err, len(newest))
	}
	fork := testSnapshot(1001)
	fork.Author = "somebody else"
	for _, tt := range []struct {
		file   []byte
		result string
		seq    int64
	}{
		{signed(t, testSnapshot(1000)), "sequence", 1000},
		{signed(t, fork), "fork", 1001},
		{newest[:len(newest)-5], "truncated", 0},
	} {
		a.write(tt.file)
		a.reopen(a.options)
		a.Start()
		if e := a.expect(Accepted, 1001); !e.FromState {
			t.Errorf("%s: accepted from the weight file", tt.result)
		}
		if e := a.expect(tt.result, tt.seq); !strings.Contains(e.String(), "still serving 1001") {
			t.Error(e)
		}
		a.serves(1001)
	}
	// Without the kept file the mark still holds.
	must(t, os.Remove(filepath.Join(a.options.StateDir, "accepted.toml")))
	a.write(signed(t, testSnapshot(1000)))
	a.reopen(a.options)
	a.Start()
	a.expect("sequence", 1000)
	a.serves(0)
	a.write(newest)
	a.check(false)
	a.expect(Accepted, 1001)
	// Another fleet counts for itself.
	other := testSnapshot(10)
	other.Fleet = "staging"
	a.write(signed(t, other))
	options := a.options
	options.Fleet = "staging"
	a.reopen(options)
	a.Start()
	a.expect(Accepted, 10)
}

// What is to be kept once the state folder can be written again is what was
// accepted, whatever was read since.
func TestKeepsLaterWhatWasAccepted(t *testing.T) {
	a := newAgent(t, nil)
	kept := filepath.Join(a.options.StateDir, "accepted.toml")
	must(t, os.Mkdir(kept, 0o700)) // no file can be written there
	file := signed(t, testSnapshot(1000))
	a.write(file)
	a.Start()
	if e := a.expect(Accepted, 1000); e.StateErr == nil {
		t.Fatal("kept where a folder is")
	}
	a.write(bytes.Repeat([]byte("x"), len(file)))
	a.check(false)
	a.expect(string(snapshot.ReasonTruncated), 0)
	must(t, os.Remove(kept))
	a.check(false)
	if got, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, file) {
		t.Errorf("kept %.40q, %v", got, err)
	}
}

func TestStateProblems(t *testing.T) {
	a := newAgent(t, nil)
	highest := filepath.Join(a.options.StateDir, "highest")
	for _, bad := range []string{"", "x\n", "12 abc\n", "-\n"} {
		must(t, os.WriteFile(highest, []byte(bad), 0o600))
		if _, err := New(a.options); err == nil || !strings.Contains(err.Error(), highest) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	must(t, os.Remove(highest))
	// A kept file that is damaged is told.
	must(t, os.WriteFile(filepath.Join(a.options.StateDir, "accepted.toml"), []byte("x"), 0o600))
	a.reopen(a.options)
	a.Start()
	if e := a.expect("truncated", 0); !e.FromState || !strings.HasPrefix(e.String(), "kept snapshot refused: ") {
		t.Error(e)
	}
	a.expect(Unreadable, 0)
	must(t, os.Remove(filepath.Join(a.options.StateDir, "accepted.toml")), os.Mkdir(filepath.Join(a.options.StateDir, "accepted.toml"), 0o700))
	a.Start()
	if e := a.expect(Unreadable, 0); !strings.HasPrefix(e.String(), "kept weight file cannot be read: ") {
		t.Error(e)
	}
	a.expect(Unreadable, 0)
	// What cannot be kept is served, and kept when that is possible again.
	must(t, os.RemoveAll(a.options.StateDir), os.WriteFile(a.options.StateDir, nil, 0o600))
	a.write(signed(t, testSnapshot(1000)))
	a.check(false)
	if e := a.expect(Accepted, 1000); e.StateErr == nil || !strings.Contains(e.String(), "not kept for a restart") {
		t.Errorf("no word of the state: %s", e)
	}
	must(t, os.Remove(a.options.StateDir), os.Mkdir(a.options.StateDir, 0o700))
	a.check(false)
	a.quiet()
	kept, err := os.ReadFile(filepath.Join(a.options.StateDir, "accepted.toml"))
	if err != nil || len(kept) == 0 {
		t.Errorf("not kept: %v", err)
	}
	// A state folder that cannot be is an error at once.
	options := a.options
	options.StateDir = filepath.Join(a.path, "sub")
	if _, err := New(options); err == nil {
		t.Error("made a folder inside a file")
	}
}

// Without a state folder nothing is kept, and nothing fails.
func TestWithoutState(t *testing.T) {
	a := newAgent(t, func(o *Options) { o.StateDir = "" })
	a.Start()
	a.expect(Unreadable, 0)
	a.serves(0)
	a.write(signed(t, testSnapshot(1000)))
	a.check(false)
	if e := a.expect(Accepted, 1000); e.StateErr != nil {
		t.Error(e)
	}
}

// An agent with nothing in service takes even an expired file.
func TestExpiredIsBetterThanNothing(t *testing.T) {
	a := newAgent(t, nil)
	a.setTime(created.Add(100 * time.Hour))
	a.Start()
	a.expect(Unreadable, 0)
	a.write(signed(t, testSnapshot(1000)))
	a.check(false)
	if e := a.expect(Accepted, 1000); !e.Expired || e.String() != "snapshot 1000 is in service, although it has expired" {
		t.Error(e)
	}
	a.write(signed(t, testSnapshot(1001)))
	a.check(false)
	a.expect("expired", 1001)
}

// Keys rotate: a file signed by old and new key is good for both.
func TestKeyRotation(t *testing.T) {
	newPublic, newPrivate := testKey(t, 2)
	a := newAgent(t, func(o *Options) { o.Trusted = append(o.Trusted, newPublic) })
	_, oldPrivate := testKey(t, 1)
	body, err := snapshot.Encode(testSnapshot(1000))
	must(t, err)
	both, err := snapshot.Sign(body, oldPrivate, newPrivate)
	must(t, err)
	a.write(both)
	a.Start()
	a.expect(Accepted, 1000)
	if n := len(a.Serving().KeyIDs); n != 2 {
		t.Errorf("%d keys, want 2", n)
	}
	// After the rotation the kept file is by a key that is not trusted: it is not
	// served, but what it stood for still holds.
	body, err = snapshot.Encode(testSnapshot(999))
	must(t, err)
	older, err := snapshot.Sign(body, newPrivate)
	must(t, err)
	a.write(older)
	options := a.options
	options.Trusted = []minisign.PublicKey{newPublic}
	signedByOld := signed(t, testSnapshot(1000))
	must(t, os.WriteFile(filepath.Join(options.StateDir, "accepted.toml"), signedByOld, 0o600))
	a.reopen(options)
	a.Start()
	a.expect("signature", 0)
	a.expect("sequence", 999)
	a.serves(0)
}

func TestEventStrings(t *testing.T) {
	for _, tt := range []struct {
		event Event
		want  string
	}{
		{Event{Result: Accepted, Sequence: 7}, "snapshot 7 is in service"},
		{Event{Result: Accepted, Sequence: 7, FromState: true}, "kept snapshot 7 is in service"},
		{Event{Result: Unchanged, Sequence: 7}, "snapshot 7 is in service already"},
		{Event{Result: Unreadable, Err: errors.New("gone")}, "weight file cannot be read: gone"},
		{Event{Result: Unwatched, Err: errors.New("no more")}, "no file events, only polling: no more"},
	} {
		if got := tt.event.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func BenchmarkReload10000Weights(b *testing.B) {
	a, z := signed(b, largeSnapshot(1000, 5000)), signed(b, largeSnapshot(1001, 5000))
	public, _ := testKey(b, 1)
	b.Logf("%d bytes", len(a))
	for b.Loop() {
		b.StopTimer()
		path := filepath.Join(b.TempDir(), "weights.toml")
		must(b, os.WriteFile(path, a, 0o600))
		r, err := New(Options{
			Path: path, Fleet: "prod", Cluster: "c", Trusted: []minisign.PublicKey{public}, StateDir: b.TempDir(),
			Now:    func() time.Time { return created.Add(time.Minute) },
			Build:  func(s *snapshot.Snapshot) (*pick.Table, error) { return pick.NewTable(s, "c") },
			Report: func(e Event) { must(b, e.Err, e.StateErr) },
		})
		must(b, err)
		r.Start()
		must(b, os.WriteFile(path, z, 0o600))
		b.StartTimer()
		r.check(false)
		if got := r.Serving().Snapshot.Sequence; got != 1001 {
			b.Fatal(fmt.Sprint("serving ", got))
		}
	}
}
