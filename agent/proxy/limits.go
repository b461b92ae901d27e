package proxy

import (
	"time"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/snapshot"
)

// limits bound the requests of one class.
type limits struct {
	attempts   int
	ttft       time.Duration // first content of a stream, per attempt
	idleStream time.Duration // silence of an engine within a response
	total      time.Duration // up to the first byte of the answer, all attempts
}

// limitsOf returns those of agent.toml, but for what the snapshot says of the
// class.
func limitsOf(c *config.Config, g *snapshot.Guard) limits {
	l := limits{
		attempts: c.Retry.Attempts, ttft: c.Timeouts.TTFT,
		idleStream: c.Timeouts.IdleStream, total: c.Timeouts.Total,
	}
	if g.RetryAttempts > 0 {
		l.attempts = g.RetryAttempts
	}
	for _, override := range []struct {
		to *time.Duration
		ms float64
	}{{&l.ttft, g.TTFTTimeoutMs}, {&l.idleStream, g.IdleTimeoutMs}, {&l.total, g.TotalTimeoutMs}} {
		if override.ms > 0 {
			*override.to = time.Duration(override.ms * float64(time.Millisecond))
		}
	}
	return l
}
