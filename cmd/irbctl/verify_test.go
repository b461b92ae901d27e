package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
)

// plain is about the smallest policy that agents accept.
func plain() *snapshot.Snapshot {
	return &snapshot.Snapshot{
		Format: snapshot.Format, Fleet: "prod", Sequence: 42,
		Created: testNow.Add(-time.Hour), Expires: testNow.Add(time.Hour),
		Solver:  snapshot.Solver{Method: "by hand", Work: "single"},
		Policy:  snapshot.Policy{MaxUtilization: 0.9, Shed: "forbid"},
		Classes: []snapshot.Class{{Name: "default"}},
		Engines: []snapshot.Engine{{
			Name: "a-1", Region: "region-a", Endpoints: []string{"http://10.0.0.1:8000"},
			Profile: snapshot.Profile{
				PromptTokens: 1024, TTFTV: []float64{0}, TTFTMs: []float64{80}, TBOTV: []float64{0}, TBOTMs: []float64{12},
			},
		}},
		Sources: []snapshot.Source{{
			Cluster: "us-east", Class: "default", LayoutFrom: []uint32{0}, LayoutTo: []string{"a-1"},
			Weights: []snapshot.Weight{{Engine: "a-1", Quota: snapshot.QuotaSum, Fraction: 1}},
		}},
	}
}

// signing is a folder with a key pair, and what it signs.
type signing struct {
	dir, pub string
	keys     []secretKey
}

func newSigning(t *testing.T) signing {
	t.Helper()
	name := filepath.Join(t.TempDir(), "irb")
	new(run).expect(t, exitOK, "", "keygen", "-o", name)
	keys, err := (&app{}).loadSecretKeys(keyFlags{files: []string{name + ".key"}})
	if err != nil {
		t.Fatal(err)
	}
	return signing{dir: filepath.Dir(name), pub: name + ".pub", keys: keys}
}

// write signs a snapshot into a file of the folder.
func (k signing) write(t *testing.T, name string, s *snapshot.Snapshot) string {
	t.Helper()
	body, err := snapshot.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	file, err := snapshot.Sign(body, k.keys...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(k.dir, name)
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVerify(t *testing.T) {
	k := newSigning(t)
	path := k.write(t, "weights.toml", plain())
	var r run
	r.expect(t, exitOK, "", "verify", path, "--pub", k.pub)
	id := snapshot.KeyID(k.keys[0].ID())
	want := path + `: snapshot 42 of fleet prod
ok      signature  by key ` + id + `
ok      format     1
ok      meaning    1 source, 1 weight, 1 engine
ok      expiry     2026-08-01T13:00:00Z, in 1h0m0s
ok      sequence   42
`
	if r.stdout != want || r.stderr != "" {
		t.Errorf("output is\n%s%s\nwant\n%s", r.stdout, r.stderr, want)
	}

	key, err := os.ReadFile(k.pub)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(key), "\n")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r.stdin = string(file)
	r.expect(t, exitOK, "-: snapshot 42", "verify", "-", "--pub", strings.TrimSpace(text))

	r.expect(t, exitOK, "", "verify", path, "--pub", k.pub, "--json")
	var v verdict
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatal(err)
	}
	if !v.Valid || v.Sequence != 42 || v.Fleet != "prod" || len(v.Checks) != 5 || len(v.Keys) != 1 || v.Keys[0] != id {
		t.Errorf("the verdict is\n%s", r.stdout)
	}
}

func TestVerifyFails(t *testing.T) {
	k, other := newSigning(t), newSigning(t)
	path := k.write(t, "weights.toml", plain())
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := plain()
	bad.Sources[0].Weights[0].Quota--
	late := run{now: testNow.Add(2 * time.Hour)}
	late.expect(t, exitVerify, "expiry: expired at 2026-08-01T13:00:00Z, 1h0m0s ago", "verify", path, "--pub", k.pub)
	if !strings.Contains(late.stdout, "FAILED  expiry\n") || !strings.Contains(late.stdout, "ok      meaning") {
		t.Errorf("output is\n%s", late.stdout)
	}
	late.expect(t, exitVerify, `"valid": false`, "verify", path, "--pub", k.pub, "--json")

	var r run
	r.expect(t, exitVerify, "which is not trusted", "verify", path, "--pub", other.pub)
	r.expect(t, exitVerify, "meaning: source us-east/default: quotas sum to 4294967295", "verify", k.write(t, "bad.toml", bad), "--pub", k.pub)
	for name, stdin := range map[string][]byte{
		"no whole signature":  file[:len(file)/2],
		"bad signature":       bytes.Replace(file, []byte("sequence = 42"), []byte("sequence = 43"), 1),
		"want a line that":    append(bytes.Clone(file), "\n"...),
		"no whole signature ": nil,
	} {
		r := run{stdin: string(stdin)}
		r.expect(t, exitVerify, name, "verify", "-", "--pub", k.pub)
	}
	foreign, err := snapshot.Sign([]byte("format = 9\n"), k.keys...)
	if err != nil {
		t.Fatal(err)
	}
	r = run{stdin: string(foreign)}
	r.expect(t, exitVerify, "format: format is 9, want 1", "verify", "-", "--pub", k.pub)
	r = run{stdin: strings.Repeat("a", snapshot.MaxBytes+1)}
	r.expect(t, exitVerify, "signature: file has more than 67108864 bytes", "verify", "-", "--pub", k.pub)
}

