package reason

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/irb-project/irb/solve/figure"
)

// teller words the weights of one source.
type teller struct {
	r            *Reader
	s            int
	used, unused []Option
}

// weight says why an option carries what it carries: why this engine, why not
// more, and what would be next.
func (t *teller) weight(o Option) (code, text string) {
	name := t.name(o)
	switch {
	case len(t.used)+len(t.unused) == 1:
		return CodeOnlyEligible, fmt.Sprintf("%s is the only engine that may serve %s; one more request costs %s ms (%s).%s",
			name, t.source(), figure.Ms(o.Cost.Total), parts(o), t.edge(o))
	case o.Cost.Share > tieMs:
		return CodeMaxShare, fmt.Sprintf("%s would be cheaper for more of %s, but a share or cap stops it at %s req/s; without it each further request would save %s ms.%s%s",
			name, t.source(), figure.Rate(o.RPS), figure.Ms(o.Cost.Share), t.edge(o), t.next())
	case o.Cost.Share < -tieMs:
		return CodeMinShare, fmt.Sprintf("a rule keeps %s req/s of %s on %s, where each costs %s ms more than elsewhere.%s%s",
			figure.Rate(o.RPS), t.source(), name, figure.Ms(-o.Cost.Share), t.edge(o), t.next())
	case o.Cost.Cache < -tieMs:
		return CodeCache, fmt.Sprintf("%s holds the KV caches of %s; moving a request away would cost %s ms of recomputed prompt, more than it gains elsewhere.%s%s",
			name, t.source(), figure.Ms(t.r.c.StayPenaltyMs[o.Pair]), t.edge(o), t.next())
	}
	if len(t.used) > 1 {
		return t.split(o)
	}
	if tied := t.tied(o); tied != "" {
		return CodeTie, fmt.Sprintf("%s and %s cost exactly the same for %s, %s ms; the plan keeps to one of them.%s",
			name, tied, t.source(), figure.Ms(o.Cost.Total), t.edge(o))
	}
	return CodeCheapest, fmt.Sprintf("%s serves all %s req/s of %s: one more request costs %s ms there (%s).%s%s",
		name, figure.Rate(o.RPS), t.source(), figure.Ms(o.Cost.Total), parts(o), t.edge(o), t.next())
}

// split words a weight of a source that uses several engines.
func (t *teller) split(o Option) (code, text string) {
	first := t.preferred()
	name := t.name(o)
	equal := math.Abs(unloaded(o)-unloaded(first)) <= tieMs
	if twins := t.twins(o); equal && twins != "" && !t.r.AtLimit(first.Engine) {
		return CodeTie, fmt.Sprintf("%s and %s cost the same for %s without load; they share it so that one more request costs %s ms at either.%s",
			name, twins, t.source(), figure.Ms(t.r.sol.SourcePriceMs[t.s]), t.edge(o))
	}
	if o.Engine == first.Engine || equal && t.r.AtLimit(o.Engine) {
		if t.r.AtLimit(o.Engine) {
			return CodeAtLimit, fmt.Sprintf("%s is at its limit (%s); one more request from %s costs %s ms at %s: %s.%s",
				name, t.load(o), t.source(), figure.Ms(t.r.sol.SourcePriceMs[t.s]), either(len(t.used)), t.comparison(), t.next())
		}
		return CodeQueueing, fmt.Sprintf("%s is the fastest %s, yet it is not filled to its limit (%s): one more request there would wait %s ms itself and delay the others by %s ms together, so that it costs %s ms at %s: %s.%s%s",
			name, t.fastest(first), t.load(o), figure.Ms(o.Cost.Delay), figure.Ms(o.Cost.Externality+o.Cost.Kink), figure.Ms(t.r.sol.SourcePriceMs[t.s]), either(len(t.used)), t.comparison(), t.edge(o), t.next())
	}
	return CodeSpill, fmt.Sprintf("%s takes %s req/s of %s because %s: %s.%s%s",
		name, figure.Rate(o.RPS), t.source(), t.whyNotAll(first), t.whyAsGood(o, first), t.edge(o), t.next())
}

// whyNotAll says what keeps the fastest engine from taking all of the source.
func (t *teller) whyNotAll(first Option) string {
	switch {
	case t.r.AtLimit(first.Engine):
		return fmt.Sprintf("%s, the fastest %s, is at its limit (%s)", t.name(first), t.fastest(first), t.load(first))
	case first.Cost.Share > tieMs:
		return fmt.Sprintf("a share or cap stops %s at %s req/s of it", t.name(first), figure.Rate(first.RPS))
	}
	return fmt.Sprintf("%s would queue beyond %s: each further request there costs all that wait %s ms", t.name(first), t.load(first), figure.Ms(queueing(first)))
}

