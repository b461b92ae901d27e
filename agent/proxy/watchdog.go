package proxy

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/irb-project/irb/agent/lifetime"
)

// Why a watchdog ended an attempt.
var (
	errTTFT     = errors.New("no first content within timeouts.ttft")
	errIdle     = errors.New("silence longer than timeouts.idle_stream")
	errDeadline = errors.New("deadline of the request is over")
)

// watchdog ends an attempt whose present phase takes too long. Moving the limit
// is a store, so it may be done for every chunk of a stream: the timer looks
// when it fires whether it still is time, and else sleeps on.
type watchdog struct {
	now   func() time.Time
	ctx   *lifetime.Context
	timer *time.Timer
	armed atomic.Int64 // when the timer fires, unix ns
	limit atomic.Int64 // end of the phase, unix ns
	cause atomic.Pointer[error]
}

// start watches over an attempt, whose context is ctx, until stop.
func (w *watchdog) start(now func() time.Time, limit time.Time, cause *error, ctx *lifetime.Context) {
	w.now, w.ctx = now, ctx
	w.limit.Store(limit.UnixNano())
	w.armed.Store(limit.UnixNano())
	w.cause.Store(cause)
	w.timer = time.AfterFunc(limit.Sub(now()), w.fire)
}

// move gives the present phase another limit.
func (w *watchdog) move(limit time.Time, cause *error) {
	at := limit.UnixNano()
	w.cause.Store(cause)
	w.limit.Store(at)
	if at < w.armed.Load() {
		w.armed.Store(at)
		w.timer.Reset(limit.Sub(w.now()))
	}
}

func (w *watchdog) fire() {
	limit := w.limit.Load()
	left := time.Duration(limit - w.now().UnixNano())
	if left > 0 {
		w.armed.Store(limit)
		w.timer.Reset(left)
		return
	}
	w.ctx.End(*w.cause.Load())
}

func (w *watchdog) stop() { w.timer.Stop() }