func TestVerifyUsage(t *testing.T) {
	k := newSigning(t)
	path := k.write(t, "weights.toml", plain())
	var r run
	r.expect(t, exitUsage, "no trusted key", "verify", path)
	r.expect(t, exitUsage, `--pub "abc" is neither a minisign public key nor a readable file`, "verify", path, "--pub", "abc")
	r.expect(t, exitUsage, "no such file", "verify", path, "--pub", path+".pub")
	r.expect(t, exitUsage, "weights.toml: no minisign public key", "verify", path, "--pub", path)
	r.expect(t, exitUsage, "no such file", "verify", path+".missing", "--pub", k.pub)
	r.expect(t, exitUsage, "-o is the folder of --detach", "verify", path, "--pub", k.pub, "-o", k.dir)
	r.expect(t, exitUsage, "accepts 1 arg", "verify", "--pub", k.pub)
}

// TestDetach has the standard program verify what irbctl signed.
func TestDetach(t *testing.T) {
	k, second := newSigning(t), newSigning(t)
	k.keys = append(k.keys, second.keys...)
	path := k.write(t, "weights.toml", plain())
	var r run
	r.expect(t, exitOK, "wrote   "+path+".body\n", "verify", path, "--pub", k.pub, "--detach")
	runMinisign(t, "", "-V", "-H", "-p", k.pub, "-m", path+".body")

	// Each trusted key has its signature; the first one where minisign looks.
	folder := t.TempDir()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r.stdin = string(file)
	r.expect(t, exitOK, "", "verify", "-", "--pub", second.pub, "--pub", k.pub, "--detach", "-o", folder)
	body := filepath.Join(folder, "snapshot.body")
	runMinisign(t, "", "-V", "-p", k.pub, "-m", body)
	minisig := body + "." + snapshot.KeyID(second.keys[0].ID()) + ".minisig"
	runMinisign(t, "", "-V", "-p", second.pub, "-m", body, "-x", minisig)

	// An expired file can still be taken apart, one of unknown origin cannot.
	late := run{now: testNow.Add(2 * time.Hour)}
	late.expect(t, exitVerify, "wrote", "verify", path, "--pub", k.pub, "--detach", "-o", t.TempDir())
	folder = t.TempDir()
	r.expect(t, exitVerify, "not trusted", "verify", path, "--pub", newSigning(t).pub, "--detach", "-o", folder)
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("%d files were written, error %v", len(entries), err)
	}
	r.expect(t, exitFailure, "no such file", "verify", path, "--pub", k.pub, "--detach", "-o", filepath.Join(folder, "missing"))
}

// TestSignedByMinisign attaches signatures that the standard program made of
// a body, with its own key, prehashed and not.
func TestSignedByMinisign(t *testing.T) {
	dir := t.TempDir()
	key, pub, path := filepath.Join(dir, "m.key"), filepath.Join(dir, "m.pub"), filepath.Join(dir, "body")
	runMinisign(t, "", "-G", "-W", "-s", key, "-p", pub)
	body, err := snapshot.Encode(plain())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, algorithm := range []string{"prehashed", "legacy"} {
		args := []string{"-S", "-W", "-s", key, "-m", path}
		if algorithm == "legacy" {
			args = append(args, "-l")
		}
		runMinisign(t, "", args...)
		minisig, err := os.ReadFile(path + ".minisig")
		if err != nil {
			t.Fatal(err)
		}
		file, err := snapshot.Attach(body, minisig)
		if err != nil {
			t.Fatal(err)
		}
		r := run{stdin: string(file)}
		r.expect(t, exitOK, "ok      signature", "verify", "-", "--pub", pub)
	}
}
