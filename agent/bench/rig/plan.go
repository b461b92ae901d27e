package rig

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"aead.dev/minisign"

	"github.com/irb-project/irb/agent/snapshot"
)

// Engine is an engine of the plan; its endpoints are URLs.
type Engine struct {
	Name      string
	Endpoints []string
}

// Plan writes signed weight files for one cluster with one class over a few
// engines, so large in capacity that no agent has a reason to shed.
type Plan struct {
	// Others is how many more classes the weight file has, which no request is
	// of: for files as large as those of large fleets.
	Others int

	folder   string
	engines  []Engine
	public   minisign.PublicKey
	private  minisign.PrivateKey
	sequence int64
}

// NewPlan makes a plan with a new key; its weight file will be in the folder.
func NewPlan(folder string, engines []Engine) (*Plan, error) {
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return &Plan{folder: folder, engines: engines, public: public, private: private}, nil
}

func (p *Plan) path() string { return filepath.Join(p.folder, "weights.toml") }

const (
	fleet       = "bench"
	cluster     = "here"
	class       = "chat"
	plannedRPS  = 1e6
	capacityRPS = 1e7
)

// Publish signs and writes weights in proportion to the shares, one per engine,
// in contiguous ranges. It returns the sequence.
func (p *Plan) Publish(shares []float64, now time.Time) (sequence int64, err error) {
	file, sequence, err := p.Sign(shares, now)
	if err != nil {
		return 0, err
	}
	return sequence, p.Write(file)
}

// Write makes a signed file the one that agents follow.
func (p *Plan) Write(file []byte) error { return snapshot.WriteFile(p.path(), file) }

// Sign returns the next weight file and its sequence.
func (p *Plan) Sign(shares []float64, now time.Time) (file []byte, sequence int64, err error) {
	p.sequence = max(p.sequence+1, now.UnixMilli())
	s := &snapshot.Snapshot{
		Format: snapshot.Format, Fleet: fleet, Sequence: p.sequence,
		Created: now.Truncate(time.Second), Expires: now.Truncate(time.Second).Add(24 * time.Hour),
		Solver:  snapshot.Solver{Method: "by hand", Work: "single"},
		Policy:  snapshot.Policy{MaxUtilization: 1, OutputTokenWork: 4, RoundTrips: 1, Shed: "forbid", FailureDomain: "region"},
		Classes: []snapshot.Class{{Name: class}},
	}
	// Endpoints of the benchmark stream at 20 tokens per second.
	profile := snapshot.Profile{
		Name: "flat", PromptTokens: 1024, OutputTokens: 256,
		TTFTV: []float64{0}, TTFTMs: []float64{80}, TBOTV: []float64{0}, TBOTMs: []float64{50},
	}
	sum := 0.0
	for _, share := range shares {
		sum += share
	}
	src := snapshot.Source{
		Cluster: cluster, Class: class, OfferedRPS: plannedRPS, ServedRPS: plannedRPS,
		PromptTokens: 1024, OutputTokens: 256,
	}
	from, until := int64(0), 0.0
	for i, e := range p.engines {
		s.Engines = append(s.Engines, snapshot.Engine{
			Name: e.Name, Region: e.Name, Domain: e.Name, Endpoints: e.Endpoints,
			CapacityRPS: capacityRPS, LimitRPS: capacityRPS, Profile: profile,
		})
		until += shares[i] / sum
		end := int64(until * snapshot.QuotaSum)
		if i == len(p.engines)-1 {
			end = snapshot.QuotaSum
		}
		share := float64(end-from) / snapshot.QuotaSum
		src.LayoutFrom = append(src.LayoutFrom, uint32(from))
		src.LayoutTo = append(src.LayoutTo, e.Name)
		src.Weights = append(src.Weights, snapshot.Weight{
			Engine: e.Name, Quota: end - from, Fraction: share, RPS: plannedRPS * share, Code: "bench", Text: "by hand",
		})
		from = end
	}
	s.Sources = []snapshot.Source{src}
	p.addOthers(s)
	body, err := snapshot.Encode(s)
	if err != nil {
		return nil, 0, err
	}
	file, err = snapshot.Sign(body, p.private)
	return file, p.sequence, err
}

// addOthers adds classes with the weights of the first. They come after it, and
// next to nothing is planned for them.
func (p *Plan) addOthers(s *snapshot.Snapshot) {
	first := s.Sources[0]
	for i := range p.Others {
		src := first
		src.Class = fmt.Sprintf("other-%05d", i)
		src.OfferedRPS, src.ServedRPS = 1, 1
		src.Weights = append([]snapshot.Weight(nil), first.Weights...)
		for j := range src.Weights {
			src.Weights[j].RPS = src.Weights[j].Fraction
		}
		s.Classes = append(s.Classes, snapshot.Class{Name: src.Class})
		s.Sources = append(s.Sources, src)
	}
}

// config returns an agent.toml with every part of the agent switched on.
func (p *Plan) config(a *Agent, name string, o AgentOptions) string {
	return fmt.Sprintf(`fleet = %q
cluster = %q
weights = %q
trusted_keys = [%q]
state_dir = %q
status_listen = %q
debug_listen = %q
agents = %d
allow_engine_networks = ["127.0.0.1/32"]

[timeouts]
drain_delay = "0s"
engine_idle = %q

[decision_log]
path = %q
sample = %g

[[listener]]
address = %q
`, fleet, cluster, p.path(), p.public.String(), filepath.Join(p.folder, name+".state"), a.status, a.debug,
		o.Agents, o.EngineIdle, a.decisions, o.Sample, a.Address)
}

func (p *Plan) writeConfig(name, text string) (path string, err error) {
	path = filepath.Join(p.folder, name+".toml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}
