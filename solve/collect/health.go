package collect

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/irb-project/irb/solve/model"
)

// replicas gathers which of the endpoints that engines.toml lists are up.
// Health is their share of all that it lists: a replica that the operator took
// out of the list is in neither number, so it is lost only once.
type replicas struct {
	engines []model.Engine
	byHost  map[string]map[string]bool // engine, host:port: up, by scrapes
	byURL   map[string]map[string]bool // engine, endpoint: up, by connects
	several map[string]bool            // engines with a name that stands for several addresses
}

func newReplicas(fleet *model.Fleet) *replicas {
	return &replicas{fleet.Engines, map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}}
}

func (r *replicas) scraped(engine, host string, up bool) {
	if r.byHost[engine] == nil {
		r.byHost[engine] = map[string]bool{}
	}
	r.byHost[engine][host] = up
}

// connected takes in an agent's connects. An endpoint whose name has several
// addresses is "URL at ADDRESS" there: how many there should be nobody says.
func (r *replicas) connected(engine, endpoint string, up bool) {
	if strings.Contains(endpoint, " at ") {
		r.several[engine] = true
		return
	}
	if r.byURL[engine] == nil {
		r.byURL[engine] = map[string]bool{}
	}
	r.byURL[engine][endpoint] = r.byURL[engine][endpoint] || up
}

// into sets the health of every engine whose endpoints are all known of, unless
// it is set. One
// that is unknown is neither up nor lost, so nothing is said of its engine.
func (r *replicas) into(s *Signals) {
	for _, e := range r.engines {
		n := float64(len(e.Endpoints))
		scrapes, scraped := count(e.Endpoints, func(u string) (bool, bool) { up, ok := r.byHost[e.Name][hostPort(u)]; return up, ok })
		connects, connected := count(e.Endpoints, func(u string) (bool, bool) { up, ok := r.byURL[e.Name][u]; return up, ok })
		switch {
		case s.Health[e.Name].Of != "": // the operator's query goes first
		case r.several[e.Name]:
			s.notef("engine %q has a name that stands for several replicas; how many there should be is not known: give its health with --health-query", e.Name)
		case scraped:
			s.Health[e.Name] = Health{scrapes / n, fmt.Sprintf("scrapes: %v of %v endpoints up", scrapes, n)}
		case connected:
			s.Health[e.Name] = Health{connects / n, fmt.Sprintf("connects of agents: %v of %v endpoints up", connects, n)}
		}
	}
}

// count returns how many endpoints are up; known says that all are known of.
func count(endpoints []string, look func(string) (up, known bool)) (n float64, known bool) {
	for _, u := range endpoints {
		up, known := look(u)
		if !known {
			return 0, false
		}
		if up {
			n++
		}
	}
	return n, true
}

// hostPort returns the host:port of an endpoint, as scrapes have it in their
// label instance.
func hostPort(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// EngineHealth is the health of an engine for the next solve.
type EngineHealth struct {
	Engine   string  `json:"engine"`
	Health   float64 `json:"health"`
	Given    float64 `json:"given"`    // what the operator's file says
	Evidence string  `json:"evidence"` // "": nothing is measured, Health is Given
}

// errAllLost is more likely an error of measuring than of the engines.
var errAllLost = errors.New("no engine has a replica that is up: that is more likely an error of what is measured, and a plan without engines helps nobody")

// healthOf joins what is measured with what the operator says. The lower one
// holds: a drained engine stays drained, and a replica that is lost and also
// noted down by hand is not lost twice, as a product of the two would have it.
func healthOf(s *Signals, fleet *model.Fleet) ([]EngineHealth, error) {
	var list []EngineHealth
	lost := 0
	for _, e := range fleet.Engines {
		h := EngineHealth{Engine: e.Name, Health: e.Health, Given: e.Health}
		if m, ok := s.Health[e.Name]; ok {
			h.Health, h.Evidence = min(e.Health, round(m.Fraction, 4)), m.Of
			if m.Fraction == 0 {
				lost++
			}
		}
		list = append(list, h)
	}
	if lost > 0 && lost == len(fleet.Engines) {
		return nil, errAllLost
	}
	slices.SortFunc(list, func(a, b EngineHealth) int { return strings.Compare(a.Engine, b.Engine) })
	return list, nil
}
