package model

import (
	"fmt"
	"math"

	"github.com/irb-project/irb/solve/profile"
)

// chooseWork settles single or split work.
func (c *Compiled) chooseWork(opts CompileOptions) {
	c.Work = c.Fleet.Policy.Work
	if opts.Work != "" && opts.Work != WorkAuto {
		c.Work = opts.Work
	}
	if c.Work != WorkAuto && c.Work != "" {
		return
	}
	c.Work = WorkSingle
	if c.mixesAgree() {
		return
	}
	if opts.SplitPairsMax > 0 && c.Pairs() > opts.SplitPairsMax {
		c.warnf("mixes of prompt and output differ by more than %.0f %%, but %d pairs are above the limit for split work (%d): solved with single work",
			100*MixTolerance, c.Pairs(), opts.SplitPairsMax)
		return
	}
	c.Work = WorkSplit
}

// mixesAgree says whether the share of output tokens in the tokens of a
// request agrees within MixTolerance over all sources and reference requests.
func (c *Compiled) mixesAgree() bool {
	lo, hi := math.Inf(1), math.Inf(-1)
	add := func(prompt, output float64) {
		mix := prompt / output
		lo, hi = min(lo, mix), max(hi, mix)
	}
	for _, s := range c.Sources {
		add(s.PromptTokens, s.OutputTokens)
	}
	for e := range c.Engines {
		p := c.Profile(e)
		add(p.PromptTokens, p.OutputTokens)
	}
	return !(hi > lo*(1+MixTolerance)) // equal infinities (no output at all) agree
}

func (c *Compiled) addSinks() error {
	for i := range c.Engines {
		e := &c.Engines[i]
		if e.Limit <= 0 {
			continue
		}
		p := c.Profile(i)
		var err error
		if c.Work == WorkSingle {
			e.Delay, err = profile.NewSink(e.Capacity, e.Limit, 1/e.ReferenceWork,
				[]profile.Curve{p.TTFT, p.TBOT}, []float64{1, p.OutputTokens})
		} else {
			err = e.addSplitSinks(p, c.Fleet.Policy.OutputTokenWork)
		}
		if err != nil {
			return fmt.Errorf("engine %q: %w", e.Name, err)
		}
	}
	return nil
}

// addSplitSinks makes one sink over the prompt tokens and one over the output
// tokens that an engine computes per second. Each may reach the whole work
// limit, which is beyond utilization 1 of its own; the joint limit is a row of
// its own. Processor sharing has no latency there: from the engine's max
// utilization on it goes on with its slope, as a table does beyond its last
// point, so that no engine has a limit but the joint one. An output token is
// outputWork units of work.
func (e *EngineNode) addSplitSinks(p profile.Profile, outputWork float64) (err error) {
	sink := func(refTokens, limit, scale float64, c profile.Curve) (*profile.Sink, error) {
		capacity := e.Capacity / e.ReferenceWork * refTokens // tokens/s of the reference mix at utilization 1
		formula := limit
		if c.PS {
			formula = min(limit, capacity*(e.Limit/e.Capacity))
		}
		s, err := profile.NewSink(capacity, formula, scale, []profile.Curve{c}, []float64{1})
		if err != nil {
			return nil, err
		}
		return s.ExtendTo(limit), nil
	}
	if e.Prefill, err = sink(p.PromptTokens, e.Limit, 1/p.PromptTokens, p.TTFT); err != nil {
		return err
	}
	e.Output, err = sink(p.OutputTokens, e.Limit/outputWork, 1, p.TBOT)
	return err
}
