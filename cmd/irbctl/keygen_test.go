package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

func TestKeygen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "irb")
	var r run
	r.expect(t, exitOK, "secret, no password", "keygen", "-o", name)
	for path, mode := range map[string]os.FileMode{name + ".key": 0o600, name + ".pub": 0o644} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode of %s is %v, error %v, want %v", path, info.Mode(), err, mode)
		}
	}
	public, err := parsePublicKeys([]string{name + ".pub"})
	if err != nil || r.stdout != public[0].String()+"\n" {
		t.Errorf("standard output is %q, error %v, want the key of %s.pub", r.stdout, err, name)
	}
	keys, err := (&app{}).loadSecretKeys(keyFlags{files: []string{name + ".key"}})
	if err != nil || !publicKey(keys[0]).Equal(public[0]) {
		t.Errorf("the secret key is not one of the public key, error %v", err)
	}
}

func TestKeygenOverwritesNothing(t *testing.T) {
	for _, suffix := range []string{".key", ".pub"} {
		dir := t.TempDir()
		name := filepath.Join(dir, "irb")
		if err := os.WriteFile(name+suffix, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		new(run).expect(t, exitUsage, suffix+" exists", "keygen", "-o", name)
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Errorf("%d files, error %v, want the old one only", len(entries), err)
		}
		if text, err := os.ReadFile(name + suffix); err != nil || string(text) != "old" {
			t.Errorf("%s%s holds %q, error %v", name, suffix, text, err)
		}
	}
}

func TestKeygenFailures(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "irb")
	new(run).expect(t, exitUsage, "standard input is no terminal", "keygen", "-o", name, "--password")
	new(run).expect(t, exitUsage, "the password is empty", "keygen", "-o", name, "--password-file", empty)
	new(run).expect(t, exitUsage, "no such file", "keygen", "-o", name, "--password-file", name)
	new(run).expect(t, exitFailure, "no such file", "keygen", "-o", filepath.Join(name, "irb"))
	new(run).expect(t, exitUsage, "unknown command", "keygen", "irb")
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files, error %v, want the password file only", len(entries), err)
	}
}