// whyAsGood compares an option with the fastest one: slower without load, and
// by what it makes up for that.
func (t *teller) whyAsGood(o, first Option) string {
	text := fmt.Sprintf("unloaded %s is %s ms slower (network %s, compute %s)", t.name(o),
		figure.Ms(unloaded(o)-unloaded(first)), figure.SignedMs(o.Cost.Net-first.Cost.Net), figure.SignedMs(o.Cost.Base-first.Cost.Base))
	price := figure.Ms(t.r.sol.SourcePriceMs[t.s])
	made := figure.Ms(queueing(o) + o.Cost.Limit)
	switch {
	case queueing(o)+o.Cost.Limit <= tieMs:
		return fmt.Sprintf("%s, so that one more request costs the same %s ms at both", text, price)
	case o.Cost.Limit > tieMs:
		return fmt.Sprintf("%s, and with its queue and its own full limit, %s ms, one more request costs the same %s ms at both", text, made, price)
	}
	return fmt.Sprintf("%s, and with its own queue, %s ms, one more request costs the same %s ms at both", text, made, price)
}

// edge says where the price of an option is an interval, and why.
func (t *teller) edge(o Option) string {
	name, less, more := t.name(o), o.Cost.OneLess, o.Cost.OneMore
	if less == 0 && more == 0 {
		return ""
	}
	switch {
	case t.r.AtLimit(o.Engine):
		return fmt.Sprintf(" %s is full (%s): one request less there would save %s ms, room for one more %s ms.",
			name, t.load(o), figure.Ms(less), figure.Ms(max(0, o.Cost.Limit)))
	case less == 0:
		return fmt.Sprintf(" Without the rule one more would cost %s ms there.", figure.Ms(more))
	case more == 0:
		return fmt.Sprintf(" One less there would save %s ms.", figure.Ms(less))
	case o.Cost.Cache != 0 || t.r.stays(t.s, o.Pair):
		return fmt.Sprintf(" It carries exactly what it had: one less would save %s ms, as a cache is lost, one more would cost %s ms.", figure.Ms(less), figure.Ms(more))
	}
	return fmt.Sprintf(" %s sits on a kink of its profile (%s): one request less would save %s ms, one more would cost %s ms.",
		name, t.load(o), figure.Ms(less), figure.Ms(more))
}

// alternative says by how much an unused option loses and through what.
func (t *teller) alternative(o Option) (code, text string) {
	if len(t.used) == 0 {
		return CodeLoses, fmt.Sprintf("%s would cost %s ms (%s).", t.name(o), figure.Ms(o.Cost.Total), parts(o))
	}
	loses := o.Cost.Total - t.r.sol.SourcePriceMs[t.s]
	if loses <= tieMs && slices.ContainsFunc(t.used, func(u Option) bool { return u.Cost.Cache < -tieMs }) {
		return CodeTie, fmt.Sprintf("%s would take one more request, for %s ms; what %s serves now stays there for its cache.",
			t.name(o), figure.Ms(o.Cost.Total), t.names(t.used))
	}
	if loses <= tieMs {
		return CodeTie, fmt.Sprintf("%s costs exactly the same as %s; it is not needed.", t.name(o), t.names(t.used))
	}
	best := t.used[0]
	return CodeLoses, fmt.Sprintf("%s loses by %s ms: against %s %s ms.",
		t.name(o), figure.Ms(loses), t.name(best), differences(o, best))
}

func unloaded(o Option) float64 { return o.Cost.Net + o.Cost.Base }
func queueing(o Option) float64 { return o.Cost.Delay + o.Cost.Externality + o.Cost.Kink }
func limits(o Option) float64   { return o.Cost.Limit + o.Cost.Share }

// differences lists in what the costs of two options differ:
// "network +63, queueing -12".
func differences(a, b Option) string {
	var list []string
	for _, d := range []struct {
		name string
		ms   float64
	}{
		{"network", a.Cost.Net - b.Cost.Net}, {"compute", a.Cost.Base - b.Cost.Base},
		{"queueing", queueing(a) - queueing(b)}, {"limits", limits(a) - limits(b)},
		{"cache", a.Cost.Cache - b.Cost.Cache},
	} {
		if math.Abs(d.ms) > tieMs {
			list = append(list, d.name+" "+figure.SignedMs(d.ms))
		}
	}
	return strings.Join(list, ", ")
}

// preferred is the used engine that is fastest without load.
func (t *teller) preferred() Option {
	best := t.used[0]
	for _, o := range t.used[1:] {
		if unloaded(o) < unloaded(best) {
			best = o
		}
	}
	return best
}

