package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/irb-project/irb/solve/figure"
	"github.com/irb-project/irb/solve/profile"
)

// FitOptions are the user's choices.
type FitOptions struct {
	Name        string  // of the profile, if there is one only; "" makes one up
	AcceptError bool    // accept fits that are off by more than 25 %
	TTFTLimitMs float64 // 0: none
	TBOTLimitMs float64
}

// Profile is what the runs of one configuration at one request shape give.
type Profile struct {
	Name         string   `json:"name"`
	Labels       []Label  `json:"labels"`
	Files        []string `json:"files"`
	PromptTokens float64  `json:"prompt_tokens"`
	OutputTokens float64  `json:"output_tokens"`
	RunsRead     int      `json:"runs_read"`
	RunsLeftOut  int      `json:"runs_left_out"`
	Refusal      string   `json:"refusal,omitempty"` // why there is no profile
	Notes        []Note   `json:"notes,omitempty"`
	Points       []Point  `json:"points"`

	CapacityRPS     float64 `json:"capacity_rps"`
	CapacityAtLeast bool    `json:"capacity_at_least"` // saturation was not reached
	WorstRelError   float64 `json:"worst_rel_error"`
	Knee            float64 `json:"knee_utilization"`
	MaxUtilization  float64 `json:"max_utilization"`
	MaxBecause      string  `json:"max_utilization_because,omitempty"`

	Spec   profile.Spec    `json:"-"`
	Fitted profile.Profile `json:"-"`
}

// Fit makes a profile, or a refusal, of every configuration and shape, in the
// order in which the runs come.
func Fit(runs []Run, o FitOptions) []*Profile {
	list := groups(runs)
	names := profileNames(list)
	if len(list) == 1 && o.Name != "" {
		names[0] = o.Name
	}
	profiles := make([]*Profile, len(list))
	for i, g := range list {
		profiles[i] = fitGroup(g, names[i], o)
	}
	return profiles
}

func fitGroup(g *group, name string, o FitOptions) *Profile {
	c := newCurve(g)
	p := &Profile{
		Name: name, Labels: g.labels, PromptTokens: round(g.promptTokens, 6), OutputTokens: round(g.outputTokens, 6),
		RunsRead: len(g.runs) + len(g.faulty), RunsLeftOut: c.dropped, Points: c.points, Notes: c.notes,
		CapacityRPS: round(c.capacity, 6), CapacityAtLeast: c.atLeast,
	}
	for _, r := range slices.Concat(g.runs, g.faulty) {
		if !slices.Contains(p.Files, r.File) {
			p.Files = append(p.Files, r.File)
		}
	}
	switch len(c.points) {
	case 0:
		p.Refusal = "no run can be used; the first: " + c.notes[0].Message
		return p
	case 1:
		p.Refusal = "a single level of load (" + c.points[0].run.load() + ") makes no curve, want at least two, better five"
		return p
	}
	p.Spec = spec(p, o.AcceptError)
	fitted, err := profile.Fit(p.Spec)
	if err != nil {
		p.Refusal = refusal(err, name)
		return p
	}
	p.Fitted, p.WorstRelError = fitted, fitted.WorstRelError
	p.remarks()
	p.propose(o)
	return p
}

// spec makes the table of a profile: the points as measured, and the lowest run
// at utilization 0.
func spec(p *Profile, accept bool) profile.Spec {
	s := profile.Spec{Name: p.Name, PromptTokens: p.PromptTokens, OutputTokens: p.OutputTokens}
	add := func(v float64, q *Point) {
		s.Utilization = append(s.Utilization, round(v, 6))
		s.TTFTMs = append(s.TTFTMs, round(q.TTFTMs, 6))
		s.TBOTMs = append(s.TBOTMs, round(q.TBOTMs, 6))
	}
	if first := &p.Points[0]; first.Utilization > 0 {
		add(0, first)
	}
	for i := range p.Points {
		add(p.Points[i].Utilization, &p.Points[i])
	}
	if accept {
		// Said only where it matters: the author looked at this one.
		strict := s
		_, err := profile.Fit(strict)
		s.AcceptErrorAbove25 = err != nil
	}
	return s
}

