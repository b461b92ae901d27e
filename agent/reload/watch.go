package reload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// watcher watches the folders through which the path of a file leads: the one
// it is in, those that hold the symbolic links on the way, and, where something
// is missing, the one in which it would appear. A watch on the file itself
// would end with the first rename over it.
//
// With a Kubernetes ConfigMap, weights.toml -> ..data/weights.toml and
// ..data -> ..2026_11_29/, that is the mounted folder, where ..data is renamed
// into place, and ..2026_11_29.
type watcher struct {
	path    string
	fs      *fsnotify.Watcher // nil if there are no events to be had
	events  chan fsnotify.Event
	errors  chan error
	folders map[string]os.FileInfo
	names   map[string]bool // paths that matter when something happens to them
}

// newWatcher returns a watcher that sees nothing before its first refresh; with
// an error it is one that never sees anything.
func newWatcher(path string) (*watcher, error) {
	w := &watcher{path: path, folders: map[string]os.FileInfo{}}
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		return w, err
	}
	w.fs, w.events, w.errors = fs, fs.Events, fs.Errors
	return w, nil
}

func (w *watcher) close() {
	if w.fs != nil {
		w.fs.Close()
	}
}

// matters says whether an event may have changed what the path leads to.
func (w *watcher) matters(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	_, folder := w.folders[e.Name]
	return folder || w.names[e.Name]
}

// refresh adapts the watches to where the path leads now. The error is about
// folders that cannot be watched and are left to polling.
func (w *watcher) refresh() error {
	if w.fs == nil {
		return nil
	}
	folders, names := trace(w.path)
	w.names = names
	watched := w.fs.WatchList()
	for folder, info := range w.folders {
		now, err := os.Stat(folder)
		// A folder that was replaced has the old watch, or none.
		if err == nil && slices.Contains(folders, folder) && os.SameFile(info, now) && slices.Contains(watched, folder) {
			continue
		}
		_ = w.fs.Remove(folder) // fails if the watch went with the folder
		delete(w.folders, folder)
	}
	var failed error
	for _, folder := range folders {
		if _, watched := w.folders[folder]; watched {
			continue
		}
		info, err := os.Stat(folder)
		if err != nil {
			continue // gone since; its parent tells when it is back
		}
		err = w.fs.Add(folder)
		if errors.Is(err, os.ErrNotExist) {
			continue // gone just now
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("watch %s: %w", folder, err))
			continue
		}
		w.folders[folder] = info
	}
	return failed
}

// maxLinks bounds the symbolic links on a path, as Linux does.
const maxLinks = 40

// trace follows a path, link by link, and returns the folders to watch and the
// paths in them that matter.
func trace(path string) (folders []string, names map[string]bool) {
	names = map[string]bool{}
	note := func(folder, name string) {
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		names[name] = true
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, names
	}
	root := filepath.VolumeName(path) + string(filepath.Separator)
	split := func(p string) []string { return strings.Split(filepath.ToSlash(p), "/") }
	at, rest := root, split(strings.TrimPrefix(path, root))
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		if err != nil {
			note(at, next)
			return folders, names
		}
		if info.Mode()&os.ModeSymlink == 0 {
			if len(rest) == 0 {
				note(at, next)
			}
			at = next
			continue
		}
		note(at, next)
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return folders, names
		}
		if filepath.IsAbs(target) {
			at = root
		}
		rest = append(split(target), rest...)
	}
	return folders, names
}
