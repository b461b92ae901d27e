package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/irb-project/irb/solve/fleetgen"
	"github.com/irb-project/irb/solve/model"
)

// size is the shape of a fleet.
type size struct {
	Sources, Engines int
	Eligible         float64 // share of pairs that exist, (0, 1]
}

// parseSize parses "SOURCESxENGINES" or "SOURCESxENGINES:PERCENT".
func parseSize(text string) (size, error) {
	shape, percent, given := strings.Cut(text, ":")
	sources, engines, _ := strings.Cut(shape, "x")
	s := size{Eligible: 1}
	var errs [3]error
	s.Sources, errs[0] = strconv.Atoi(sources)
	s.Engines, errs[1] = strconv.Atoi(engines)
	if given {
		s.Eligible, errs[2] = strconv.ParseFloat(percent, 64)
		s.Eligible /= 100
	}
	if errs != [3]error{} || s.Sources < 1 || s.Engines < 3 || !(s.Eligible > 0 && s.Eligible <= 1) {
		return s, fmt.Errorf("fleet %q, want SOURCESxENGINES or SOURCESxENGINES:PERCENT such as 1000x1000:50, with 3 engines or more", text)
	}
	return s, nil
}

func (s size) String() string {
	if s.Eligible == 1 {
		return fmt.Sprintf("%d x %d", s.Sources, s.Engines)
	}
	return fmt.Sprintf("%d x %d, %.4g %%", s.Sources, s.Engines, 100*s.Eligible)
}

// load is how busy a fleet is.
type load struct {
	Percent float64 // of what all engines may take
	Tight   bool    // see fleetgen.Config
}

// parseLoad parses "PERCENT" or "PERCENTt".
func parseLoad(text string) (load, error) {
	percent, tight := strings.CutSuffix(text, "t")
	v, err := strconv.ParseFloat(percent, 64)
	if err != nil || !(v > 0 && v <= 1000) {
		return load{}, fmt.Errorf("load %q, want a percentage in (0, 1000] such as 75, or 75t", text)
	}
	return load{Percent: v, Tight: tight}, nil
}

func (l load) String() string {
	if l.Tight {
		return fmt.Sprintf("%.4g %% tight", l.Percent)
	}
	return fmt.Sprintf("%.4g %%", l.Percent)
}

// fleet is all that a seeded program is made from.
type fleet struct {
	Size  size
	Load  load
	Split bool // split work
	Seed  uint64
}

func (f fleet) String() string { return fmt.Sprintf("%s, %s", f.Size, f.Load) }

func (f fleet) problem() *model.Problem {
	p := fleetgen.Fleet(fleetgen.Config{
		Sources: f.Size.Sources, Engines: f.Size.Engines, Eligible: f.Size.Eligible,
		Load: f.Load.Percent / 100, Tight: f.Load.Tight, Split: f.Split,
	}, f.Seed)
	p.Shed = f.Load.Percent > 100
	return p
}
