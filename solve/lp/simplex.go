//go:build cgo

package lp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/lanl/clp"
)

// linear is the linear program
//
//	minimize c'x  subject to  RowLo <= A x <= RowHi,  ColLo <= x <= ColHi
//
// Column j of A has entries Start[j] <= i < Start[j+1] of Index and Value.
// Columns are added with addColumn and never empty.
type linear struct {
	RowLo, RowHi       []float64
	Cost, ColLo, ColHi []float64
	Start              []int
	Index              []int32
	Value              []float64
}

func newLinear(rows int) *linear {
	return &linear{RowLo: make([]float64, rows), RowHi: make([]float64, rows), Start: []int{0}}
}

// addColumn starts a column; its entries follow by addEntry.
func (l *linear) addColumn(cost, lo, hi float64) int {
	l.Cost = append(l.Cost, cost)
	l.ColLo = append(l.ColLo, lo)
	l.ColHi = append(l.ColHi, hi)
	l.Start = append(l.Start, len(l.Index))
	return len(l.Cost) - 1
}

func (l *linear) addEntry(row int, value float64) {
	l.Index = append(l.Index, int32(row))
	l.Value = append(l.Value, value)
	l.Start[len(l.Start)-1] = len(l.Index)
}

// Sentinels of outcomes that are no optimum.
var (
	errInfeasible = errors.New("lp: CLP finds no feasible point")
	errUnbounded  = errors.New("lp: CLP finds the objective unbounded")
	errNumerics   = errors.New("lp: CLP stopped on numerical trouble")
)

// validate reports what CLP would not survive or would silently misread: it
// aborts the process on a NaN cost and accepts negative or repeated row
// indices.
func (l *linear) validate() error {
	rows, cols := len(l.RowLo), len(l.Cost)
	if rows == 0 || cols == 0 {
		return fmt.Errorf("lp: program has %d rows and %d columns, want at least 1 each", rows, cols)
	}
	if len(l.RowHi) != rows || len(l.ColLo) != cols || len(l.ColHi) != cols || len(l.Start) != cols+1 || len(l.Index) != len(l.Value) {
		return fmt.Errorf("lp: %d rows, %d columns: bounds or entries of another length", rows, cols)
	}
	if cols > math.MaxInt32/4 || len(l.Index) > math.MaxInt32/4 {
		return fmt.Errorf("lp: %d columns, %d entries, more than CLP's 32-bit indices hold", cols, len(l.Index))
	}
	for i := range l.RowLo {
		if !(l.RowLo[i] <= l.RowHi[i]) || math.IsInf(l.RowLo[i], 1) || math.IsInf(l.RowHi[i], -1) {
			return fmt.Errorf("lp: row %d: bounds [%v, %v], want lower <= upper", i, l.RowLo[i], l.RowHi[i])
		}
	}
	last := make([]int, rows) // column that named the row last, plus 1
	for j := range cols {
		if math.IsNaN(l.Cost[j]) || math.IsInf(l.Cost[j], 0) {
			return fmt.Errorf("lp: column %d: cost is %v, want a finite number", j, l.Cost[j])
		}
		if !(l.ColLo[j] <= l.ColHi[j]) || math.IsInf(l.ColLo[j], 1) || math.IsInf(l.ColHi[j], -1) {
			return fmt.Errorf("lp: column %d: bounds [%v, %v], want lower <= upper", j, l.ColLo[j], l.ColHi[j])
		}
		if l.Start[j+1] <= l.Start[j] {
			return fmt.Errorf("lp: column %d has no entries", j)
		}
		for i := l.Start[j]; i < l.Start[j+1]; i++ {
			row, value := int(l.Index[i]), l.Value[i]
			if row < 0 || row >= rows {
				return fmt.Errorf("lp: column %d: row %d, want 0 to %d", j, row, rows-1)
			}
			if last[row] == j+1 {
				return fmt.Errorf("lp: column %d: row %d appears twice", j, row)
			}
			last[row] = j + 1
			if math.IsNaN(value) || math.IsInf(value, 0) {
				return fmt.Errorf("lp: column %d: row %d: coefficient is %v, want a finite number", j, row, value)
			}
		}
	}
	return nil
}

// answer is an optimum of a linear program.
//
// RowDual is the derivative of the optimal objective with respect to the
// row's right-hand side, so it is <= 0 for a binding upper bound when
// minimising: the shadow price of a limit is -RowDual (TestRowDualSign).
type answer struct {
	Objective            float64
	X, RowDual, RowValue []float64

	simplex *clp.Simplex // for ranging
	matrix  *clp.PackedMatrix
}

// solve runs CLP's dual simplex from scratch. Cancelling ctx ends it within a
// slice of CPU time, at most 2 s.
func (l *linear) solve(ctx context.Context) (*answer, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	a := &answer{simplex: clp.NewSimplex(), matrix: clp.NewPackedMatrix()}
	defer runtime.KeepAlive(a)
	l.load(a)
	// A slice ends with status 3; the next one goes on from the basis.
	for seconds := 0.25; ; seconds = min(2, 2*seconds) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a.simplex.SetMaxSeconds(seconds)
		done, err := outcome(a.simplex.Dual(clp.NoValuesPass, clp.NoStartFinishOptions), a.simplex.SecondaryStatus())
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
	}
	a.Objective = a.simplex.ObjectiveValue()
	a.X = a.simplex.PrimalColumnSolution()
	a.RowDual = a.simplex.DualRowSolution()
	a.RowValue = a.simplex.PrimalRowSolution()
	return a, nil
}

// load copies the program into CLP. Room is reserved first: appending columns
// without is quadratic.
func (l *linear) load(a *answer) {
	rows, cols := len(l.RowLo), len(l.Cost)
	a.matrix.Reserve(cols, len(l.Index), false)
	a.matrix.SetDimensions(rows, 0)
	var column []clp.Nonzero
	columnBounds := make([]clp.Bounds, cols)
	for j := range cols {
		column = column[:0]
		for i := l.Start[j]; i < l.Start[j+1]; i++ {
			column = append(column, clp.Nonzero{Index: int(l.Index[i]), Value: l.Value[i]})
		}
		a.matrix.AppendColumn(column)
		columnBounds[j] = clp.Bounds{Lower: l.ColLo[j], Upper: l.ColHi[j]}
	}
	rowBounds := make([]clp.Bounds, rows)
	for i := range rowBounds {
		rowBounds[i] = clp.Bounds{Lower: l.RowLo[i], Upper: l.RowHi[i]}
	}
	a.simplex.LoadProblem(a.matrix, columnBounds, l.Cost, rowBounds, nil)
	a.simplex.SetOptimizationDirection(clp.Minimize)
}

// CLP's statuses that the binding has no name for.
const (
	statusLimit  clp.SimplexStatus = 3 // stopped on iterations or time
	statusErrors clp.SimplexStatus = 4
)

// outcome translates CLP's status: done, to be continued, or an error.
func outcome(status, secondary clp.SimplexStatus) (done bool, err error) {
	switch status {
	case clp.Optimal:
		return true, nil
	case statusLimit:
		return false, nil
	case clp.Infeasible:
		return false, errInfeasible
	case clp.Unbounded:
		return false, errUnbounded
	case statusErrors:
		return false, fmt.Errorf("%w (secondary status %d)", errNumerics, secondary)
	default:
		return false, fmt.Errorf("%w (status %d, secondary status %d)", errNumerics, status, secondary)
	}
}
