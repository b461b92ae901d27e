package proxy

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
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
	now    func() time.Time
	cancel context.CancelCauseFunc
	timer  *time.Timer
	armed  atomic.Int64 // when the timer fires, unix ns
	limit  atomic.Int64 // end of the phase, unix ns
	cause  atomic.Pointer[error]
}

// watch watches over an attempt until stop.
func watch(now func() time.Time, limit time.Time, cause *error, cancel context.CancelCauseFunc) *watchdog {
	w := &watchdog{now: now, cancel: cancel}
	w.limit.Store(limit.UnixNano())
	w.armed.Store(limit.UnixNano())
	w.cause.Store(cause)
	w.timer = time.AfterFunc(limit.Sub(now()), w.fire)
	return w
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
	w.cancel(*w.cause.Load())
}

func (w *watchdog) stop() { w.timer.Stop() }