// fastest says among which engines the preferred one is the fastest: one that
// carries nothing for this source, as it is full or far, may be faster still.
func (t *teller) fastest(first Option) string {
	for k := t.r.c.Row[t.s]; k < t.r.c.Row[t.s+1]; k++ {
		if t.r.c.CostMs[k] < t.r.c.CostMs[first.Pair]-tieMs {
			return "in use without load"
		}
	}
	return "without load"
}

// mostNamed is how many engines a sentence names; the rest is counted. Each of
// many weights has a sentence, so that naming all in each would fill the file.
const mostNamed = 6

// andMore joins a list whose beginning stands for n.
func andMore(list []string, n int) string {
	text := strings.Join(list, ", ")
	if more := n - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// comparison lists what makes the same cost at each used engine:
// "a-1 34 + 63 limit price, c-1 97".
func (t *teller) comparison() string {
	var list []string
	for _, o := range t.used[:min(mostNamed, len(t.used))] {
		terms := []string{figure.Ms(unloaded(o)) + " unloaded"}
		for _, term := range []struct {
			ms   float64
			name string
		}{
			{queueing(o), "queueing"}, {o.Cost.Limit, "limit price"}, {o.Cost.Share, "shares"}, {o.Cost.Cache, "cache"},
		} {
			if math.Abs(term.ms) > tieMs {
				terms = append(terms, figure.Ms(term.ms)+" "+term.name)
			}
		}
		list = append(list, t.name(o)+" "+strings.Join(terms, " + "))
	}
	return andMore(list, len(t.used))
}

func (t *teller) next() string {
	if len(t.unused) == 0 {
		return " No other engine may serve it."
	}
	o := t.unused[0]
	if loses := o.Cost.Total - t.r.sol.SourcePriceMs[t.s]; loses > tieMs {
		return fmt.Sprintf(" Next is %s, which loses by %s ms.", t.name(o), figure.Ms(loses))
	}
	return fmt.Sprintf(" Next is %s, at exactly the same cost.", t.name(o))
}

func (t *teller) tied(o Option) string {
	if len(t.unused) > 0 && t.unused[0].Cost.Total-o.Cost.Total <= tieMs {
		return t.name(t.unused[0])
	}
	return ""
}

// twins names the other options in use that cost the same without load.
func (t *teller) twins(o Option) string {
	var twins []Option
	for _, u := range t.used {
		if u.Engine != o.Engine && math.Abs(unloaded(u)-unloaded(o)) <= tieMs {
			twins = append(twins, u)
		}
	}
	return t.names(twins)
}

func (t *teller) name(o Option) string { return t.r.c.Engines[o.Engine].Name }

func (t *teller) names(options []Option) string {
	var names []string
	for _, o := range options[:min(mostNamed, len(options))] {
		names = append(names, t.name(o))
	}
	return andMore(names, len(options))
}

// source names the source: the cluster, with the class where there are several.
func (t *teller) source() string {
	s := t.r.c.Sources[t.s]
	if len(t.r.c.Fleet.Policy.Classes) > 1 {
		return s.Cluster + "/" + s.Class
	}
	return s.Cluster
}

// load is "90 of 90 req/s": planned work against its limit, in reference
// requests where the requests of the engine are not all like the reference.
func (t *teller) load(o Option) string { return LoadText(t.r, o.Engine) }

// LoadText is "90 of 90 req/s" for an engine.
func LoadText(r *Reader, e int) string {
	node, l := r.c.Engines[e], r.load[e]
	unit := "req/s"
	if math.Abs(l.Work-l.RPS*node.ReferenceWork) > 1e-6*l.Work {
		unit = "reference req/s"
	}
	return fmt.Sprintf("%s of %s %s", figure.Rate(l.Work/node.ReferenceWork), figure.Rate(node.Limit/node.ReferenceWork), unit)
}

// parts lists the components of a cost that are not 0.
func parts(o Option) string {
	var list []string
	for _, p := range []struct {
		name string
		ms   float64
	}{
		{"network", o.Cost.Net}, {"compute", o.Cost.Base}, {"own delay", o.Cost.Delay},
		{"delay to others", o.Cost.Externality}, {"kink", o.Cost.Kink},
		{"limit price", o.Cost.Limit}, {"shares", o.Cost.Share}, {"cache", o.Cost.Cache},
	} {
		if math.Abs(p.ms) > tieMs {
			list = append(list, p.name+" "+figure.Ms(p.ms))
		}
	}
	return strings.Join(list, ", ")
}

func either(n int) string {
	if n == 2 {
		return "either"
	}
	return "any of them"
}
