package snapshot

import (
	"bytes"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// FuzzDecode: whatever is read is written again and read as the same, and any
// TOML reader reads the same.
func FuzzDecode(f *testing.F) {
	f.Add(string(encode(f, twoRegions())))
	f.Add(string(encode(f, &Snapshot{Format: Format})))
	f.Fuzz(func(t *testing.T, body string) {
		s, err := Decode([]byte(body))
		if err != nil {
			return
		}
		roundTrip(t, s)
		// Below [x] only the form of values is looked at.
		if !strings.Contains(body, "x") || !strings.Contains(strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(body), "[x") {
			sameToOthers(t, []byte(body), s)
		}
	})
}

// FuzzValue is FuzzDecode with a value of each kind, which it reaches sooner.
func FuzzValue(f *testing.F) {
	f.Add(`"a\u00e9\n" # comment`, `-1.5e-3`, `42`, `2026-08-01T12:00:00.5Z`, "[ 'a', # b\n\"c\" ]", `{ a = "b", "c d" = '"' }`, `[0, 4294967295]`)
	f.Add(`''`, `1`, `-9223372036854775808`, `0000-01-01T00:00:00Z`, `[]`, `{}`, `[]`)
	template := string(encode(f, &Snapshot{
		Format:  Format,
		Solver:  Solver{Notes: []string{"N"}},
		Classes: []Class{{Guard: Guard{RetryBudgetFloor: new(float64)}, Match: Match{Headers: map[string]string{"h": "H"}}}},
		Sources: []Source{{}},
	}))
	f.Fuzz(func(t *testing.T, text, float, integer, time, list, table, numbers string) {
		body := []byte(strings.NewReplacer(
			`fleet = ""`, "fleet = "+text,
			"gap = 0.0", "gap = "+float,
			"retry_budget_floor = 0.0", "retry_budget_floor = "+float,
			"sequence = 0", "sequence = "+integer,
			"created = 0001-01-01T00:00:00Z", "created = "+time,
			`["N"]`, list,
			`{ h = "H" }`, table,
			"layout_from = []", "layout_from = "+numbers,
		).Replace(template))
		if s, err := Decode(body); err == nil {
			roundTrip(t, s)
			sameToOthers(t, body, s)
		}
	})
}

// FuzzAccept: nothing but the signed bytes is accepted, with the very signature
// or without any other.
func FuzzAccept(f *testing.F) {
	public, private := testKey(f, 1)
	_, other := testKey(f, 2)
	file := signed(f, twoRegions(), private)
	body, _, err := Split(file)
	if err != nil {
		f.Fatal(err)
	}
	rules := Rules{Fleet: "prod", Cluster: "us-east", Trusted: []minisign.PublicKey{public}, Now: created}
	f.Add(file)
	f.Add(signed(f, twoRegions(), private, other))
	f.Add(append(bytes.Clone(file), "# minisign: "...))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Accept(data, rules)
		if err != nil {
			if _, ok := err.(*Refusal); !ok || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error is %#v, want a *Refusal on one line", err)
			}
			return
		}
		if !bytes.Equal(a.Body, body) || !bytes.HasPrefix(data, body) {
			t.Fatal("other bytes than the signed ones were accepted")
		}
	})
}
