package standin

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// call is one completion in progress, between the station and its handler.
type call struct {
	*completionRequest
	id           string
	created      int64
	cachedTokens float64
	job          job
	emitted      atomic.Int64
	done         atomic.Bool
	wake         chan struct{} // at least one report since the last receive
}

func (e *Engine) serveCompletion(w http.ResponseWriter, r *http.Request) {
	if e.closed() {
		writeError(w, http.StatusServiceUnavailable, "engine_closed", "the engine is shutting down")
		return
	}
	q, err := e.readRequest(w, r)
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		writeError(w, status, "invalid_request", err.Error())
		return
	}
	if !e.serves(q.Model) {
		writeError(w, http.StatusNotFound, "model_not_found", fmt.Sprintf("the model %q does not exist", q.Model))
		return
	}
	if f, _ := e.present(); f.refuse(w) {
		return
	}
	c, ok := e.begin(q)
	e.reportLoad(w, r)
	if !ok {
		writeQueueFull(w)
		return
	}
	defer e.change(func(s *station) { s.remove(&c.job) }) // whatever ends the handler
	if q.Stream {
		e.stream(w, r, c)
	} else {
		e.answer(w, r, c)
	}
}

// begin looks the prompt up in the prefix cache and hands the work to the
// station; false when the queue is full.
func (e *Engine) begin(q *completionRequest) (c *call, ok bool) {
	c = &call{
		completionRequest: q,
		id:                fmt.Sprintf("cmpl-%016x", rand.Uint64()),
		created:           time.Now().Unix(),
		wake:              make(chan struct{}, 1),
	}
	e.change(func(s *station) {
		c.cachedTokens = e.cache.hit(q.key, q.promptTokens)
		c.job = job{
			prompt:   (q.promptTokens - c.cachedTokens) / e.cfg.Profile.PromptTokens,
			tokens:   q.outputTokens,
			stepwise: q.Stream,
			kvTokens: q.promptTokens + float64(q.outputTokens),
			progress: func(tokens int, done bool) {
				c.emitted.Store(int64(tokens))
				c.done.Store(done)
				select {
				case c.wake <- struct{}{}:
				default:
				}
			},
		}
		ok = s.add(&c.job)
	})
	if ok {
		e.metrics.queried(q.promptTokens, c.cachedTokens)
	}
	return c, ok
}

// await returns when tokens beyond seen have come, or the end; false when the
// client has gone or the engine closes.
func (e *Engine) await(r *http.Request, c *call, seen int) (tokens int, done, ok bool) {
	for {
		done = c.done.Load() // before emitted, which is final once done
		tokens = int(c.emitted.Load())
		if done || tokens > seen {
			return tokens, done, true
		}
		select {
		case <-c.wake:
		case <-r.Context().Done():
			return 0, false, false
		case <-e.quit:
			return 0, false, false
		}
	}
}

// answer serves a completion that is not streamed.
func (e *Engine) answer(w http.ResponseWriter, r *http.Request, c *call) {
	if _, _, ok := e.await(r, c, c.outputTokens); !ok {
		e.breakOff(r)
		return
	}
	if !e.hang(r, c) {
		return
	}
	e.finish(c)
	writeJSON(w, http.StatusOK, c.response(strings.Repeat(tokenText, c.outputTokens)))
}

// stream serves a completion as server-sent events, one frame per token,
// flushing what is due together.
func (e *Engine) stream(w http.ResponseWriter, r *http.Request, c *call) {
	control := http.NewResponseController(w)
	var frame []byte
	for seen := 0; ; {
		tokens, done, ok := e.await(r, c, seen)
		if !ok {
			e.breakOff(r)
			return
		}
		if seen == 0 {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-cache")
			w.Write(c.firstFrame())
			frame = c.tokenFrame()
		}
		for ; seen < tokens; seen++ {
			if seen == c.outputTokens/2 {
				control.Flush()
				if !e.hang(r, c) {
					return
				}
			}
			w.Write(frame)
		}
		if done {
			e.finish(c)
			w.Write(c.lastFrames())
			return // a failed write shows as the end of the request's context
		}
		control.Flush()
	}
}

// finish remembers the conversation and counts the answer.
func (e *Engine) finish(c *call) {
	e.mu.Lock()
	e.cache.store(c.key, c.promptTokens+float64(c.outputTokens))
	e.served.Requests++
	e.served.Seconds += (c.job.ended - c.job.arrived) / e.cfg.Speedup
	e.mu.Unlock()
	e.metrics.finished(c, e.cfg.Speedup)
}

// hang blocks while the engine is told to hang; false when the client has
// given up or the engine closes.
func (e *Engine) hang(r *http.Request, c *call) bool {
	for {
		f, changed := e.present()
		if f.Kind != FaultHangMidStream {
			return true
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return false
		case <-e.quit:
			e.breakOff(r)
			return false
		}
	}
}

// breakOff ends an unfinished answer so that the client sees it broken, not
// complete. When the client itself has gone there is nobody to tell.
func (e *Engine) breakOff(r *http.Request) {
	if r.Context().Err() == nil {
		panic(http.ErrAbortHandler)
	}
}
