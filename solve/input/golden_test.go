package input

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the expected output of testdata")

// TestGolden runs the cases of testdata/*.txt. A case is
//
//	==== what it is about
//	-- demand.toml --
//	the text of a file; files that are not given are those of testdata/base
//	----
//	the problems, or the warnings, or "ok"
func TestGolden(t *testing.T) {
	base := make(map[string]string)
	paths, err := filepath.Glob("testdata/base/*")
	if err != nil || len(paths) == 0 {
		t.Fatal("no testdata/base", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		base[filepath.Base(path)] = string(data)
	}
	cases, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) { runGolden(t, path, base) })
	}
}

func runGolden(t *testing.T, path string, base map[string]string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, text := range strings.SplitAfter(string(data), "\n==== ") {
		text = strings.TrimSuffix(text, "==== ")
		title, body, _ := strings.Cut(text, "\n")
		title = strings.TrimPrefix(title, "==== ")
		files, want, found := strings.Cut(body, "----\n")
		if !found {
			t.Fatalf("case %q of %s has no line ----", title, path)
		}
		got := readCase(t, txtar.Parse([]byte(files)), base)
		if want = strings.TrimRight(want, "\n") + "\n"; got != want && !*update {
			t.Errorf("case %q: got:\n%swant:\n%s", title, got, want)
		}
		out.WriteString("==== " + title + "\n" + files + "----\n" + got + "\n")
	}
	if *update {
		if err := os.WriteFile(path, []byte(strings.TrimSuffix(out.String(), "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readCase reads the fleet of a case and returns what it says.
func readCase(t *testing.T, archive *txtar.Archive, base map[string]string) string {
	files := make(map[string]string)
	for name, text := range base {
		files[name] = text
	}
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "demand.") {
			delete(files, "demand.toml")
		}
		files[f.Name] = string(f.Data)
	}
	fleet, err := Read(Paths{Folder: folderOf(t, files)})
	switch {
	case err != nil:
		return err.Error() + "\n"
	case len(fleet.Warnings) > 0:
		return "warning: " + strings.Join(fleet.Warnings, "\nwarning: ") + "\n"
	}
	return "ok\n"
}
