package reason

import (
	"fmt"
	"math"
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
		return CodeOnlyEligible, fmt.Sprintf("%s is the only engine that may serve %s; one more request costs %s ms (%s).",
			name, t.source(), figure.Ms(o.Cost.Total), parts(o))
	case o.Cost.Share > tieMs:
		return CodeMaxShare, fmt.Sprintf("%s would be cheaper for more of %s, but a share or cap stops it at %s req/s; without it each further request would save %s ms.%s",
			name, t.source(), figure.Rate(o.RPS), figure.Ms(o.Cost.Share), t.next())
	case o.Cost.Share < -tieMs:
		return CodeMinShare, fmt.Sprintf("a rule keeps %s req/s of %s on %s, where each costs %s ms more than elsewhere.%s",
			figure.Rate(o.RPS), t.source(), name, figure.Ms(-o.Cost.Share), t.next())
	case o.Cost.Cache < -tieMs:
		return CodeCache, fmt.Sprintf("%s holds the KV caches of %s; moving a request away would cost %s ms of recomputed prompt, more than it gains elsewhere.%s",
			name, t.source(), figure.Ms(-o.Cost.Cache), t.next())
	}
	if len(t.used) > 1 {
		return t.split(o)
	}
	if tied := t.tied(o); tied != "" {
		return CodeTie, fmt.Sprintf("%s and %s cost exactly the same for %s, %s ms; the plan keeps to one of them.", name, tied, t.source(), figure.Ms(o.Cost.Total))
	}
	return CodeCheapest, fmt.Sprintf("%s serves all %s req/s of %s: one more request costs %s ms there (%s).%s",
		name, figure.Rate(o.RPS), t.source(), figure.Ms(o.Cost.Total), parts(o), t.next()) + atLimitNote(t.r, o)
}

// split words a weight of a source that uses several engines.
func (t *teller) split(o Option) (code, text string) {
	first := t.preferred()
	name := t.name(o)
	if o.Engine == first.Engine {
		if t.r.AtLimit(o.Engine) {
			return CodeAtLimit, fmt.Sprintf("%s is at its limit (%s); one more request from %s costs %s ms at %s: %s.%s",
				name, t.load(o), t.source(), figure.Ms(t.r.sol.SourcePriceMs[t.s]), either(len(t.used)), t.comparison(), t.next())
		}
		return CodeQueueing, fmt.Sprintf("%s is the faster one unloaded, yet it is not filled to its limit (%s): one more request there would wait %s ms itself and delay the others by %s ms together, so that it costs %s ms at %s: %s.%s",
			name, t.load(o), figure.Ms(o.Cost.Delay), figure.Ms(o.Cost.Externality+o.Cost.Kink), figure.Ms(t.r.sol.SourcePriceMs[t.s]), either(len(t.used)), t.comparison(), t.next())
	}
	if math.Abs(o.Cost.Net+o.Cost.Base-first.Cost.Net-first.Cost.Base) <= tieMs && !t.r.AtLimit(first.Engine) {
		return CodeTie, fmt.Sprintf("%s and %s cost the same for %s without load; they share it so that one more request costs %s ms at either.",
			t.name(first), name, t.source(), figure.Ms(t.r.sol.SourcePriceMs[t.s]))
	}
	cause := fmt.Sprintf("%s would queue beyond %s", t.name(first), t.load(first))
	if t.r.AtLimit(first.Engine) {
		cause = fmt.Sprintf("%s is at its limit (%s)", t.name(first), t.load(first))
	}
	queue := ", and"
	if queueing(o) > tieMs {
		queue = ", and with its own queue"
	}
	return CodeSpill, fmt.Sprintf("%s takes %s req/s of %s because %s: unloaded it is %s ms slower (network %s, compute %s)%s one more request costs the same %s ms.%s%s",
		name, figure.Rate(o.RPS), t.source(), cause,
		figure.Ms(o.Cost.Net+o.Cost.Base-first.Cost.Net-first.Cost.Base), figure.SignedMs(o.Cost.Net-first.Cost.Net), figure.SignedMs(o.Cost.Base-first.Cost.Base), queue,
		figure.Ms(t.r.sol.SourcePriceMs[t.s]), t.next(), atLimitNote(t.r, o))
}

// alternative says by how much an unused option loses and through what.
func (t *teller) alternative(o Option) (code, text string) {
	if len(t.used) == 0 {
		return CodeLoses, fmt.Sprintf("%s would cost %s ms (%s).", t.name(o), figure.Ms(o.Cost.Total), parts(o))
	}
	loses := o.Cost.Total - t.r.sol.SourcePriceMs[t.s]
	if loses <= tieMs {
		return CodeTie, fmt.Sprintf("%s costs exactly the same as %s; it is not needed.", t.name(o), t.names(t.used))
	}
	best := t.used[0]
	return CodeLoses, fmt.Sprintf("%s loses by %s ms: against %s network %s, compute %s, queueing %s, limits %s ms.",
		t.name(o), figure.Ms(loses), t.name(best), figure.SignedMs(o.Cost.Net-best.Cost.Net), figure.SignedMs(o.Cost.Base-best.Cost.Base),
		figure.SignedMs(queueing(o)-queueing(best)), figure.SignedMs(limits(o)-limits(best)))
}

func queueing(o Option) float64 { return o.Cost.Delay + o.Cost.Externality + o.Cost.Kink }
func limits(o Option) float64   { return o.Cost.Limit + o.Cost.Share + o.Cost.Cache }

// preferred is the used engine that is fastest without load.
func (t *teller) preferred() Option {
	best := t.used[0]
	for _, o := range t.used[1:] {
		if o.Cost.Net+o.Cost.Base < best.Cost.Net+best.Cost.Base {
			best = o
		}
	}
	return best
}

// comparison lists what makes the same cost at each used engine:
// "a-1 34 + 63 limit price, c-1 97".
func (t *teller) comparison() string {
	var list []string
	for _, o := range t.used {
		terms := []string{figure.Ms(o.Cost.Net+o.Cost.Base) + " unloaded"}
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
	return strings.Join(list, ", ")
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

func (t *teller) name(o Option) string { return t.r.c.Engines[o.Engine].Name }

func (t *teller) names(options []Option) string {
	var names []string
	for _, o := range options {
		names = append(names, t.name(o))
	}
	return strings.Join(names, ", ")
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

func atLimitNote(r *Reader, o Option) string {
	if !r.AtLimit(o.Engine) || o.Cost.Limit <= tieMs {
		return ""
	}
	return fmt.Sprintf(" It is at its limit (%s), whose price is %s ms.", LoadText(r, o.Engine), figure.Ms(o.Cost.Limit))
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
