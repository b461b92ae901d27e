package collect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/irb-project/irb/solve/input"
)

// The files of a fleet that is written.
const (
	demandFile  = "demand.csv"
	latencyFile = "latency.csv"
	enginesFile = "engines.toml"
	policyFile  = "policy.toml"
)

// Write writes the inputs as a fleet into folder, all files or none: they are
// written and read again in a folder beside it, which then takes its place in
// one step. What was there before becomes folder.previous. Engines and policy
// are those of paths, which are never written to.
func (r *Result) Write(folder string, paths input.Paths) error {
	folder = filepath.Clean(folder)
	if err := checkFolder(folder); err != nil {
		return err
	}
	files, err := r.files(paths)
	if err != nil {
		return err
	}
	next, err := os.MkdirTemp(filepath.Dir(folder), "."+filepath.Base(folder)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next)
	for name, text := range files {
		if err := writeSynced(filepath.Join(next, name), text); err != nil {
			return err
		}
	}
	if err := os.Chmod(next, 0o755); err != nil {
		return err
	}
	if _, err := input.Read(input.Paths{Folder: next}); err != nil {
		return fmt.Errorf("what was collected is no fleet, nothing is written: %w", err)
	}
	return replaceFolder(next, folder)
}

// checkFolder refuses a folder that holds anything that we did not write.
func checkFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{demandFile, latencyFile, enginesFile, policyFile}, e.Name()) {
			return fmt.Errorf("%s holds %q, want a folder for these files only, as all of it is replaced", folder, e.Name())
		}
	}
	if len(entries) == 0 {
		return nil
	}
	first, err := os.ReadFile(filepath.Join(folder, demandFile))
	if err != nil || !bytes.HasPrefix(first, []byte(madeBy)) {
		return fmt.Errorf("%s holds a fleet that irbctl collect has not written, want another folder: it would be replaced", folder)
	}
	return nil
}

// replaceFolder puts next in the place of folder, whose content becomes
// folder.previous.
func replaceFolder(next, folder string) error {
	previous := folder + ".previous"
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return errors.Join(os.Rename(next, folder), syncFolder(filepath.Dir(folder)))
	}
	if err := os.RemoveAll(previous); err != nil {
		return err
	}
	if err := swap(next, folder); err != nil {
		return err
	}
	return errors.Join(os.Rename(next, previous), syncFolder(filepath.Dir(folder)))
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// files returns the files by name.
func (r *Result) files(paths input.Paths) (map[string][]byte, error) {
	engines, err := r.engines(paths.Engines)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{demandFile: r.demand(), latencyFile: r.latency(), enginesFile: engines}
	if paths.Policy != "" {
		if files[policyFile], err = os.ReadFile(paths.Policy); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// madeBy begins every file that we write.
const madeBy = "# made by irbctl collect"

// origin is the comment that a file begins with.
func (r *Result) origin(more ...string) string {
	lines := append([]string{
		fmt.Sprintf("%s at %s for fleet %q", madeBy, r.Created.UTC().Format(time.RFC3339), r.Fleet),
		"# from " + r.Source,
	}, more...)
	return strings.Join(lines, "\n") + "\n"
}

func (r *Result) demand() []byte {
	var b bytes.Buffer
	b.WriteString(r.origin("# demand offered until " + r.Until.UTC().Format(time.RFC3339) + ": level x shape x margin of each source"))
	for _, s := range r.Sources {
		fmt.Fprintf(&b, "# %s/%s: %s\n", s.Cluster, s.Class, s.explain())
	}
	b.WriteString("cluster,class,rps,prompt_tokens,output_tokens,cached_fraction,requests_per_key\n")
	for _, s := range r.Sources {
		prompt, output := decimal(s.PromptTokens), decimal(s.OutputTokens)
		if s.PromptTokens == 0 { // as the policy or the profiles have it
			prompt, output = "", ""
		}
		fmt.Fprintf(&b, "%s,%s,%s,%s,%s,%s,%s\n", s.Cluster, s.Class, decimal(s.RPS), prompt, output,
			decimal(s.CachedFraction), decimal(s.RequestsPerKey))
	}
	return b.Bytes()
}

func (r *Result) latency() []byte {
	var b bytes.Buffer
	b.WriteString(r.origin(fmt.Sprintf("# round trips: %d measured by agents, %d as the fleet has them", r.Latency.Measured, r.Latency.Kept)))
	b.WriteString("rtt_ms")
	for _, name := range r.Latency.To {
		b.WriteString("," + name)
	}
	b.WriteByte('\n')
	for i, name := range r.Latency.From {
		b.WriteString(name)
		for _, ms := range r.Latency.RTTMs[i] {
			b.WriteByte(',')
			if !math.IsNaN(ms) {
				b.WriteString(decimal(ms))
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// engines returns the operator's engines.toml with the health that was
// measured; keys are in order of name, and comments are not kept.
func (r *Result) engines(path string) ([]byte, error) {
	var tree map[string]any
	if _, err := toml.DecodeFile(path, &tree); err != nil {
		return nil, err
	}
	health := map[string]EngineHealth{}
	for _, e := range r.Engines {
		health[e.Engine] = e
	}
	comments := []string{"# capacity and profiles from " + filepath.Base(path) + ", health measured:"}
	tables, _ := tree["engine"].([]map[string]any)
	for _, t := range tables {
		name, _ := t["name"].(string)
		e := health[name]
		if e.Evidence == "" {
			comments = append(comments, fmt.Sprintf("# %s: not measured, as given", name))
			continue
		}
		comments = append(comments, fmt.Sprintf("# %s: %s; given %s", name, e.Evidence, decimal(e.Given)))
		t["health"] = e.Health
	}
	var b bytes.Buffer
	b.WriteString(r.origin(comments...))
	encoder := toml.NewEncoder(&b)
	encoder.Indent = ""
	if err := encoder.Encode(tree); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
