package reload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/irb-project/irb/agent/snapshot"
)

// replace puts a file in place as one atomic unit.
func (a *agent) replace(file []byte) {
	a.t.Helper()
	temp := filepath.Join(a.dir, ".new")
	must(a.t, os.WriteFile(temp, file, 0o600), os.Rename(temp, a.path))
}

// configMap writes a version of a ConfigMap volume exactly as the kubelet does
// (k8s.io/kubernetes/pkg/volume/util/atomic_writer.go): the files into a new
// folder, a new link to it, renamed over ..data, the old folder removed; the
// visible name is a link through ..data, made once.
func configMap(t testing.TB, dir, version string, file []byte) {
	t.Helper()
	data := filepath.Join(dir, "..data")
	old, _ := os.Readlink(data)
	folder := "..2026_11_29_" + version
	must(t,
		os.Mkdir(filepath.Join(dir, folder), 0o755),
		os.WriteFile(filepath.Join(dir, folder, "weights.toml"), file, 0o644),
		os.Symlink(folder, filepath.Join(dir, "..data_tmp")),
		os.Rename(filepath.Join(dir, "..data_tmp"), data),
	)
	if old == "" {
		must(t, os.Symlink("..data/weights.toml", filepath.Join(dir, "weights.toml")))
		return
	}
	must(t, os.RemoveAll(filepath.Join(dir, old)))
}

// No test of this file polls: all is seen by events.

func TestFollowsRename(t *testing.T) {
	a := newAgent(t, nil)
	a.Start()
	a.expect(Unreadable, 0)
	a.follow()
	for n := range int64(3) {
		a.replace(signed(t, testSnapshot(1000+n)))
		a.await(1000 + n)
	}
}

