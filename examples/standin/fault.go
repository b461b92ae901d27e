package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// The kinds of fault.
const (
	FaultOff           = "off"
	FaultSlow          = "slow"            // all times are Factor times as long
	FaultCapacity      = "capacity"        // Factor of the capacity is left
	Fault500           = "500"             // every completion fails
	Fault503           = "503"             // every completion is refused: not ready
	FaultReset         = "reset"           // the connection is reset before any answer
	FaultHangMidStream = "hang-mid-stream" // half the answer, then silence
	FaultQueueFull     = "queue-full"      // refused as if the queue were full
)

// Fault is how an engine misbehaves; one at a time.
type Fault struct {
	Kind   string  `json:"kind"`
	Factor float64 `json:"factor,omitempty"`
}

func (f Fault) check() error {
	switch f.Kind {
	case FaultSlow, FaultCapacity:
		if !positive(f.Factor) {
			return fmt.Errorf("fault %q: factor is %v, want a finite number > 0", f.Kind, f.Factor)
		}
	case FaultOff, Fault500, Fault503, FaultReset, FaultHangMidStream, FaultQueueFull:
		if f.Factor != 0 {
			return fmt.Errorf("fault %q: factor is %v, want none", f.Kind, f.Factor)
		}
	default:
		all := []string{FaultOff, FaultSlow, FaultCapacity, Fault500, Fault503, FaultReset, FaultHangMidStream, FaultQueueFull}
		return fmt.Errorf("fault %q: want one of %s", f.Kind, strings.Join(all, ", "))
	}
	return nil
}

// SetFault replaces the present fault.
func (e *Engine) SetFault(f Fault) error {
	if err := f.check(); err != nil {
		return err
	}
	capacity, slow := e.cfg.CapacityRPS, 1.0
	switch f.Kind {
	case FaultSlow:
		slow = f.Factor
	case FaultCapacity:
		capacity *= f.Factor
	}
	curve := newLoadCurve(e.cfg.Profile, capacity, e.cfg.MaxRunning)
	e.change(func(s *station) {
		s.setSpeed(curve, slow)
		e.fault = f
		close(e.faulted)
		e.faulted = make(chan struct{})
	})
	return nil
}

// present returns the fault and a channel that closes when it changes.
func (e *Engine) present() (Fault, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fault, e.faulted
}

func (e *Engine) serveFault(w http.ResponseWriter, r *http.Request) {
	var f Fault
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10))
	d.DisallowUnknownFields()
	err := d.Decode(&f)
	if err == nil {
		err = e.SetFault(f)
	}
	if err != nil {
		writeError(w, http.StatusBadRequest, "invalid_fault", err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// refuse answers a completion as the fault demands and reports whether it did.
func (f Fault) refuse(w http.ResponseWriter) bool {
	switch f.Kind {
	case Fault500:
		writeError(w, http.StatusInternalServerError, "internal_error", "fault on command: 500")
	case Fault503:
		writeError(w, http.StatusServiceUnavailable, "not_ready", "fault on command: 503")
	case FaultQueueFull:
		writeQueueFull(w)
	case FaultReset:
		reset(w)
	default:
		return false
	}
	return true
}

// reset closes the client's connection with a TCP reset where it can, else
// by breaking off the answer.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if l, ok := conn.(interface{ SetLinger(int) error }); ok {
		l.SetLinger(0) // a failure only makes the close polite
	}
	conn.Close()
}
