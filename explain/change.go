package explain

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/irb-project/irb/solve/model"
)

// ChangeSyntax says what a what-if may change.
const ChangeSyntax = `down ENGINE, down region REGION, health ENGINE VALUE, capacity ENGINE VALUE,
demand CLUSTER[/CLASS] VALUE (CLUSTER * for all), latency CLUSTER -> ENGINE VALUE,
max_utilization VALUE; a VALUE is 40, +10, -10, +20% or -20%`

// Change is one change of a fleet, as a person would ask for it: "down a-1",
// "demand us-east/chat +20%", "capacity c-1 40".
type Change struct {
	Text string

	kind   string // down, region, health, capacity, demand, latency, max_utilization
	name   string // engine, region or cluster
	class  string // demand: "" all
	engine string // latency: the far end
	amount amount
}

// amount is a new value: absolute, a difference, or a part of the present one.
type amount struct {
	value  float64
	signed bool // a difference
	part   bool // percent: value is a fraction
}

func (a amount) of(now float64) float64 {
	switch {
	case a.part:
		return now * (1 + a.value)
	case a.signed:
		return now + a.value
	}
	return a.value
}

// ParseChange reads one change. Names may have blanks: the first word says what
// changes, the last the value.
func ParseChange(text string) (Change, error) {
	fail := func(format string, args ...any) (Change, error) {
		return Change{}, badQuestion("what-if %q: %s; want %s", text, fmt.Sprintf(format, args...), ChangeSyntax)
	}
	words := strings.Fields(text)
	c := Change{Text: strings.Join(words, " ")}
	if len(words) == 0 {
		return fail("it is empty")
	}
	c.kind, words = words[0], words[1:]
	switch c.kind {
	case "down":
		if len(words) > 1 && words[0] == "region" {
			c.kind, words = "region", words[1:]
		}
		if c.name = strings.Join(words, " "); c.name == "" {
			return fail("it names no engine")
		}
		return c, nil
	case "health", "capacity", "demand", "latency", "max_utilization":
	default:
		return fail("%q is nothing that can change", c.kind)
	}
	if len(words) == 0 {
		return fail("it has no value")
	}
	var err error
	if c.amount, err = parseAmount(words[len(words)-1]); err != nil {
		return fail("%v", err)
	}
	c.name = strings.Join(words[:len(words)-1], " ")
	switch c.kind {
	case "max_utilization":
		if c.name != "" {
			return fail("max_utilization is the policy's, %q is too much", c.name)
		}
		return c, nil
	case "demand":
		c.name, c.class, _ = strings.Cut(c.name, "/")
	case "latency":
		from, to, ok := strings.Cut(c.name, "->")
		c.name, c.engine = strings.TrimSpace(from), strings.TrimSpace(to)
		if !ok || c.engine == "" {
			return fail("latency has two ends")
		}
	}
	if c.name == "" {
		return fail("it names nothing to change")
	}
	return c, nil
}

func parseAmount(word string) (amount, error) {
	a := amount{signed: word[0] == '+' || word[0] == '-'}
	digits, part := strings.CutSuffix(word, "%")
	a.part = part
	value, err := strconv.ParseFloat(digits, 64)
	switch {
	case err != nil || math.IsNaN(value) || math.IsInf(value, 0):
		return a, fmt.Errorf("%q is no number", word)
	case a.part && !a.signed:
		return a, fmt.Errorf("%q could be a change or a share, give it a sign", word)
	case a.part && value < -100:
		return a, fmt.Errorf("%q takes away more than there is", word)
	}
	a.value = value
	if a.part {
		a.value /= 100
	}
	return a, nil
}

// ApplyChanges returns a fleet with all changes made, in their order; the one
// given stays as it is.
func ApplyChanges(fleet *model.Fleet, changes []Change) (*model.Fleet, error) {
	f := *fleet
	f.Engines = slices.Clone(fleet.Engines)
	f.Demand = slices.Clone(fleet.Demand)
	for _, c := range changes {
		if err := c.apply(&f); err != nil {
			return nil, badQuestion("what-if %q: %v", c.Text, err)
		}
	}
	return &f, nil
}

func (c Change) apply(f *model.Fleet) error {
	switch c.kind {
	case "down", "health", "capacity":
		return c.applyEngine(f)
	case "region":
		return c.applyRegion(f)
	case "demand":
		return c.applyDemand(f)
	case "latency":
		return c.applyLatency(f)
	}
	v := c.amount.of(f.Policy.MaxUtilization)
	if !(v > 0 && v <= 1) {
		return fmt.Errorf("max_utilization would be %v, want (0, 1]", v)
	}
	f.Policy.MaxUtilization = v
	return nil
}

