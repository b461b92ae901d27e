package snapshot

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

func acceptRules(t *testing.T) Rules {
	public, _ := testKey(t, 1)
	return Rules{Fleet: "prod", Cluster: "us-east", Trusted: []minisign.PublicKey{public}, Now: created}
}

func TestAccept(t *testing.T) {
	_, private := testKey(t, 1)
	_, other := testKey(t, 2)
	file := signed(t, twoRegions(), private)
	digest := Digest(encode(t, twoRegions()))
	late := created.Add(25 * time.Hour)
	for _, test := range []struct {
		name               string
		file               []byte
		rules              func(*Rules)
		expired, unchanged bool
	}{
		{"the first", file, func(*Rules) {}, false, false},
		{"a newer one", file, func(r *Rules) { r.HighestSequence, r.HighestDigest, r.ServingSequence = 41, "x", 41 }, false, false},
		{"the same again", file, func(r *Rules) { r.HighestSequence, r.HighestDigest, r.ServingSequence = 42, digest, 42 }, false, true},
		{"the same body with another signature", signed(t, twoRegions(), private, other),
			func(r *Rules) { r.HighestSequence, r.HighestDigest, r.ServingSequence = 42, digest, 42 }, false, true},
		{"after a restart", file, func(r *Rules) { r.HighestSequence, r.HighestDigest = 42, digest }, false, false},
		{"after a restart that lost the digest", file, func(r *Rules) { r.HighestSequence = 42 }, false, false},
		{"expired in service", file, func(r *Rules) {
			r.HighestSequence, r.HighestDigest, r.ServingSequence, r.Now = 42, digest, 42, late
		}, true, true},
		{"expired after a restart", file, func(r *Rules) {
			r.HighestSequence, r.HighestDigest, r.AllowExpired, r.Now = 42, digest, true, late
		}, true, false},
		{"any cluster", file, func(r *Rules) { r.Cluster = "" }, false, false},
		{"exactly the limit", file, func(r *Rules) { r.MaxBytes = len(file) }, false, false},
		{"almost a day ahead", file, func(r *Rules) { r.Now = time.UnixMilli(42).Add(-MaxAhead) }, false, false},
	} {
		rules := acceptRules(t)
		test.rules(&rules)
		a, err := Accept(test.file, rules)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if a.Expired != test.expired || a.Unchanged != test.unchanged {
			t.Errorf("%s: expired %v, unchanged %v, want %v, %v", test.name, a.Expired, a.Unchanged, test.expired, test.unchanged)
		}
		if a.Snapshot.Sequence != 42 || a.Digest != digest || !bytes.HasPrefix(test.file, a.Body) || len(a.KeyIDs) != 1 {
			t.Errorf("%s: accepted %d, digest %s, %d keys", test.name, a.Snapshot.Sequence, a.Digest, len(a.KeyIDs))
		}
	}
}

func TestAcceptRefuses(t *testing.T) {
	_, private := testKey(t, 1)
	foreignPublic, foreign := testKey(t, 2)
	file := signed(t, twoRegions(), private)
	with := func(change func(*Snapshot)) []byte {
		s := twoRegions()
		change(s)
		return signed(t, s, private)
	}
	serving42 := func(r *Rules) { r.HighestSequence, r.HighestDigest, r.ServingSequence = 42, "0123456789abcdef", 42 }
	newer, err := Sign(bytes.Replace(encode(t, twoRegions()), []byte("format = 1"), []byte("format = 7"), 1), private)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Reason]bool{}
	for _, test := range []struct {
		file   []byte
		rules  func(*Rules)
		reason Reason
		want   string
	}{
		{file, func(r *Rules) { r.MaxBytes = 100 }, ReasonSize, "bytes, want at most 100; nothing in service"},
		{file[:len(file)-1], serving42, ReasonTruncated, "snapshot refused: no whole signature at the end: cut short, or never signed; still serving 42"},
		{signed(t, twoRegions(), foreign), serving42, ReasonSignature, "snapshot refused: bad signature: signed by " + KeyID(foreignPublic.ID()) + ", which is not trusted; still serving 42"},
		{append(bytes.Clone(file), '\n'), serving42, ReasonSignature, `found "", want a line that starts with "# minisign: "; still serving 42`},
		{newer, serving42, ReasonFormat, "snapshot refused: format is 7, want 1; still serving 42"},
		{with(func(s *Snapshot) { s.Fleet = "dev" }), serving42, ReasonFleet, `snapshot 42 refused: of fleet "dev", want "prod"; still serving 42`},
		{with(func(s *Snapshot) { s.Sequence = 41 }), serving42, ReasonSequence, "snapshot 41 refused: older than 42; still serving 42"},
		{file, func(r *Rules) { serving42(r); r.ServingSequence = 0 }, ReasonFork, "snapshot 42 refused: a fork: the 42 accepted before has other bytes (sha256 0123456789ab"},
		{with(func(s *Snapshot) { s.Sequence = created.Add(MaxAhead).UnixMilli() + 1 }), serving42, ReasonFuture,
			"snapshot 1785672000001 refused: from the future: sequence stands for 2026-08-02T12:00:00Z, the clock says 2026-08-01T12:00:00Z; still serving 42"},
		{with(func(s *Snapshot) { s.Sequence = 43 }), func(r *Rules) { serving42(r); r.Now = created.Add(24 * time.Hour) }, ReasonExpired,
			"snapshot 43 refused: expired at 2026-08-02T12:00:00Z, the clock says 2026-08-02T12:00:00Z; still serving 42"},
		{with(func(s *Snapshot) { s.Sources[0].Weights[0].Quota++ }), func(*Rules) {}, ReasonMeaning,
			"snapshot 42 refused: source us-east/chat: quotas sum to 4294967297, want exactly 2^32 (and 1 more); nothing in service"},
		{file, func(r *Rules) { r.Cluster = "ap-south" }, ReasonCluster, `snapshot 42 refused: no source of cluster "ap-south" in it; nothing in service`},
	} {
		rules := acceptRules(t)
		test.rules(&rules)
		_, err := Accept(test.file, rules)
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Reason != test.reason || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error is\n%v\nwant %s:\n%s", err, test.reason, test.want)
			continue
		}
		seen[refusal.Reason] = true
	}
	for _, reason := range Reasons() {
		if !seen[reason] {
			t.Errorf("reason %s is not tested", reason)
		}
	}
}

