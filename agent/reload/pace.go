package reload

import "time"

// pacer spreads the work on a large file, so that requests never wait for more
// than a piece of it, neither for the processor nor for what else the work holds
// up. Without it the kernel would let a thread that has worked for long go on for
// milliseconds while one that has a request to serve waits.
type pacer struct{ rested time.Time }

const (
	workTime = time.Millisecond
	restTime = 250 * time.Microsecond
)

// pause rests if it is time to.
func (p *pacer) pause() {
	if time.Since(p.rested) < workTime {
		return
	}
	time.Sleep(restTime)
	p.rested = time.Now()
}
