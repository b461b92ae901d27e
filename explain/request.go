package explain

import (
	"fmt"
	"net/textproto"
	"strings"

	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain/report"
	"github.com/irb-project/irb/solve/figure"
)

// Request is one request as an agent of a cluster sees it.
type Request struct {
	Cluster    string
	Class      string // "": the class that it matches
	Key        string // affinity value; "": none
	Tenant     string // trusted, scopes the key
	Path       string
	Method     string
	Model      string
	Identities []string
	Headers    map[string]string // all trusted
	Ejected    []string          // engines that the agent has out of service
}

// Placement is where a request goes and why, by the agents' own code.
type Placement struct {
	pick.Explanation
	Cluster   string             `json:"cluster"`
	Matched   []string           `json:"matched,omitempty"` // classes tried, the last one matched
	Keyless   bool               `json:"keyless,omitempty"`
	Shares    map[string]float64 `json:"shares,omitempty"` // keyless: which part of such requests each engine gets
	Goes      string             `json:"goes,omitempty"`   // the first engine that may be tried; "": none
	Endpoints []string           `json:"endpoints,omitempty"`
	Why       string             `json:"why"` // the reason of the weight or fallback in the snapshot
}

// PlaceRequest replays class, key, layout, rank and endpoint of a request.
func PlaceRequest(s *snapshot.Snapshot, r Request) (*Placement, error) {
	if r.Cluster == "" {
		return nil, badQuestion("a request enters at a cluster; name it with --cluster")
	}
	var trusted []string
	header := make(map[string][]string)
	for name, value := range r.Headers {
		trusted = append(trusted, name)
		header[textproto.CanonicalMIMEHeaderKey(name)] = []string{value}
	}
	table, err := pick.NewTable(s, r.Cluster)
	if err != nil {
		return nil, badQuestion("%v", err)
	}
	table = table.Trusting(trusted...)
	out := &Placement{Cluster: r.Cluster, Keyless: r.Key == ""}
	class := table.Class(r.Class)
	if r.Class == "" {
		facts := pick.Facts{Method: r.Method, Path: r.Path, Model: r.Model, Identities: r.Identities, Header: header}
		if class = table.Match(facts); class == nil {
			return nil, badQuestion("no class matches method %q, path %q, model %q, identities %q", r.Method, r.Path, r.Model, r.Identities)
		}
		for _, c := range table.Classes() {
			out.Matched = append(out.Matched, c.Spec.Name)
			if c.Spec.Name == class.Spec.Name {
				break
			}
		}
	}
	if class == nil {
		return nil, unknown("class", r.Class, len(s.Classes), func(i int) string { return s.Classes[i].Name })
	}
	return out, out.place(table, class, r)
}

func (p *Placement) place(table *pick.Table, class *pick.Class, r Request) error {
	request := pick.Request{Key: pick.Key(class.Spec.Name, r.Tenant, pick.Material(r.Key)), Need: class.Need(r.Model, 0)}
	if p.Keyless { // any key is as good as another
		request.Key = pick.NewSpread(0).Next()
	}
	request.Stay = make([]uint64, len(table.Engines()))
	for i := range request.Stay {
		request.Stay[i] = pick.StayAll
	}
	for _, name := range r.Ejected {
		n, ok := table.EngineNumber(name)
		if !ok {
			return unknown("engine", name, len(table.Engines()), func(i int) string { return table.Engines()[i].Name })
		}
		request.Stay[n] = 0
	}
	var err error
	if p.Explanation, err = class.Explain(request); err != nil {
		return badQuestion("%v", err)
	}
	if p.Keyless {
		p.Shares = make(map[string]float64)
		for _, w := range class.Source.Weights {
			p.Shares[w.Engine] = float64(w.Quota) / snapshot.QuotaSum
		}
	}
	walk := class.Walk(request)
	step, ok := walk.Next()
	if !ok {
		p.Why = "every engine among weights and fallbacks is passed over; the client gets 503"
		return nil
	}
	engine := table.Engines()[step.Engine]
	p.Goes = engine.Name
	endpoints := pick.NewEndpoints(engine.Endpoints)
	order := endpoints.Walk(request.Key)
	for i, ok := order.Next(); ok; i, ok = order.Next() {
		p.Endpoints = append(p.Endpoints, endpoints.ID(i))
	}
	p.Why = reasonOf(class.Source, engine.Name)
	return nil
}

// reasonOf is what the snapshot says of an engine of a source.
func reasonOf(s *snapshot.Source, engine string) string {
	for _, w := range s.Weights {
		if w.Engine == engine {
			return w.Text
		}
	}
	for _, f := range s.Fallbacks {
		if f.Engine == engine {
			return "fallback: " + f.Text
		}
	}
	return ""
}

// Report tells the steps in the order in which an agent takes them.
func (p *Placement) Report() *report.Report {
	t := newTable(report.Texts("", ""))
	row := func(what, format string, args ...any) {
		t.Add(report.Word(what), report.Word(fmt.Sprintf(format, args...)))
	}
	if len(p.Matched) > 1 {
		row("class", "%s: the first that matches; passed over: %q", p.Class, p.Matched[:len(p.Matched)-1])
	} else {
		row("class", "%s", p.Class)
	}
	if p.Keyless {
		var list strings.Builder
		for _, name := range sortedKeys(p.Shares) {
			fmt.Fprintf(&list, ", %s %s", name, figure.Percent(p.Shares[name]))
		}
		row("key", "none: such requests follow the weights%s; what follows is one of them", list.String())
	} else {
		row("key", "%016x, position %d of 2^32", p.Key, p.Position)
	}
	row("layout", "range %d, [%d, %d), belongs to %s", p.Range, p.From, p.To, p.Engine)
	for i, c := range p.Order {
		label := ""
		if i == 0 {
			label = "order"
		}
		row(label, "%d  %s%s", c.Rank, c.Engine, stepNote(c))
	}
	switch {
	case p.Goes == "":
		row("goes to", "nowhere")
	case len(p.Endpoints) == 0:
		row("goes to", "%s", p.Goes)
	case len(p.Endpoints) == 1:
		row("goes to", "%s at %s", p.Goes, p.Endpoints[0])
	default:
		row("goes to", "%s at %s, then %s", p.Goes, p.Endpoints[0], p.Endpoints[1])
	}
	row("why", "%s", p.Why)
	r := &report.Report{}
	r.Add(t)
	return r
}

// stepNote says what is special about an engine in the order of a request.
func stepNote(c pick.Choice) string {
	note := ""
	switch {
	case c.LastResort:
		note = ", as a last resort"
	case c.Skipped != "":
		note = ", passed over: " + c.Skipped
	}
	if c.Fallback {
		note = ", fallback" + note
	}
	return note
}