// jimmidyson/configmap-reload#190, open-feature/flagd#42: the swap of ..data is
// seen, and again and again.
func TestCase26FollowsConfigMap(t *testing.T) {
	a := newAgent(t, nil)
	configMap(t, a.dir, "0", signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
	a.follow()
	for n := range int64(5) {
		configMap(t, a.dir, fmt.Sprint(n+1), signed(t, testSnapshot(1001+n)))
		a.await(1001 + n)
	}
}

// Editors write in place, or a copy beside the file and move the old one away.
func TestFollowsEditors(t *testing.T) {
	a := newAgent(t, nil)
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
	a.follow()
	a.write(signed(t, testSnapshot(1001))) // in place
	a.await(1001)
	must(t, os.Rename(a.path, a.path+"~")) // backup first
	a.write(signed(t, testSnapshot(1002)))
	a.await(1002)
	must(t, os.Remove(a.path))
	a.write(signed(t, testSnapshot(1003)))
	a.await(1003)
}

// A file that is written in parts is taken when it is whole; in between the old
// one serves.
func TestFollowsPartialWrites(t *testing.T) {
	a := newAgent(t, nil)
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
	a.follow()
	file := signed(t, testSnapshot(1001))
	f, err := os.Create(a.path)
	must(t, err)
	for part := range slices.Chunk(file, len(file)/3+1) {
		_, err := f.Write(part)
		must(t, err)
		if got := a.Serving().Snapshot.Sequence; got != 1000 && got != 1001 {
			t.Fatalf("serving %d", got)
		}
	}
	must(t, f.Close())
	a.await(1001)
}

// A glance takes what is whole and says nothing of what is not.
func TestGlance(t *testing.T) {
	a := newAgent(t, nil)
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
	file := signed(t, testSnapshot(1001))
	a.write(file[:len(file)-10])
	a.glance()
	a.quiet()
	a.check(false)
	a.expect(string(snapshot.ReasonTruncated), 0)
	a.write(file)
	a.glance()
	a.expect(Accepted, 1001)
	a.check(false)
	must(t, os.Remove(a.path))
	a.glance()
	a.quiet()
	a.serves(1001)
}

// A poll reads the file again until no change can hide behind the time that the
// file system gives it, and then when it is another.
func TestPollReadsWhatMayHaveChanged(t *testing.T) {
	a := newAgent(t, nil)
	write := func(sequence int64) {
		t.Helper()
		a.write(signed(t, testSnapshot(sequence)))
		must(t, os.Chtimes(a.path, created, created)) // the times do not tell
	}
	write(1000)
	a.Start()
	a.expect(Accepted, 1000)
	write(1001) // of the same size
	a.Reloader.poll()
	a.expect(Accepted, 1001)
	if a.untouched() {
		t.Error("a file that was just read for the first time counts as untouched")
	}
	a.read.since = a.read.since.Add(-timeGrain)
	if !a.untouched() {
		t.Error("a file that was read after a while counts as touched")
	}
	a.Reloader.poll()
	a.quiet()
	a.write(signed(t, testSnapshot(1002)))
	a.Reloader.poll()
	a.expect(Accepted, 1002)
	a.read.since = a.read.since.Add(-timeGrain)
	must(t, os.Remove(a.path))
	a.Reloader.poll()
	a.expect(Unreadable, 0)
}

// Symbolic links anywhere on the path: of the file, of a folder, of a link.
func TestFollowsLinks(t *testing.T) {
	base := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{base}, parts...)...) }
	must(t, os.MkdirAll(at("releases", "1"), 0o755), os.MkdirAll(at("releases", "2"), 0o755), os.Mkdir(at("etc"), 0o755),
		os.WriteFile(at("releases", "1", "w.toml"), signed(t, testSnapshot(1000)), 0o600),
		os.Symlink("releases/1", at("current")),
		os.Symlink("../current/w.toml", at("etc", "link")),
		os.Symlink(at("etc", "link"), at("etc", "weights.toml")))
	a := newAgent(t, func(o *Options) { o.Path = at("etc", "weights.toml") })
	a.Start()
	a.expect(Accepted, 1000)
	a.follow()
	// The target changes in its own folder.
	a.path = at("releases", "1", "w.toml")
	a.write(signed(t, testSnapshot(1001)))
	a.await(1001)
	// The folder in the middle is switched.
	must(t, os.WriteFile(at("releases", "2", "w.toml"), signed(t, testSnapshot(1002)), 0o600),
		os.Symlink("releases/2", at("new")), os.Rename(at("new"), at("current")))
	a.await(1002)
	a.path = at("releases", "2", "w.toml")
	a.write(signed(t, testSnapshot(1003)))
	a.await(1003)
	// The link at the end is replaced by a file.
	must(t, os.WriteFile(at("etc", "tmp"), signed(t, testSnapshot(1004)), 0o600), os.Rename(at("etc", "tmp"), at("etc", "weights.toml")))
	a.await(1004)
}

// The folder goes and comes back, with parents and by renames.
func TestFollowsFolder(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "mount", "irb")
	must(t, os.MkdirAll(dir, 0o755))
	a := newAgent(t, func(o *Options) { o.Path = filepath.Join(dir, "weights.toml") })
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
	a.follow()
	for n := int64(1001); n < 1004; n++ {
		must(t, os.RemoveAll(filepath.Join(base, "mount")))
		a.expect(Unreadable, 0)
		a.serves(n - 1)
		must(t, os.MkdirAll(dir, 0o755))
		a.write(signed(t, testSnapshot(n)))
		a.await(n)
	}
	must(t, os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755))
	a.write(signed(t, testSnapshot(1004)))
	a.await(1004)
	// The new folder is watched, not the old one.
	a.write(signed(t, testSnapshot(1005)))
	a.await(1005)
}

// Of many quick replacements the last is in service at the end, and sequences
// only rise.
func TestFollowsQuickReplacements(t *testing.T) {
	a := newAgent(t, nil)
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.follow()
	files := make([][]byte, 50)
	for i := range files {
		files[i] = signed(t, testSnapshot(int64(1001+i)))
	}
	for _, file := range files {
		a.replace(file)
	}
	last := int64(0)
	for last < 1050 {
		select {
		case e := <-a.events:
			if e.Result != Accepted || e.Sequence <= last {
				t.Fatalf("after %d: %s", last, e)
			}
			last = e.Sequence
		case <-time.After(20 * time.Second):
			t.Fatalf("stopped at %d", last)
		}
	}
	a.serves(1050)
}

