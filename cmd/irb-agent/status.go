package main

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"time"
)

// readiness is the answer of /readyz.
type readiness struct {
	Ready    bool      `json:"ready"`
	Reason   string    `json:"reason,omitempty"` // why not
	Sequence int64     `json:"sequence,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
	Expired  bool      `json:"expired"`  // serves on, see design: fail static
	Degraded bool      `json:"degraded"` // serves, but somebody should look
}

func (a *agent) readiness() readiness {
	serving := a.reloader.Serving()
	if serving == nil {
		return readiness{Reason: "no weight file has been accepted yet"}
	}
	s := serving.Snapshot
	r := readiness{Ready: true, Sequence: s.Sequence, Created: s.Created, Expires: s.Expires, Expired: serving.Expired(a.now())}
	r.Degraded = r.Expired
	if a.draining.Load() {
		r.Ready, r.Reason = false, "draining"
	}
	return r
}

func (a *agent) statusHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		r := a.readiness()
		status := http.StatusOK
		if !r.Ready {
			status = http.StatusServiceUnavailable
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(r)
	})
	return mux
}

func (a *agent) debugHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /debug/", a.proxy.Debug())
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
