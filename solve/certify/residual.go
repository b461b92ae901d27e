package certify

import (
	"fmt"
	"math"

	"github.com/irb-project/irb/solve/model"
)

// rowKind says what a row of the program demands.
type rowKind int

const (
	rowDemand   rowKind = iota // ServedRPS against DemandRPS
	rowServed                  // flows against ServedRPS
	rowFlow                    // flow >= 0
	rowMinShare                // flow >= Lower
	rowMaxShare                // flow <= Upper
	rowGroup
	rowCapacity
	rowPrefill
	rowOutput
	rowCap
)

// row names one row of the program: i is its source, group, engine or cap,
// pair its pair where it has one.
type row struct {
	kind    rowKind
	i, pair int
}

// name returns the row as messages show it: "capacity/h100-eu-2".
func (r row) name(p *model.Problem) string {
	source := func(s int) string { return p.Sources[s].Cluster + "/" + p.Sources[s].Class }
	pair := func() string { return source(r.i) + "/" + p.Engines[p.Col[r.pair]].Name }
	switch r.kind {
	case rowDemand:
		return "demand/" + source(r.i)
	case rowServed:
		return "served/" + source(r.i)
	case rowFlow:
		return "flow/" + pair()
	case rowMinShare:
		return "min_share/" + pair()
	case rowMaxShare:
		return "max_share/" + pair()
	case rowGroup:
		return "group/" + source(p.Groups[r.i].Source) + "/" + p.Groups[r.i].Name
	case rowCapacity:
		return "capacity/" + p.Engines[r.i].Name
	case rowPrefill:
		return "prefill/" + p.Engines[r.i].Name
	case rowOutput:
		return "output/" + p.Engines[r.i].Name
	default:
		return "cap/" + p.Caps[r.i].Name
	}
}

// unit returns the unit of the row's excess and what to divide it by to get
// there: work limits are told in reference requests.
func (r row) unit(p *model.Problem) (unit string, per float64) {
	switch r.kind {
	case rowCapacity:
		return "req/s", p.Engines[r.i].ReferenceWork
	case rowPrefill, rowOutput:
		return "tokens/s", 1
	case rowCap:
		return "work/s", 1
	}
	return "req/s", 1
}

// residual is the violation of one row.
type residual struct {
	row    row
	excess float64 // in the row's own unit
	size   float64 // what it is relative to
	ratio  float64 // excess / size
}

// smallRow is the size of a row as a part of all demand below which it is no
// longer judged by its own.
const smallRow = 1e-3

// keep keeps the larger of two residuals, the first of equal ones.
func (w *residual) keep(r residual) {
	if r.ratio > w.ratio {
		*w = r
	}
}

// atMost records the row x <= limit; total sets the floor of its size.
func (w *residual) atMost(r row, x, limit, total float64) {
	if x > limit {
		w.record(r, x-limit, math.Abs(x)+math.Abs(limit), total)
	}
}

// equal records the row x = want, the terms of x adding up to size unsigned.
func (w *residual) equal(r row, x, want, size, total float64) {
	w.record(r, math.Abs(x-want), size+math.Abs(want), total)
}

func (w *residual) record(r row, excess, size, total float64) {
	size += smallRow * total
	if excess > 0 {
		w.keep(residual{row: r, excess: excess, size: size, ratio: excess / size})
	}
}

// err says which row is broken, by how much, and what would be allowed; nil if
// the worst is within tolerance.
func (w *residual) err(p *model.Problem) error {
	if w.ratio <= ResidualTol {
		return nil
	}
	verb := "exceeded"
	switch w.row.kind {
	case rowServed:
		verb = "missed"
	case rowDemand:
		if !p.Shed {
			verb = "missed"
		}
	}
	unit, per := w.row.unit(p)
	return fmt.Errorf("certify: row %q %s by %.3g %s (tolerance %.1g)", w.row.name(p), verb, w.excess/per, unit, ResidualTol*w.size/per)
}
