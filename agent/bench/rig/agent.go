package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Agent is a running irb-agent.
type Agent struct {
	*Process
	Address string // host:port where it takes requests

	status, debug string // host:port
	decisions     string // file
	client        *http.Client
}

// AgentOptions are what differs between agents.
type AgentOptions struct {
	Program    string // the irb-agent binary
	Agents     int    // how many share the plan
	EngineIdle time.Duration
	Sample     float64 // share of requests in the decision log
}

// StartAgent starts an agent on the plan and waits until it is ready, for which
// the plan must have been published.
func StartAgent(ctx context.Context, p *Plan, name string, o AgentOptions) (*Agent, error) {
	addresses, err := FreeAddresses(3)
	if err != nil {
		return nil, err
	}
	a := &Agent{
		Address: addresses[0], status: addresses[1], debug: addresses[2],
		decisions: filepath.Join(p.folder, name+".decisions.jsonl"),
		client:    &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second},
	}
	config, err := p.writeConfig(name, p.config(a, name, o))
	if err != nil {
		return nil, err
	}
	if a.Process, err = Start(p.folder, name, o.Program, "--config", config); err != nil {
		return nil, err
	}
	err = a.Until(ctx, "ready", func() bool {
		answer, err := a.client.Get("http://" + a.status + "/readyz")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	if err != nil {
		a.Kill()
		return nil, err
	}
	return a, nil
}

// servesEvery is how long Serves waits between two looks: the time that it takes
// is measured.
const servesEvery = 5 * time.Millisecond

// Serves waits until the agent serves by the snapshot of this sequence.
func (a *Agent) Serves(ctx context.Context, sequence int64) error {
	want := fmt.Sprintf(`"sequence":%d,`, sequence)
	return a.until(ctx, servesEvery, "on snapshot "+want, func() bool {
		return strings.Contains(get(a.client, "http://"+a.status+"/readyz"), want)
	})
}

// Metrics scrapes the agent. Every connection is closed afterwards.
func (a *Agent) Metrics() (Metrics, error) {
	answer, err := a.client.Get("http://" + a.status + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return families, nil
}

// Metrics are the families of one scrape.
type Metrics map[string]*dto.MetricFamily

// Sum returns the sum of a counter or gauge over the series that have all these
// labels, given as name, value, name, value.
func (m Metrics) Sum(name string, labels ...string) (sum float64) {
	for _, series := range m[name].GetMetric() {
		if hasLabels(series, labels) {
			sum += series.GetCounter().GetValue() + series.GetGauge().GetValue()
		}
	}
	return sum
}

func hasLabels(series *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		found := false
		for _, l := range series.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// Stacks returns the stacks of the agent's goroutines, grouped, for a report of
// what was left behind.
func (a *Agent) Stacks() string {
	return get(a.client, "http://"+a.debug+"/debug/pprof/goroutine?debug=1")
}

// Decision returns the lines of the agent's decision log about a request.
func (a *Agent) Decision(requestID string) string { return linesWith(a.decisions, `"`+requestID+`"`) }

// Logged returns the lines of the agent's log about a request.
func (a *Agent) Logged(requestID string) string { return linesWith(a.log, "="+requestID+" ") }

func linesWith(path, part string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	var found strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, part) {
			found.WriteString(line)
		}
	}
	return strings.TrimSpace(found.String())
}

func get(client *http.Client, url string) string {
	answer, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
