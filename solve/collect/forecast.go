package collect

import (
	"math"
	"time"
)

// The method, all of it:
//
//	level    = mean of the last hour, which noise hardly moves; but that of the
//	           last 15 minutes if it differs from the hour by more than 4
//	           standard errors: a step is followed within a quarter of an hour
//	shape    = last week's busiest quarter of an hour in the hours to come, over
//	           last week's mean in the hours that made the level; 1 without a
//	           week of data
//	margin   = quantile of what demand then was, over level x shape, had this
//	           method run at every step of the last day
//	forecast = level x shape x margin
//
// "What demand was" is its busiest quarter of an hour too: a plan must hold
// until the next run, not in the mean over that time.
const (
	hour     = time.Hour
	quarter  = 15 * time.Minute
	day      = 24 * time.Hour
	week     = 7 * day
	stepWhen = 4.0 // standard errors

	maxShape      = 4.0 // beyond, last week is no guide
	maxMargin     = 2.0
	defaultMargin = 1.2
	minBacktests  = 12
)

// Forecast is the demand expected until the next run, and what it is made of.
type Forecast struct {
	RPS     float64 `json:"rps"`
	Level   float64 `json:"level_rps"`
	Stepped bool    `json:"stepped"` // the level is of a quarter of an hour
	Shape   float64 `json:"shape"`
	// HasWeek says that shape is from last week, not for want of data 1.
	HasWeek   bool    `json:"has_week"`
	Margin    float64 `json:"margin"`
	Backtests int     `json:"backtests"` // that the margin is from; 0: the default
	// Measured is the part of the last hour that is known.
	Measured float64 `json:"measured"`
}

// forecaster applies the method at any step of one series.
type forecaster struct {
	y       []float64
	noise   float64
	hour    int // steps
	quarter int
	week    int
	horizon int
}

// forecast looks ahead from the end of a series for a time; false if nothing
// is known of the last hour.
func forecast(y []float64, step, ahead time.Duration, q float64) (Forecast, bool) {
	steps := func(d time.Duration) int { return max(1, int(math.Round(float64(d)/float64(step)))) }
	f := forecaster{
		y: y, noise: noise(y, steps(day), step.Seconds()),
		hour: steps(hour), quarter: steps(quarter), week: steps(week), horizon: steps(ahead),
	}
	now := len(y) - 1
	out, ok := f.at(now)
	if !ok {
		return Forecast{}, false
	}
	_, known := mean(y, now+1-f.hour, now+1)
	out.Measured = float64(known) / float64(f.hour)
	out.Margin = defaultMargin
	var ratios []float64
	for t := max(0, now-f.horizon-steps(day)); t <= now-f.horizon; t++ {
		past, ok := f.at(t)
		was, known := f.busiest(t)
		// A margin of forecasts that knew last week is not one of those
		// that did not.
		if ok && known && past.HasWeek == out.HasWeek && past.Level*past.Shape > 0 {
			ratios = append(ratios, was/(past.Level*past.Shape))
		}
	}
	if len(ratios) >= minBacktests {
		out.Margin, out.Backtests = min(max(1, quantile(ratios, q)), maxMargin), len(ratios)
	}
	out.RPS = out.Level * out.Shape * out.Margin
	return out, true
}

// at applies the method at step t, without margin.
func (f *forecaster) at(t int) (out Forecast, ok bool) {
	long, known := mean(f.y, t+1-f.hour, t+1)
	if known == 0 {
		return out, false
	}
	span := f.hour
	out.Level = long
	short, recent := mean(f.y, t+1-f.quarter, t+1)
	if recent > 0 && math.Abs(short-long) > stepWhen*f.noise/math.Sqrt(float64(recent)) {
		out.Level, out.Stepped, span = short, true, f.quarter
	}
	out.Shape = 1
	then := t - f.week
	if then-span+1 < 0 {
		return out, true
	}
	base, known := mean(f.y, then+1-span, then+1)
	if peak, ok := f.busiest(then); ok && 2*known >= span && base > 0 {
		out.HasWeek = true
		out.Shape = min(max(peak/base, 1/maxShape), maxShape)
	}
	return out, true
}

// busiest returns the mean of the busiest quarter of an hour that ends in the
// steps after t; false if less than half of them is known.
func (f *forecaster) busiest(t int) (peak float64, ok bool) {
	end := t + f.horizon
	if _, known := mean(f.y, t+1, end+1); 2*known < f.horizon || end >= len(f.y) {
		return 0, false
	}
	// A horizon shorter than a quarter of an hour is looked at with what was
	// before it.
	for i := min(end, t+f.quarter); i <= end; i++ {
		if m, known := mean(f.y, i+1-f.quarter, i+1); known > 0 {
			peak, ok = max(peak, m), true
		}
	}
	return peak, ok
}