// Without events (a network file system) polling finds changes, and asking does.
func TestFollowsWithoutEvents(t *testing.T) {
	a := newAgent(t, nil)
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
	w := &watcher{path: a.path, folders: map[string]os.FileInfo{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.loop(ctx, w, a.poll)
	}()
	defer func() { cancel(); <-done }()
	a.replace(signed(t, testSnapshot(1001)))
	a.poll <- time.Time{}
	a.expect(Accepted, 1001)
	a.Trigger()
	a.expect(Unchanged, 1001)
	a.replace(signed(t, testSnapshot(1002)))
	a.Trigger()
	a.expect(Accepted, 1002)
}

// An overflow of the event queue counts as an event; another error is told.
func TestOverflowIsAnEvent(t *testing.T) {
	a := newAgent(t, nil)
	a.write(signed(t, testSnapshot(1000)))
	a.Start()
	a.expect(Accepted, 1000)
	w := &watcher{path: a.path, errors: make(chan error), folders: map[string]os.FileInfo{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.loop(ctx, w, a.poll)
	}()
	defer func() { cancel(); <-done }()
	a.replace(signed(t, testSnapshot(1001)))
	w.errors <- fsnotify.ErrEventOverflow
	a.expect(Accepted, 1001)
	w.errors <- os.ErrPermission
	w.errors <- os.ErrPermission
	w.errors <- os.ErrClosed
	for _, want := range []error{os.ErrPermission, os.ErrClosed} { // each once
		if e := a.expect(Unwatched, 0); !errors.Is(e.Err, want) {
			t.Errorf("%s, want %v", e, want)
		}
	}
}

// A folder that cannot be watched is told; the watcher here is shut, as one
// without watches left would refuse.
func TestUnwatchableFolderIsTold(t *testing.T) {
	a := newAgent(t, nil)
	w, err := newWatcher(a.path)
	must(t, err)
	w.close()
	if err := w.refresh(); !errors.Is(err, fsnotify.ErrClosed) {
		t.Errorf("got %v, want %v", err, fsnotify.ErrClosed)
	}
}

// Run ends with its context.
func TestRunEnds(t *testing.T) {
	a := newAgent(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	a.expect(Unreadable, 0)
	cancel()
	<-done
}

func TestTrace(t *testing.T) {
	base := t.TempDir()
	base, err := filepath.EvalSymlinks(base)
	must(t, err)
	at := func(name string) string { return filepath.Join(base, name) }
	must(t, os.Mkdir(at("d"), 0o755), os.WriteFile(at("d/f"), nil, 0o600),
		os.Symlink("d/f", at("link")), os.Symlink("../d", at("d/up")), os.Symlink("loop", at("loop")))
	tests := []struct {
		path    string
		folders []string
		names   []string
	}{
		{"d/f", []string{"d"}, []string{"d/f"}},
		{"d/none", []string{"d"}, []string{"d/none"}},
		{"none/f", []string{""}, []string{"none"}},
		{"link", []string{"", "d"}, []string{"d/f", "link"}},
		{"d/up/f", []string{"d"}, []string{"d/f", "d/up"}},
		{"loop", []string{""}, []string{"loop"}},
	}
	for _, tt := range tests {
		folders, names := trace(at(tt.path))
		var got []string
		for name := range names {
			got = append(got, name)
		}
		slices.Sort(got)
		for i := range tt.folders {
			tt.folders[i] = at(tt.folders[i])
		}
		for i := range tt.names {
			tt.names[i] = at(tt.names[i])
		}
		if !slices.Equal(folders, tt.folders) || !slices.Equal(got, tt.names) {
			t.Errorf("%s: folders %q, names %q, want %q, %q", tt.path, folders, got, tt.folders, tt.names)
		}
	}
}
