package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve/figure"
)

// Decision is a line of an agent's decision log beside what the snapshot says
// of its engines. The key of the request is not in the log, only a hash of it
// under a secret; so it tells what the agent did and why at that moment.
type Decision struct {
	Time      time.Time      `json:"time"`
	RequestID string         `json:"request_id"`
	Class     string         `json:"class"`
	Identity  string         `json:"identity,omitempty"`
	KeySource string         `json:"key_source,omitempty"`
	Snapshot  int64          `json:"snapshot"`
	Tried     []DecisionStep `json:"tried"`
	Skipped   []DecisionStep `json:"skipped"`
	Outcome   string         `json:"outcome"`
	Status    int            `json:"status,omitempty"`
	TookMs    float64        `json:"took_ms"`

	Cluster string `json:"cluster"`
	Note    string `json:"note,omitempty"`
}

// DecisionStep is an engine that was tried or passed over.
type DecisionStep struct {
	Engine   string `json:"engine"`
	Endpoint string `json:"endpoint,omitempty"`
	Rank     int    `json:"rank"`
	Failed   string `json:"failed,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it was passed over
	Weight   string `json:"weight,omitempty"` // its part of such requests
	Why      string `json:"why,omitempty"`    // the snapshot's reason for it
}

// ReadDecision reads a line of the decision log of an agent of a cluster.
func ReadDecision(line []byte, s *snapshot.Snapshot, cluster string) (*Decision, error) {
	d := &Decision{}
	if err := json.Unmarshal(line, d); err != nil {
		return nil, badQuestion("the line is no decision: %v", err)
	}
	if d.RequestID == "" || d.Outcome == "" {
		return nil, badQuestion("the line has no request_id or no outcome, so that it is no decision")
	}
	d.Cluster = cluster
	i := slices.IndexFunc(s.Sources, func(x snapshot.Source) bool { return x.Cluster == cluster && x.Class == d.Class })
	if i < 0 {
		return nil, badQuestion("the snapshot has no source of cluster %q and class %q", cluster, d.Class)
	}
	if d.Snapshot != s.Sequence {
		d.Note = fmt.Sprintf("the agent served by snapshot %d; the reasons below are those of snapshot %d", d.Snapshot, s.Sequence)
	}
	for _, steps := range [][]DecisionStep{d.Tried, d.Skipped} {
		for j := range steps {
			steps[j].Weight, steps[j].Why = "fallback", reasonOf(&s.Sources[i], steps[j].Engine)
			for _, w := range s.Sources[i].Weights {
				if w.Engine == steps[j].Engine {
					steps[j].Weight = figure.Percent(w.Fraction)
				}
			}
			if steps[j].Why == "" {
				steps[j].Weight = "not in this snapshot"
			}
		}
	}
	return d, nil
}

// Report tells the steps in the order of rank.
func (d *Decision) Report() *report.Report {
	r := &report.Report{}
	who, key := "", ", without a key"
	if d.Identity != "" {
		who = fmt.Sprintf(", identity %q", d.Identity)
	}
	if d.KeySource != "" {
		key = fmt.Sprintf(", key from %q", d.KeySource)
	}
	r.Line("request %q at %s: class %q of %s%s%s", d.RequestID, d.Time.Format(time.RFC3339Nano), d.Class, d.Cluster, who, key)
	if d.Note != "" {
		r.Line("%s", d.Note)
	}
	steps := slices.Concat(d.Skipped, d.Tried)
	slices.SortStableFunc(steps, func(a, b DecisionStep) int { return cmp.Compare(a.Rank, b.Rank) })
	t := newTable(report.Numbers("rank"), engineColumn("engine"), report.Texts("weight", "what"))
	for _, x := range steps {
		what := "tried"
		switch {
		case x.Reason != "":
			what = "passed over: " + x.Reason
		case x.Failed != "":
			what = fmt.Sprintf("tried at %s, failed: %s", x.Endpoint, x.Failed)
		case x.Endpoint != "":
			what = "went to " + x.Endpoint
		}
		t.Add(report.As(float64(x.Rank), fmt.Sprint(x.Rank)), report.Word(x.Engine), report.Word(x.Weight), report.Word(what))
	}
	r.Add(t)
	r.Line("outcome %s, status %d, after %s ms", d.Outcome, d.Status, figure.Ms(d.TookMs))
	for _, x := range steps {
		if x.Why != "" {
			r.Line("%s: %s", x.Engine, x.Why)
		}
	}
	return r
}