func (c Change) applyEngine(f *model.Fleet) error {
	i := slices.IndexFunc(f.Engines, func(e model.Engine) bool { return e.Name == c.name })
	if i < 0 {
		return unknown("engine", c.name, len(f.Engines), func(i int) string { return f.Engines[i].Name })
	}
	e := &f.Engines[i]
	switch c.kind {
	case "down":
		e.Health = 0
	case "health":
		if e.Health = c.amount.of(e.Health); !(e.Health >= 0 && e.Health <= 1) {
			return fmt.Errorf("health would be %v, want [0, 1]", e.Health)
		}
	case "capacity":
		if e.CapacityRPS = c.amount.of(e.CapacityRPS); !(e.CapacityRPS >= 0) {
			return fmt.Errorf("capacity would be %v req/s, want >= 0", e.CapacityRPS)
		}
	}
	return nil
}

func (c Change) applyRegion(f *model.Fleet) error {
	found := false
	for i := range f.Engines {
		if f.Engines[i].Region == c.name {
			f.Engines[i].Health, found = 0, true
		}
	}
	if !found {
		return unknown("region", c.name, len(f.Engines), func(i int) string { return f.Engines[i].Region })
	}
	return nil
}

func (c Change) applyDemand(f *model.Fleet) error {
	found := false
	for i := range f.Demand {
		d := &f.Demand[i]
		if (c.name != "*" && d.Cluster != c.name) || (c.class != "" && d.Class != c.class) {
			continue
		}
		found = true
		if d.RPS = c.amount.of(d.RPS); !(d.RPS >= 0) {
			return fmt.Errorf("demand of %s/%s would be %v req/s, want >= 0", d.Cluster, d.Class, d.RPS)
		}
	}
	if !found {
		return unknown("source", c.name+"/"+c.class, len(f.Demand), func(i int) string { return f.Demand[i].Cluster + "/" + f.Demand[i].Class })
	}
	return nil
}

func (c Change) applyLatency(f *model.Fleet) error {
	now, err := roundTripMs(f, c.name, c.engine)
	if err != nil {
		return err
	}
	then := c.amount.of(now)
	switch {
	case math.IsNaN(then):
		return fmt.Errorf("%s does not reach %s now, so that there is nothing to change from; give the round trip itself", c.name, c.engine)
	case then < 0:
		return fmt.Errorf("the round trip would be %v ms, want >= 0", then)
	}
	f.Latency = setRoundTrip(f.Latency, f, c.name, c.engine, then)
	return nil
}

// roundTripMs is the round trip between a cluster and an engine, NaN where it
// is not reachable.
func roundTripMs(f *model.Fleet, cluster, engine string) (float64, error) {
	i := slices.IndexFunc(f.Engines, func(e model.Engine) bool { return e.Name == engine })
	if i < 0 {
		return 0, unknown("engine", engine, len(f.Engines), func(i int) string { return f.Engines[i].Name })
	}
	index := f.Latency.Index()
	row, ok := index.Row(cluster)
	if !ok {
		return 0, unknown("cluster", cluster, len(f.Latency.From), func(i int) string { return f.Latency.From[i] })
	}
	column, ok := index.Column(f.Engines[i])
	if !ok {
		return math.NaN(), nil
	}
	return f.Latency.At(row, column), nil
}

// setRoundTrip returns the matrix with one cell changed. The engine gets a
// column of its own, as that of its region may be others' too. Cluster and
// engine are there, see roundTripMs.
func setRoundTrip(l model.Latency, f *model.Fleet, cluster, engine string, ms float64) model.Latency {
	index := l.Index()
	e := f.Engines[slices.IndexFunc(f.Engines, func(e model.Engine) bool { return e.Name == engine })]
	column, ok := index.Column(e)
	out := model.Latency{From: l.From, To: slices.Clone(l.To)}
	own := slices.Index(l.To, engine)
	if own < 0 {
		own = len(out.To)
		out.To = append(out.To, engine)
	}
	out.RTTMs = make([]float32, 0, len(out.From)*len(out.To))
	for row := range l.From {
		out.RTTMs = append(out.RTTMs, l.RTTMs[row*len(l.To):(row+1)*len(l.To)]...)
		if len(out.To) > len(l.To) {
			cell := float32(math.NaN())
			if ok {
				cell = l.RTTMs[row*len(l.To)+column]
			}
			out.RTTMs = append(out.RTTMs, cell)
		}
	}
	row, _ := index.Row(cluster)
	out.RTTMs[row*len(out.To)+own] = float32(ms)
	return out
}

// unknown says that a name is not there and, of few, which are.
func unknown(what, name string, n int, known func(int) string) error {
	const most = 8
	var names []string
	for i := range n {
		if !slices.Contains(names, known(i)) {
			names = append(names, known(i))
		}
	}
	if len(names) > most {
		return badQuestion("there is no %s %q", what, strings.TrimSuffix(name, "/"))
	}
	return badQuestion("there is no %s %q (there are: %s)", what, strings.TrimSuffix(name, "/"), strings.Join(names, ", "))
}
