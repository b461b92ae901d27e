package input

import (
	"fmt"

	"github.com/irb-project/irb/solve/model"
)

// inputs is what was read. A part is nil if it could not be read at all; the
// policy is the default one if there is no file. Checks across files leave out
// what is nil, so that one bad file does not look like many.
type inputs struct {
	folder                                           report
	demandFile, latencyFile, enginesFile, policyFile file

	demand   []demandRow
	latency  *latency
	engines  []engineRow
	profiles []profileRow
	policy   *policy

	// Names that others refer to, with the index of what they name; nil if
	// they are not known.
	classes, engineByName, profileByName map[string]int
	regions                              map[string]bool
}

// fleet checks what was read as a whole and returns it.
func (in *inputs) fleet() (*model.Fleet, error) {
	in.indexNames()
	if in.policy != nil {
		in.fillReferences()
	}
	if in.demand != nil {
		in.checkDemand()
	}
	if in.policy != nil {
		in.checkPolicy()
	}
	if in.engines != nil {
		in.checkEngines()
	}
	if in.latency != nil {
		in.checkLatency()
	}
	warnings, err := join([]*report{&in.folder, &in.demandFile.report, &in.latencyFile.report, &in.enginesFile.report, &in.policyFile.report})
	if err != nil {
		return nil, err
	}
	f := &model.Fleet{Policy: in.policy.Policy, Latency: in.latency.Latency, Warnings: warnings}
	for _, p := range in.profiles {
		f.Profiles = append(f.Profiles, p.Spec)
	}
	for _, e := range in.engines {
		f.Engines = append(f.Engines, e.Engine)
	}
	for _, d := range in.demand {
		f.Demand = append(f.Demand, d.Demand)
	}
	f.Inputs = in.digests()
	return f, nil
}

func (in *inputs) digests() []model.InputDigest {
	var digests []model.InputDigest
	add := func(role string, f *file) {
		if f.path != "" {
			digests = append(digests, model.InputDigest{Role: role, File: f.file, SHA256: f.digest})
		}
	}
	add("demand", &in.demandFile)
	add("latency", &in.latencyFile)
	add("engines", &in.enginesFile)
	add("policy", &in.policyFile)
	return digests
}

// indexNames fills the maps of names and reports names that are there twice.
func (in *inputs) indexNames() {
	if in.policy != nil {
		in.classes = make(map[string]int)
		for i, c := range in.policy.Classes {
			unique(&in.policyFile.report, in.classes, "class", c.Name, i, func(i int) int { return in.policy.classAt[i].key("name").line })
		}
	}
	if in.engines != nil {
		in.engineByName = make(map[string]int)
		in.regions = make(map[string]bool)
		for i, e := range in.engines {
			unique(&in.enginesFile.report, in.engineByName, "engine", e.Name, i, func(i int) int { return in.engines[i].at.key("name").line })
			in.regions[e.Region] = true
		}
		in.profileByName = make(map[string]int)
		for i, p := range in.profiles {
			in.profileByName[p.Name] = i
		}
	}
}

// unique adds a name to a map and reports it if it is there already.
func unique(r *report, names map[string]int, kind, name string, i int, line func(int) int) {
	if first, twice := names[name]; twice && name != "" {
		r.problemf(line(i), "%s %s is there twice, first on line %d", kind, quote(name), line(first))
		return
	}
	names[name] = i
}

// fillReferences gives profiles without a reference request the policy's, and
// demand without tokens the policy's or that of the profiles if they agree.
func (in *inputs) fillReferences() {
	reference := in.policy.Reference
	if reference != nil {
		for i := range in.profiles {
			p := &in.profiles[i]
			p.PromptTokens = orElse(p.PromptTokens, reference.Prompt)
			p.OutputTokens = orElse(p.OutputTokens, reference.Output)
		}
	} else {
		for _, p := range in.profiles {
			if !p.hasTokens {
				in.enginesFile.problemf(p.at.line, "profile %s has not both prompt_tokens and output_tokens, and the policy has no reference request", quote(p.Name))
			}
		}
	}
	tokens, differ := in.commonReference()
	for i := range in.demand {
		d := &in.demand[i]
		if d.hasPrompt && d.hasOutput {
			continue
		}
		if differ != "" {
			in.demandFile.problemf(d.at.line, "%s, the policy has no reference request, and %s have different ones", d.missing(), differ)
		}
		if !d.hasPrompt {
			d.PromptTokens = tokens.Prompt
		}
		if !d.hasOutput {
			d.OutputTokens = tokens.Output
		}
	}
}

// commonReference returns the policy's reference request, else that of all
// profiles, else two profiles that differ.
func (in *inputs) commonReference() (tokens model.Tokens, differ string) {
	if in.policy.Reference != nil {
		return *in.policy.Reference, ""
	}
	for i, p := range in.profiles {
		if own := (model.Tokens{Prompt: p.PromptTokens, Output: p.OutputTokens}); i == 0 {
			tokens = own
		} else if own != tokens {
			return tokens, fmt.Sprintf("profiles %s and %s", quote(in.profiles[0].Name), quote(p.Name))
		}
	}
	return tokens, ""
}

// missing says which tokens a row of demand does not give.
func (d *demandRow) missing() string {
	switch {
	case d.hasPrompt:
		return "output_tokens is not given"
	case d.hasOutput:
		return "prompt_tokens is not given"
	}
	return "prompt_tokens and output_tokens are not given"
}

func orElse(v, otherwise float64) float64 {
	if v == 0 {
		return otherwise
	}
	return v
}

// checkDemand checks demand against the policy.
func (in *inputs) checkDemand() {
	r := &in.demandFile.report
	first := make(map[source]int, len(in.demand))
	for i := range in.demand {
		d := &in.demand[i]
		if in.policy != nil {
			if d.Class == "" {
				d.Class = in.policy.Classes[0].Name
			}
			if _, ok := in.classes[d.Class]; !ok {
				r.add(d.at.key("class").line, didYouMeanKey(d.Class, in.classes), "class %s is not in the policy", quote(d.Class))
			}
		}
		key := source{d.Cluster, d.Class}
		if j, twice := first[key]; twice && d.Cluster != "" {
			r.problemf(d.at.line, "cluster %s with class %s is there twice, first on line %d", quote(d.Cluster), quote(d.Class), in.demand[j].at.line)
			continue
		}
		first[key] = i
	}
}