// refusal shortens the error of the fit, which names the profile.
func refusal(err error, name string) string {
	text := err.Error()
	if prefix := fmt.Sprintf("profile %q: ", name); len(text) > len(prefix) && text[:len(prefix)] == prefix {
		text = text[len(prefix):]
	}
	return "no fit: " + text
}

// remarks adds what the reader of the profile should know of its limits.
func (p *Profile) remarks() {
	first, last := &p.Points[0], &p.Points[len(p.Points)-1]
	if first.Utilization > idle {
		p.note(&first.run, "the lowest run is at %s of capacity; its latency stands for the engine without load, which is lower; measure concurrency 1", figure.Percent(first.Utilization))
	}
	if len(p.Points) == 2 {
		p.note(&last.run, "two levels of load make a straight line; five or more show the bend")
	}
	if p.CapacityAtLeast {
		p.note(&last.run, "throughput still rises at the highest load, %s; the capacity of %s req/s is what was seen, not a limit; measure higher", last.run.load(), figure.Rate(p.CapacityRPS))
	}
	if p.WorstRelError > profile.WarnFitError {
		p.note(&first.run, "the fit is off by up to %s", figure.Percent(p.WorstRelError))
	}
}

func (p *Profile) note(r *Run, format string, args ...any) {
	p.Notes = append(p.Notes, r.remark(format, args...))
}

// The rule for max utilization: an engine may be planned up to where a request
// takes twice as long as at the knee, and not above mostUtilization, which
// leaves room for bursts that a load test of constant concurrency does not
// have.
const (
	kneeFactor      = 2
	mostUtilization = 0.9
)

// propose finds the knee and the max utilization.
//
// The knee is where power v/T(v) is greatest (Kleinrock, Power and deterministic
// rules of thumb, 1979): below it throughput rises by a larger factor than
// latency, above it by a smaller one. It is the tangent from the origin to T;
// between two points of T power is monotonous, so that it lies at a point.
func (p *Profile) propose(o FitOptions) {
	t := reference(p.Fitted)
	last := t.V[len(t.V)-1]
	best := 0.0
	for i, v := range t.V {
		if power := v / t.Ms[i]; power > best {
			best, p.Knee = power, v
		}
	}
	limit := kneeFactor * t.At(p.Knee)
	p.MaxUtilization, p.MaxBecause = mostUtilization, "leaves 10 % for bursts"
	for _, x := range []struct {
		v       float64
		because string
	}{
		{last, "the highest utilization measured"},
		{t.MaxUtilization(limit), fmt.Sprintf("a request takes %s ms there, twice as long as at the knee", figure.Ms(limit))},
		{p.Fitted.MaxUtilizationFor(o.TTFTLimitMs, o.TBOTLimitMs), "the TTFT and TBOT limits hold up to there"},
	} {
		if x.v < p.MaxUtilization {
			p.MaxUtilization, p.MaxBecause = x.v, x.because
		}
	}
	p.MaxUtilization = math.Floor(1000*p.MaxUtilization) / 1000
	if p.MaxUtilization == 0 {
		p.note(&p.Points[0].run, "without load TTFT is %s ms and TBOT %s ms: the limits do not hold at any utilization", figure.Ms(p.Fitted.TTFT.Ms[0]), figure.Ms(p.Fitted.TBOT.Ms[0]))
	}
}

// reference returns the latency of the reference request as one curve.
func reference(p profile.Profile) profile.Curve {
	v := slices.Concat(p.TTFT.V, p.TBOT.V)
	slices.Sort(v)
	v = slices.Compact(v)
	ms := make([]float64, len(v))
	for i := range v {
		ms[i] = p.ReferenceMs(v[i])
	}
	return profile.Curve{V: v, Ms: ms}
}

// round keeps n significant digits.
func round(v float64, n int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, float64(n-1)-math.Floor(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