// TestEveryBitCounts flips each bit of a file, and cuts it at each length:
// nothing of that is accepted.
func TestEveryBitCounts(t *testing.T) {
	_, private := testKey(t, 1)
	rules := acceptRules(t)
	file := signed(t, twoRegions(), private)
	if _, err := Accept(file, rules); err != nil {
		t.Fatal(err)
	}
	// All bits of the signatures and of the lines near them, one of every other
	// byte.
	from := bytes.Index(file, []byte(signatureLine)) - 100
	for i := range file {
		for bit := range 8 {
			if i < from && bit != i%8 {
				continue
			}
			flipped := bytes.Clone(file)
			flipped[i] ^= 1 << bit
			if _, err := Accept(flipped, rules); err == nil {
				t.Fatalf("bit %d of byte %d (%q) flipped: accepted", bit, i, file[i])
			}
		}
	}
	for n := range file {
		_, err := Accept(file[:n], rules)
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Reason != ReasonTruncated {
			t.Fatalf("cut to %d of %d bytes: error is %v, want reason %s", n, len(file), err, ReasonTruncated)
		}
	}
}

// TestEveryBitCountsWithTwoKeys: where both keys are trusted, neither
// signature may be wrong.
func TestEveryBitCountsWithTwoKeys(t *testing.T) {
	_, privateA := testKey(t, 1)
	publicB, privateB := testKey(t, 2)
	rules := acceptRules(t)
	rules.Trusted = append(rules.Trusted, publicB)
	file := signed(t, twoRegions(), privateA, privateB)
	for i := bytes.Index(file, []byte(signatureLine)) - 1; i < len(file); i++ {
		for bit := range 8 {
			flipped := bytes.Clone(file)
			flipped[i] ^= 1 << bit
			if _, err := Accept(flipped, rules); err == nil {
				t.Fatalf("bit %d of byte %d (%q) flipped: accepted", bit, i, file[i])
			}
		}
	}
}

func TestRefusalUnwraps(t *testing.T) {
	rules := acceptRules(t)
	_, err := Accept(nil, rules)
	if !errors.Is(err, ErrTruncated) {
		t.Errorf("error %v does not wrap its cause", err)
	}
}

// A large file must not keep the processor for long: an agent has requests to
// serve meanwhile.
func TestAcceptPauses(t *testing.T) {
	public, private := testKey(t, 1)
	file := signed(t, large(500), private)
	pauses := 0
	rules := Rules{
		Fleet: "prod", Cluster: "cluster-00042", Trusted: []minisign.PublicKey{public}, Now: created,
		Pause: func() { pauses++ },
	}
	if _, err := Accept(file, rules); err != nil {
		t.Fatal(err)
	}
	if want := len(file) / (8 << 10); pauses < want {
		t.Errorf("%d pauses for %d bytes, want at least %d", pauses, len(file), want)
	}
	pauses = 0
	if _, _, err := verify(file, rules.Trusted, rules.Pause); err != nil {
		t.Fatal(err)
	}
	if want := len(file) / pieceBytes; pauses < want {
		t.Errorf("%d pauses of the hash over %d bytes, want at least %d", pauses, len(file), want)
	}
}
