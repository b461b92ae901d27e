package standin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// Server is an engine that listens on its endpoint.
type Server struct {
	*Engine
	URL  string // the endpoint, as the fleet names it
	http *http.Server
}

// StartFleet starts an engine on every endpoint of a fleet, or of the engines
// named only; all must be http addresses of this machine. An engine's capacity
// is divided evenly over its endpoints. Close every server that is returned.
func StartFleet(fleet *model.Fleet, speedup float64, only ...string) (servers []*Server, err error) {
	defer func() {
		if err != nil {
			for _, s := range servers {
				s.Close()
			}
			servers = nil
		}
	}()
	profiles := map[string]profile.Profile{}
	for _, spec := range fleet.Profiles {
		if profiles[spec.Name], err = profile.Fit(spec); err != nil {
			return servers, err
		}
	}
	wanted := map[string]bool{}
	for _, name := range only {
		wanted[name] = true
	}
	for _, e := range fleet.Engines {
		if len(only) > 0 && !wanted[e.Name] {
			continue
		}
		delete(wanted, e.Name)
		for _, endpoint := range e.Endpoints {
			s, err := listen(endpoint, Config{
				Name: e.Name, Models: e.Models, Profile: profiles[e.Profile],
				CapacityRPS: e.CapacityRPS * e.Health / float64(len(e.Endpoints)), Speedup: speedup,
			})
			if err != nil {
				return servers, err
			}
			servers = append(servers, s)
		}
	}
	for name := range wanted {
		return servers, fmt.Errorf("the fleet has no engine %q", name)
	}
	return servers, nil
}

func listen(endpoint string, cfg Config) (*Server, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" {
		return nil, fmt.Errorf("standin %q: endpoint is %q, want an http URL", cfg.Name, endpoint)
	}
	e, err := New(cfg)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", u.Host)
	if err != nil {
		e.Close()
		return nil, fmt.Errorf("standin %q: %w", cfg.Name, err)
	}
	s := &Server{
		Engine: e, URL: endpoint,
		// Engines close idle connections after 5 s (uvicorn's default).
		http: &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Second},
	}
	go s.http.Serve(listener) // ends with Close; an error before it shows as refused connections
	return s, nil
}

// Close breaks off what is in progress and frees the address.
func (s *Server) Close() {
	s.Engine.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		s.http.Close()
	}
}
