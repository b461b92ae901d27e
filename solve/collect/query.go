package collect

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/irb-project/irb/solve/model"
)

// The queries. "max by (..., instance)" counts an agent once that several jobs,
// or both servers of a pair, scrape.

func (p *Prometheus) selector(more string) string {
	return "{irb_fleet=" + strconv.Quote(p.fleet) + more + "}"
}

// offeredQuery is the demand of every source. What agents retry is counted
// once, what clients say they sent before not at all.
func (p *Prometheus) offeredQuery() string {
	return fmt.Sprintf("sum by (irb_cluster, class) (max by (irb_cluster, class, instance) (rate(irb_requests_offered_total%s[%s])))",
		p.selector(`,attempt="first"`), seconds(p.Window))
}

// tokensQuery is what a counter of tokens or of their reports grew by.
func (p *Prometheus) tokensQuery(name string, over time.Duration) string {
	by := "irb_cluster, class, kind, source"
	return fmt.Sprintf("sum by (%s) (max by (%s, instance) (increase(%s%s[%s])))", by, by, name, p.selector(""), seconds(over))
}

func (p *Prometheus) keysQuery(name string, w keyWindow) string {
	return fmt.Sprintf("sum by (irb_cluster, class) (max by (irb_cluster, class, instance) (increase(%s%s[%s])))",
		name, p.selector(",window="+strconv.Quote(w.label)), seconds(12*w.length))
}

func (p *Prometheus) rttQuery() string {
	return fmt.Sprintf("quantile by (irb_cluster, engine) (0.5, quantile_over_time(0.5, irb_engine_rtt_seconds%s[1h]))", p.selector(""))
}

// A replica is up if it was at any time of the window: one scrape that failed
// is no lost replica.
func (p *Prometheus) reachQuery() string {
	return fmt.Sprintf("max by (engine, endpoint) (max_over_time(irb_endpoint_up%s[%s]))", p.selector(""), seconds(p.Window))
}

func (p *Prometheus) upQuery(hosts []string) string {
	quoted := make([]string, len(hosts))
	for i, h := range hosts {
		quoted[i] = regexp.QuoteMeta(h)
	}
	return fmt.Sprintf("max by (instance) (max_over_time(up{instance=~%s}[%s]))", strconv.Quote(strings.Join(quoted, "|")), seconds(p.Window))
}

// agentsQuery counts the agents that are scraped now, or were in the last hour.
func (p *Prometheus) agentsQuery(lately bool) string {
	series := "irb_requests_offered_total" + p.selector("")
	if lately {
		series = "count_over_time(" + series + "[1h])"
	}
	return fmt.Sprintf("count by (irb_cluster) (count by (irb_cluster, instance) (%s))", series)
}

// twiceQuery finds agents that are scraped more than once.
func (p *Prometheus) twiceQuery() string {
	return fmt.Sprintf(`count by (irb_cluster) (count by (irb_cluster, instance, class) (irb_requests_offered_total%s) > 1)`, p.selector(`,attempt="first"`))
}

func seconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

// keyWindow is one of the windows in which agents count keys.
type keyWindow struct {
	label  string
	length time.Duration
}

var keyWindowLengths = [...]keyWindow{{"5m", 5 * time.Minute}, {"15m", 15 * time.Minute}, {"1h", time.Hour}}

// keyWindowFor returns the longest window that is not longer than the time
// between two runs.
func keyWindowFor(every time.Duration) keyWindow {
	best := keyWindowLengths[0]
	for _, w := range keyWindowLengths {
		if w.length <= every {
			best = w
		}
	}
	return best
}

// hostsOf returns the instance labels that scrapes of the fleet's endpoints
// have, and what each is of.
func hostsOf(fleet *model.Fleet) (hosts []string, engines map[string][]string) {
	engines = map[string][]string{}
	for _, e := range fleet.Engines {
		for _, endpoint := range e.Endpoints {
			host := hostPort(endpoint)
			if engines[host] == nil {
				hosts = append(hosts, host)
			}
			engines[host] = append(engines[host], e.Name)
		}
	}
	return hosts, engines
}
