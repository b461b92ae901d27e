package snapshot

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weights.toml")
	expect := func(path, want string, mode fs.FileMode) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil || string(data) != want {
			t.Errorf("%s holds %q, error %v, want %q", path, data, err, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode of %s is %v, error %v, want %v", path, info.Mode(), err, mode)
		}
	}
	write := func(path, data string) {
		t.Helper()
		if err := WriteFile(path, []byte(data)); err != nil {
			t.Error(err)
		}
	}
	write(path, "first")
	expect(path, "first", 0o644)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	write(path, "second")
	expect(path, "second", 0o600)

	link := filepath.Join(dir, "link.toml")
	if err := os.Symlink("weights.toml", link); err != nil {
		t.Fatal(err)
	}
	write(link, "third")
	expect(path, "third", 0o600)
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is no link any more: %v, %v", info, err)
	}
	onlyFiles(t, dir, "link.toml", "weights.toml")
}

func TestWriteFileLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{folder, filepath.Join(dir, "missing", "weights.toml"), filepath.Join(dir, strings.Repeat("n", 300))} {
		if err := WriteFile(path, []byte("data")); err == nil {
			t.Errorf("writing %s works", path)
		}
	}
	onlyFiles(t, dir, "folder")
}

func onlyFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}
