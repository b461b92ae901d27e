package standin

import "container/heap"

// station serves jobs by processor sharing, as continuous batching nearly
// does, in a time of its own: seconds that its caller passes in, never going
// back. It starts no goroutine and reads no clock, so that tests and theory
// can be compared with it in virtual time.
//
// All jobs in one phase get on at one speed, so each phase has one progress
// clock: prefill counts reference prompts, decode counts tokens. A job ends
// its phase when the clock has moved on by the job's size, whatever the speed
// was in between; joining and leaving only change the speed from now on.
type station struct {
	curve      loadCurve
	slow       float64 // factor on all times, 1: none
	maxRunning int
	maxWaiting int

	now             float64 // s
	prefill, decode float64 // progress clocks
	inPrefill       jobHeap // by prefill target
	inDecode        jobHeap // by decode target
	waiting         []*job  // first in, first out
}

// job is one request: a prefill of prompt reference prompts, then tokens
// output tokens. Its first token comes at the end of prefill, its end one
// token time after its last token, so that it takes TTFT + tokens TBOT as the
// plan counts it.
type job struct {
	prompt   float64
	tokens   int
	stepwise bool // report each token, not only the end
	kvTokens float64
	progress func(tokens int, done bool) // called at each report, with the station's lock held

	arrived, started, firstToken, ended float64 // s

	emitted int
	target  float64 // of its phase's clock
	index   int     // in its heap, -1 outside
	state   jobState
}

type jobState int

const (
	jobWaiting jobState = iota
	jobPrefill
	jobDecode
	jobGone
)

// running returns the number of jobs in service.
func (s *station) running() int { return len(s.inPrefill) + len(s.inDecode) }

// add starts a job, or queues it, or returns false when the queue is full. The
// station must have been advanced to the present.
func (s *station) add(j *job) bool {
	j.arrived, j.index = s.now, -1
	switch {
	case s.running() < s.maxRunning:
		s.start(j)
	case len(s.waiting) < s.maxWaiting:
		s.waiting = append(s.waiting, j)
	default:
		return false
	}
	return true
}

func (s *station) start(j *job) {
	j.started, j.state = s.now, jobPrefill
	j.target = s.prefill + j.prompt
	heap.Push(&s.inPrefill, j)
}

// remove takes a job out, wherever it is; a job that is gone is left alone.
func (s *station) remove(j *job) {
	switch j.state {
	case jobWaiting:
		for i, w := range s.waiting {
			if w == j {
				s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
				break
			}
		}
	case jobPrefill:
		heap.Remove(&s.inPrefill, j.index)
	case jobDecode:
		heap.Remove(&s.inDecode, j.index)
	}
	j.state = jobGone
	s.refill()
}

func (s *station) refill() {
	for len(s.waiting) > 0 && s.running() < s.maxRunning {
		j := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.start(j)
	}
}

// speeds returns the present progress of the two clocks per second.
func (s *station) speeds() (prefill, decode float64) {
	i := max(0, s.running()-1)
	return 1 / (s.slow * s.curve.ttft[i]), 1 / (s.slow * s.curve.tbot[i])
}

// utilization returns the work rate in progress over capacity.
func (s *station) utilization() float64 {
	n := s.running()
	if n == 0 {
		return 0
	}
	return s.curve.utilization[n-1]
}

// next returns when something is to be reported if nobody comes or goes.
func (s *station) next() (at float64, ok bool) {
	a, b := s.speeds()
	if len(s.inPrefill) > 0 {
		at, ok = s.now+max(0, s.inPrefill[0].target-s.prefill)/a, true
	}
	if len(s.inDecode) > 0 {
		t := s.now + max(0, s.inDecode[0].target-s.decode)/b
		if !ok || t < at {
			at, ok = t, true
		}
	}
	return at, ok
}

// advance moves time on to now and reports all that happens until then, each
// at its own time.
func (s *station) advance(now float64) {
	for {
		at, ok := s.next()
		if !ok || at > now {
			break
		}
		s.moveTo(at)
		s.step()
	}
	if now > s.now {
		s.moveTo(now)
	}
}

func (s *station) moveTo(t float64) {
	a, b := s.speeds()
	s.prefill += a * (t - s.now)
	s.decode += b * (t - s.now)
	s.now = t
	if s.running() == 0 { // keep the clocks small, so that sums stay exact
		s.prefill, s.decode = 0, 0
	}
}

// step ends the phase or the token that is due first. Which of the two heaps
// that is cannot be read off the clocks after rounding, so time left decides.
func (s *station) step() {
	a, b := s.speeds()
	if len(s.inDecode) == 0 || len(s.inPrefill) > 0 &&
		(s.inPrefill[0].target-s.prefill)/a <= (s.inDecode[0].target-s.decode)/b {
		s.endPrefill()
		return
	}
	s.endToken()
}

func (s *station) endPrefill() {
	j := heap.Pop(&s.inPrefill).(*job)
	s.prefill = max(s.prefill, j.target)
	j.firstToken, j.state = s.now, jobDecode
	j.emitted = 1
	j.target = s.decode + j.stride()
	heap.Push(&s.inDecode, j)
	if j.stepwise {
		j.progress(1, false)
	}
}

func (s *station) endToken() {
	j := s.inDecode[0]
	s.decode = max(s.decode, j.target)
	if j.stepwise && j.emitted < j.tokens {
		j.emitted++
		j.target += 1
		heap.Fix(&s.inDecode, 0)
		j.progress(j.emitted, false)
		return
	}
	heap.Pop(&s.inDecode)
	j.emitted, j.ended, j.state = j.tokens, s.now, jobGone
	s.refill()
	j.progress(j.tokens, true)
}

// stride is the number of tokens until the next report.
func (j *job) stride() float64 {
	if j.stepwise {
		return 1
	}
	return float64(j.tokens)
}

// setSpeed replaces what the engine can do, from now on.
func (s *station) setSpeed(c loadCurve, slow float64) { s.curve, s.slow = c, slow }

// jobHeap is a heap of jobs, the smallest target first.
type jobHeap []*job

func (h jobHeap) Len() int           { return len(h) }
func (h jobHeap) Less(i, j int) bool { return h[i].target < h[j].target }

func (h jobHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for container/heap.
func (h *jobHeap) Push(x any) {
	j := x.(*job)
	j.index = len(*h)
	*h = append(*h, j)
}

// Pop is for container/heap.
func (h *jobHeap) Pop() any {
	old := *h
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	j.index = -1
	return j
}
