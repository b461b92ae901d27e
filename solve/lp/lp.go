// Package lp solves and judges the program through CLP, as a linear program
// over pairs and chords of the delays; it is the only importer of lanl/clp.
package lp

// Options are the choices of a solve.
type Options struct {
	// Gap is the relative gap at which the solve ends, default 1e-9.
	Gap float64
}

func (o Options) gap() float64 {
	if o.Gap > 0 {
		return o.Gap
	}
	return 1e-9
}

const method = "column generation (CLP)"