// TestKeygenWithPassword makes a key with a password and has the standard
// program sign with it. Both take the 1 GB and the seconds that minisign's key
// derivation is made to take, and ten times that under the race detector, which
// has nothing to see here.
func TestKeygenWithPassword(t *testing.T) {
	if raceDetector {
		t.Skip("not under the race detector")
	}
	t.Parallel()
	dir := t.TempDir()
	name, message := filepath.Join(dir, "irb"), filepath.Join(dir, "message")
	if err := os.WriteFile(message, []byte("message\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := run{env: map[string]string{envPassword: "a password"}}
	r.expect(t, exitOK, "secret, with a password", "keygen", "-o", name)
	runMinisign(t, "a password\n", "-S", "-s", name+".key", "-m", message)
	runMinisign(t, "", "-V", "-p", name+".pub", "-m", message)
}

// A key whose password is "a password". It was made with a cheap derivation
// (scrypt, N = 1024), so that tests need not wait; minisign takes it too.
const (
	lockedKey = `untrusted comment: minisign encrypted secret key
RWRTY0IyY0dLFZE2EopXX0/flFa6ZL7BvwokYXW6Hx60FGKX+MoAgAAAAAAAAAAAAAEAAAAAtnsCgq8/5gsnhmxf1bGDlphRWEqcKLVw3rFpCqOvvVgMgJc5Zm2Bq1kC6L8j7/BHopmnLf/VUJf0mv3sgwJn6okz5zeHEU868DC8WpFfQIecfwfh+Gy/MoKHk1xuHPKkOdil7mbITWE=
`
	lockedPub = "RWTET2GlKwLwA13K7MSMctmiqAhj0UBdjp3PLYh1QxjY3sUrfSN8tgyD"
)

func TestLoadKeyWithPassword(t *testing.T) {
	dir := t.TempDir()
	key, password := filepath.Join(dir, "key"), filepath.Join(dir, "password")
	for path, text := range map[string]string{key: lockedKey, password: "a password\r\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	public, err := parsePublicKeys([]string{lockedPub})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		flags keyFlags
		env   map[string]string
	}{
		"files":       {keyFlags{files: []string{key}, passwordFile: password}, nil},
		"environment": {keyFlags{}, map[string]string{envKey: lockedKey, envPassword: "a password"}},
		"both":        {keyFlags{files: []string{key}}, map[string]string{envKey: "unused", envPassword: "a password"}},
	} {
		a := &app{getenv: func(key string) string { return test.env[key] }}
		keys, err := a.loadSecretKeys(test.flags)
		if err != nil || len(keys) != 1 || !publicKey(keys[0]).Equal(public[0]) {
			t.Errorf("%s: %d keys, error %v", name, len(keys), err)
		}
	}
}

func TestLoadSecretKeys(t *testing.T) {
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs.key")
	runMinisign(t, "", "-G", "-W", "-p", filepath.Join(dir, "theirs.pub"), "-s", theirs)
	if err := os.Chmod(theirs, 0o600); err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(dir, "ours")
	new(run).expect(t, exitOK, "", "keygen", "-o", ours)
	text, err := os.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{getenv: func(key string) string { return map[string]string{envKey: string(text)}[key] }}

	keys, err := a.loadSecretKeys(keyFlags{files: []string{theirs, ours + ".key"}})
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d keys, error %v, want 2", len(keys), err)
	}
	public, err := parsePublicKeys([]string{filepath.Join(dir, "theirs.pub"), ours + ".pub"})
	if err != nil || !publicKey(keys[0]).Equal(public[0]) || !publicKey(keys[1]).Equal(public[1]) {
		t.Errorf("the keys do not fit, error %v", err)
	}
	keys, err = a.loadSecretKeys(keyFlags{})
	if err != nil || len(keys) != 1 || !publicKey(keys[0]).Equal(public[0]) {
		t.Errorf("%s gives %d keys, error %v", envKey, len(keys), err)
	}
}

func TestLoadSecretKeysRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := private.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	key := string(text)
	damaged := key[:len(key)-80] + "AAAA" + key[len(key)-76:]
	for _, test := range []struct {
		flags keyFlags
		env   map[string]string
		want  string
	}{
		{keyFlags{}, nil, "no secret key; name one with --key or set IRB_KEY"},
		{keyFlags{files: []string{filepath.Join(dir, "missing")}}, nil, "no such file"},
		{keyFlags{files: []string{write("group.key", key, 0o640)}}, nil, "group.key: mode is 0640, want no access for group and others"},
		{keyFlags{files: []string{write("all.key", key, 0o604)}}, nil, "all.key: mode is 0604"},
		{keyFlags{files: []string{write("public", "RWQHNEbO6JcQ+k1BgN2Fg6TGCfV2Ahz0tNUZq9dLCx3uPvRg3O8xzD5I\n", 0o600)}}, nil, "a public key, want a secret key"},
		{keyFlags{}, map[string]string{envKey: "nonsense"}, "IRB_KEY: no minisign secret key"},
		{keyFlags{}, map[string]string{envKey: damaged}, "IRB_KEY: a damaged secret key"},
		{keyFlags{}, map[string]string{envKey: lockedKey}, "a password is needed and standard input is no terminal"},
		{keyFlags{}, map[string]string{envKey: lockedKey, envPassword: "a"}, "IRB_KEY: wrong password, or a damaged key"},
		{keyFlags{passwordFile: write("password", "a", 0o644)}, map[string]string{envKey: lockedKey}, "password: mode is 0644"},
	} {
		a := &app{stdin: strings.NewReader(""), getenv: func(key string) string { return test.env[key] }}
		_, err := a.loadSecretKeys(test.flags)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, %v: error is %v, want %q", test.flags, test.env, err, test.want)
		}
	}
}
