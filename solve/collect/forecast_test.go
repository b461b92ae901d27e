package collect

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const testStep = 5 * time.Minute

// perWeek and perHour are in steps.
const perWeek, perHour = 7 * 24 * 12, 12

// poisson is the rate that counting independent requests of a mean rate shows
// in a step, by the normal approximation.
func poisson(r *rand.Rand, rate float64) float64 {
	n := rate * testStep.Seconds()
	return max(0, n+math.Sqrt(n)*r.NormFloat64()) / testStep.Seconds()
}

func series(n int, rate func(i int) float64) []float64 {
	y := make([]float64, n)
	for i := range y {
		y[i] = rate(i)
	}
	return y
}

// sun is demand that doubles by day and halves by night, 24 h long.
func sun(i int) float64 { return 100 * math.Exp2(math.Sin(2*math.Pi*float64(i)/(24*perHour))) }

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s is %v, want %v within %.1f %%", what, got, want, 100*tolerance)
	}
}

// Last week's shape, half as high as today: the level doubles, the shape is of
// the hour to come. 3 h before noon of sun's day it climbs.
func TestForecastFollowsTheWeek(t *testing.T) {
	now := perWeek + 24*perHour + 3*perHour
	y := series(now+1, func(i int) float64 {
		if i > perWeek-3*24*perHour { // twice the traffic for four days
			return 2 * sun(i)
		}
		return sun(i)
	})
	f, ok := forecast(y, testStep, time.Hour, 0.9)
	if !ok || !f.HasWeek {
		t.Fatalf("%+v", f)
	}
	busiest := 2 * (sun(now+10) + sun(now+11) + sun(now+12)) / 3
	near(t, "level x shape", f.Level*f.Shape, busiest, 0.005)
	near(t, "margin of a method that was right all day", f.Margin, 1, 0.01)
}

// Without a week of data there is no shape, and the margin is what demand moved
// by in the last hours.
func TestForecastWithoutAWeek(t *testing.T) {
	y := series(24*perHour, func(int) float64 { return 50 })
	f, _ := forecast(y, testStep, time.Hour, 0.9)
	if f.HasWeek || f.Shape != 1 || f.Level != 50 || f.Margin != 1 || f.RPS != 50 {
		t.Errorf("%+v, want 50 req/s with shape and margin 1", f)
	}
	f, _ = forecast(y[:perHour], testStep, time.Hour, 0.9)
	if f.Backtests != 0 || f.Margin != defaultMargin || f.RPS != 60 {
		t.Errorf("%+v, want the default margin of 1.2 on 50 req/s", f)
	}
	// Demand that grows by 1 % a step was 8 % above the last hour's mean a
	// step later, and 13 % 5 steps later still.
	y = series(8*perHour, func(i int) float64 { return math.Pow(1.01, float64(i)) })
	f, _ = forecast(y, testStep, 15*time.Minute, 0.9)
	near(t, "forecast of growth", f.RPS, (math.Pow(1.01, 96)+math.Pow(1.01, 97)+math.Pow(1.01, 98))/3, 0.01)
}

// The rule that smooths: noise alone moves the level as little as the mean of
// an hour moves; a real step is followed in a quarter of an hour.
func TestLevelFollowsStepsNotNoise(t *testing.T) {
	for _, rate := range []float64{0.2, 5, 300} {
		r := rand.New(rand.NewPCG(1, 2))
		y := series(2*24*perHour, func(int) float64 { return poisson(r, rate) })
		stepped, squares, n := 0, 0.0, 0
		for end := 24 * perHour; end < len(y); end++ {
			f, _ := forecast(y[:end], testStep, testStep, 0.5)
			if f.Stepped {
				stepped++
			}
			squares += (f.Level - rate) * (f.Level - rate)
			n++
		}
		oneHour := math.Sqrt(rate / 3600) // of counting for an hour
		if stepped > 1 {
			t.Errorf("%v req/s of noise: %d steps seen in a day", rate, stepped)
		}
		if sd := math.Sqrt(squares / float64(n)); sd > 1.3*oneHour {
			t.Errorf("%v req/s of noise: the level varies by %v, want that of an hour's count, %v", rate, sd, oneHour)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	y := series(24*perHour+3, func(i int) float64 {
		if i >= 24*perHour {
			return poisson(r, 200)
		}
		return poisson(r, 100)
	})
	f, _ := forecast(y, testStep, testStep, 0.5)
	if !f.Stepped {
		t.Errorf("a step from 100 to 200 req/s is not seen in 15 minutes: %+v", f)
	}
	near(t, "level after the step", f.Level, 200, 0.03)
}

// The margin is the quantile that it says: of forecasts made over a day, that
// part was enough.
func TestMarginIsAQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	y := series(perWeek+4*24*perHour, func(i int) float64 { return poisson(r, sun(i)) * (1 + 0.1*r.NormFloat64()) })
	for _, q := range []float64{0.5, 0.9} {
		enough, n := 0, 0
		for now := perWeek + 2*24*perHour; now+perHour < len(y); now += 2 {
			f, ok := forecast(y[:now+1], testStep, 30*time.Minute, q)
			all := forecaster{y: y, quarter: 3, horizon: 6}
			was, known := all.busiest(now)
			if !ok || !known || !f.HasWeek {
				t.Fatal("no forecast")
			}
			n++
			if was <= f.RPS {
				enough++
			}
		}
		if share := float64(enough) / float64(n); math.Abs(share-q) > 0.1 {
			t.Errorf("quantile %v: enough in %.2f of cases", q, share)
		}
	}
}

func TestForecastWithGaps(t *testing.T) {
	nan := math.NaN()
	if _, ok := forecast([]float64{5, 5, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan}, testStep, hour, 0.9); ok {
		t.Error("demand is forecast though nothing is known of the last hour")
	}
	if _, ok := forecast(nil, testStep, hour, 0.9); ok {
		t.Error("demand is forecast from nothing")
	}
	y := series(24*perHour, func(i int) float64 {
		if i%4 == 0 {
			return nan
		}
		return 30
	})
	if f, ok := forecast(y, testStep, hour, 0.9); !ok || f.RPS != 30 {
		t.Errorf("with gaps: %+v", f)
	}
	// Last week was an outage: no guide for today.
	y = series(perWeek+12*perHour, func(i int) float64 {
		if i < 24*perHour {
			return 0
		}
		return 30
	})
	if f, _ := forecast(y, testStep, hour, 0.9); f.HasWeek || f.Level*f.Shape != 30 {
		t.Errorf("after an outage last week: %+v", f)
	}
	if f, _ := forecast(series(100, func(int) float64 { return 0 }), testStep, hour, 0.9); f.RPS != 0 {
		t.Errorf("no traffic at all: %+v", f)
	}
}

// BenchmarkForecast is one source with eight days of steps of 5 minutes.
func BenchmarkForecast(b *testing.B) {
	y := series(8*24*perHour+2*perHour, sun)
	for b.Loop() {
		if _, ok := forecast(y, testStep, hour, 0.9); !ok {
			b.Fatal("no forecast")
		}
	}
}
