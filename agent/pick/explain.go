package pick

import "github.com/irb-project/irb/agent/snapshot"

// Explanation tells how a key was placed, for `irbctl explain` and /debug/pick.
// It comes from the code that serves requests, so it cannot drift from it.
type Explanation struct {
	Class    string   `json:"class"`
	Key      uint64   `json:"key"`
	Position uint32   `json:"position"`
	Range    int      `json:"range"` // its number in the layout
	From     uint64   `json:"from"`  // the range is [From, To)
	To       uint64   `json:"to"`
	Engine   string   `json:"engine"` // the owner
	Order    []Choice `json:"order"`
}

// Choice is one engine in the order of a key.
type Choice struct {
	Engine     string `json:"engine"`
	Rank       int    `json:"rank"`
	Fallback   bool   `json:"fallback,omitempty"`
	LastResort bool   `json:"last_resort,omitempty"`
	Skipped    string `json:"skipped,omitempty"` // why it is passed over; empty if it may be tried
}

// Explain returns how the class places a request: every engine in the order of
// its key with the reason if it is passed over, then those that come back as a
// last resort.
func (c *Class) Explain(r Request) (Explanation, error) {
	if err := c.Routable(); err != nil {
		return Explanation{}, err
	}
	l := &c.layout
	position := Position(r.Key)
	n := l.find(position)
	e := Explanation{
		Class:    c.Spec.Name,
		Key:      r.Key,
		Position: position,
		Range:    n,
		From:     uint64(l.ranges[n].from),
		To:       snapshot.QuotaSum,
		Engine:   c.engineName(c.Owner(r.Key)),
	}
	if n+1 < len(l.ranges) {
		e.To = uint64(l.ranges[n+1].from)
	}
	w := c.Walk(r)
	var all order
	for s := all.next(l, r.Key); s >= 0; s = all.next(l, r.Key) {
		rank := all.n - 1
		engine := l.slots[s].engine
		choice := Choice{Engine: c.engineName(engine), Rank: rank, Fallback: s >= l.owners}
		choice.Skipped = w.refusal(engine).String()
		if r.Hard && rank > 0 {
			choice.Skipped = "not the owner of a stateful request"
		}
		e.Order = append(e.Order, choice)
	}
	for step, ok := w.Next(); ok; step, ok = w.Next() {
		if step.LastResort {
			e.Order = append(e.Order, Choice{
				Engine: c.engineName(step.Engine), Rank: step.Rank, Fallback: step.Fallback, LastResort: true,
			})
		}
	}
	return e, nil
}

func (c *Class) engineName(n int) string { return c.table.snapshot.Engines[n].Name }
