// Package pace spreads long work, so that requests never wait for more than a
// piece of it, neither for a processor nor for what else the work holds up.
// Without it the kernel lets a thread that is at work go on for milliseconds while
// one that has a request to serve waits.
package pace

import "time"

// Pacer spreads the work of one goroutine, which begins with its first Pause. Its
// zero value is ready for use.
type Pacer struct{ since time.Time } // the work goes on

const (
	workTime = time.Millisecond
	restTime = 250 * time.Microsecond
)

// Pause rests if it is time to. It costs little, so that it can be called often.
func (p *Pacer) Pause() {
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	if now.Sub(p.since) < workTime {
		return
	}
	time.Sleep(restTime)
	p.since = time.Now()
}
