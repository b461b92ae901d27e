// Package input reads the files of a fleet into a model.Fleet and reports
// everything that is wrong with them in one pass, by file and line.
package input

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/irb-project/irb/solve/model"
)

// Paths says where the files of a fleet are: in a folder, under the names
// demand.toml or demand.csv, latency.csv, engines.toml and policy.toml, or each
// where its own field says. A field that is set wins over the folder.
type Paths struct {
	Folder  string
	Demand  string // TOML, or CSV if it ends in .csv
	Latency string // CSV
	Engines string // TOML
	Policy  string // TOML; without it one class "default" matches all
}

// Read reads and checks a fleet. The error is a *Problems if anything is wrong
// with the input, a file that is missing too.
func Read(paths Paths) (*model.Fleet, error) { return read(paths, defaultLimits) }

func read(paths Paths, limits limits) (*model.Fleet, error) {
	in := &inputs{policy: defaultPolicy()}
	in.folder.file = cmp.Or(paths.Folder, "fleet")
	paths.locate(&in.folder)
	var wg sync.WaitGroup
	start := func(f *file, path string, limit int64, parse func()) {
		if path == "" {
			return
		}
		f.path, f.file = path, filepath.Base(path)
		wg.Go(func() {
			f.load(limit)
			wg.Go(f.hash)
			if f.text != nil {
				parse()
			}
		})
	}
	start(&in.demandFile, paths.Demand, limits.other, func() { in.demand = readDemand(&in.demandFile) })
	start(&in.latencyFile, paths.Latency, limits.latency, func() { in.latency = readLatency(&in.latencyFile) })
	start(&in.enginesFile, paths.Engines, limits.other, func() { in.engines, in.profiles = readEngines(&in.enginesFile) })
	if paths.Policy != "" {
		in.policy = nil
	}
	start(&in.policyFile, paths.Policy, limits.other, func() { in.policy = readPolicy(&in.policyFile) })
	wg.Wait()
	return in.fleet()
}

// locate fills in the paths that are not set with the files in the folder. A
// policy may be missing.
func (p *Paths) locate(r *report) {
	if p.Folder != "" {
		switch info, err := os.Stat(p.Folder); {
		case err != nil:
			r.problemf(0, "%s", pathError("the folder", err))
			return
		case !info.IsDir():
			r.problemf(0, "is a file, want a folder")
			return
		}
	}
	p.find(r, &p.Demand, true, "demand.toml", "demand.csv")
	p.find(r, &p.Latency, true, "latency.csv")
	p.find(r, &p.Engines, true, "engines.toml")
	p.find(r, &p.Policy, false, "policy.toml")
}

// find sets a path that is not set to the file in the folder that has one of
// names. Links count as files even if they lead nowhere: a policy must not be
// passed over in silence.
func (p *Paths) find(r *report, path *string, needed bool, names ...string) {
	if *path != "" {
		return
	}
	var found []string
	for _, name := range names {
		if p.Folder == "" {
			break
		}
		if _, err := os.Lstat(filepath.Join(p.Folder, name)); err == nil {
			found = append(found, name)
		}
	}
	switch {
	case len(found) > 1:
		r.problemf(0, "has %s, want one of them", strings.Join(found, " and "))
	case len(found) == 1:
		*path = filepath.Join(p.Folder, found[0])
	case needed && p.Folder == "":
		r.problemf(0, "there is no folder and no path of %s", strings.Join(names, " or "))
	case needed:
		r.problemf(0, "has no %s", strings.Join(names, " or "))
	}
}
