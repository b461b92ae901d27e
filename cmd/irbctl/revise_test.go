package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRollback(t *testing.T) {
	dir := newKeys(t)
	weights, key, pub := filepath.Join(dir, "weights.toml"), filepath.Join(dir, "irb.key"), filepath.Join(dir, "irb.pub")
	old := filepath.Join(dir, "old.toml")
	var r run
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", old, "--key", key)
	r.now = testNow.Add(time.Minute)
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", weights, "--key", key, "--previous", old)
	r.now = testNow.Add(2 * time.Minute)
	r.expect(t, exitOK, "wrote", "rollback", old, "-o", weights, "--key", key, "--reason", "back")
	r.expect(t, exitOK, "ok      signature", "verify", weights, "--pub", pub)
	r.expect(t, exitOK, "ok      proof", "verify", weights, "--pub", pub, "--inputs", twoRegions)
	r.expect(t, exitOK, "rolled back to the weights of snapshot 1785585600000", "explain", weights)

	// A clock that stands still does not stop the sequence.
	r.expect(t, exitOK, "snapshot 1785585720001", "rollback", old, "-o", weights, "--key", key)
	other := newKeys(t)
	r.expect(t, exitVerify, "--pub", "rollback", old, "-o", weights, "--key", filepath.Join(other, "irb.key"))
	r.expect(t, exitUsage, "nowhere", "rollback", "nowhere.toml", "-o", weights, "--key", key)
	r.expect(t, exitUsage, "no output", "rollback", old, "--key", key)
}

func TestDrain(t *testing.T) {
	dir := newKeys(t)
	weights, key, pub := filepath.Join(dir, "weights.toml"), filepath.Join(dir, "irb.key"), filepath.Join(dir, "irb.pub")
	var r run
	r.expect(t, exitOK, "", "solve", twoRegions, "-o", weights, "--key", key)
	before, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	r.expect(t, exitOK, "wrote", "drain", "a-1", "-o", weights, "--key", key)
	r.expect(t, exitOK, "ok      meaning", "verify", weights, "--pub", pub)
	r.expect(t, exitOK, "a-1 is drained; c-1 takes 100 of its 100 req/s.", "explain", weights)
	if !strings.Contains(r.stdout, "c-1     region-c    160") {
		t.Errorf("c-1 does not carry all:\n%s", r.stdout)
	}
	r.expect(t, exitVerify, "proof", "verify", weights, "--pub", pub, "--inputs", twoRegions)
	// us-west reaches c-1 alone once a-1 is gone from its fallbacks.
	r.expect(t, exitUsage, "it cannot be drained", "drain", "c-1", "-o", weights, "--key", key)
	r.expect(t, exitUsage, `no engine "z-9"`, "drain", "z-9", "-o", weights, "--key", key)
	if err := os.WriteFile(weights, append(before, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	r.expect(t, exitVerify, "", "drain", "a-1", "-o", weights, "--key", key)
}
