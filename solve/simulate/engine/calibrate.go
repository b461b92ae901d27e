package engine

import "github.com/irb-project/irb/solve/profile"

const (
	// gridSteps is how many steps of utilization a calibration corrects.
	gridSteps = 20
	// rounds of correction; the means no longer change after six.
	rounds = 12
	// tail is how many times the numbers in service are looked at.
	tail = 2
)

// calibrate corrects the curve so that the mean latencies at steady Poisson load
// are those of the profile. Without it they are the profile's averaged over the
// number in progress, which for convex curves on small engines is more.
//
// With n in progress the engine completes n/T(n-1) jobs/s, so the number has the
// distribution pi(n) = pi(n-1) lambda T(n-1) / n, and a job spends its time in
// prefill in proportion to TTFT/T of then. Each round scales TTFT and TBOT at
// each utilization by the profile's over the mean of that distribution, with the
// ends fixed: alone a job takes T(0), and a saturated engine has its capacity.
func (c *curve) calibrate(p profile.Profile, capacityRPS float64) {
	if p.TTFT.PS {
		return // exact as it is
	}
	utilization := make([]float64, len(c.ttft))
	for i := range utilization {
		utilization[i] = utilizationAmong(p, capacityRPS, float64(i))
	}
	var ttftFactor, tbotFactor [gridSteps + 1]float64
	for i := range ttftFactor {
		ttftFactor[i], tbotFactor[i] = 1, 1
	}
	plain := curve{ttft: append([]float64(nil), c.ttft...), tbot: append([]float64(nil), c.tbot...)}
	for range rounds {
		for i := 1; i < gridSteps; i++ {
			v := float64(i) / gridSteps
			ttft, tbot := c.means(v*capacityRPS, p.OutputTokens)
			ttftFactor[i] = clamp(ttftFactor[i] * max(noTime, p.TTFT.At(v)/1000) / ttft)
			tbotFactor[i] = clamp(tbotFactor[i] * max(noTime, p.TBOT.At(v)/1000) / tbot)
		}
		for i, v := range utilization {
			c.ttft[i] = plain.ttft[i] * between(&ttftFactor, v)
			c.tbot[i] = plain.tbot[i] * between(&tbotFactor, v)
			c.hold(i, capacityRPS, p.OutputTokens)
		}
	}
}

// clamp keeps a correction where it can converge.
func clamp(factor float64) float64 { return min(2, max(0.5, factor)) }

// hold keeps what physics asks for: more work never makes a job faster, and no
// number in progress makes the engine faster than its capacity. A table that is
// finite at full load asks for more than that close to it; there the mean stays
// above the table's.
func (c *curve) hold(i int, capacityRPS, outputTokens float64) {
	if i > 0 {
		c.ttft[i], c.tbot[i] = max(c.ttft[i], c.ttft[i-1]), max(c.tbot[i], c.tbot[i-1])
	}
	least := float64(i+1) / capacityRPS
	if t := c.ttft[i] + outputTokens*c.tbot[i]; t < least {
		c.ttft[i] *= least / t
		c.tbot[i] *= least / t
	}
}

// between returns the factor at a utilization, linear between the steps.
func between(factor *[gridSteps + 1]float64, v float64) float64 {
	x := v * gridSteps
	i := min(gridSteps-1, int(x))
	return factor[i] + (x-float64(i))*(factor[i+1]-factor[i])
}

// means returns the mean TTFT and TBOT in s of reference requests at a rate.
func (c *curve) means(rps, outputTokens float64) (ttft, tbot float64) {
	weight, sum := 1.0, 1.0 // of pi(0)
	var prefill, all float64
	for n := 1; n < tail*len(c.ttft); n++ {
		a, b := c.at(float64(n - 1))
		t := a + outputTokens*b
		weight *= rps * t / float64(n)
		sum += weight
		prefill += weight * float64(n) * a / t
		all += weight * float64(n)
		if weight > 1e200 {
			weight, sum, prefill, all = weight/1e200, sum/1e200, prefill/1e200, all/1e200
		}
		if weight < 1e-12*sum {
			break
		}
	}
	ttft = prefill / sum / rps
	if outputTokens == 0 {
		_, b := c.at(all / sum)
		return ttft, b
	}
	return ttft, (all - prefill) / sum / rps / outputTokens
}
