package snapshot

import (
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Label returns the engine's value for a label; "region" is implicit.
func (e *Engine) Label(key string) string {
	if v, ok := e.Labels[key]; ok {
		return v
	}
	if key == "region" {
		return e.Region
	}
	return ""
}

// Admits says whether requests of the class may go to an engine: model,
// capabilities, context, residency. The error says what forbids it.
func (c *Class) Admits(e *Engine) error {
	if c.Model != "" && len(e.Models) > 0 && !slices.Contains(e.Models, c.Model) {
		return fmt.Errorf("it does not serve model %q", c.Model)
	}
	for _, capability := range c.Requires {
		if !slices.Contains(e.Capabilities, capability) {
			return fmt.Errorf("it lacks the capability %q", capability)
		}
	}
	if e.MaxContextTokens > 0 && c.MaxContextTokens > e.MaxContextTokens {
		return fmt.Errorf("its context of %g tokens is below the %g needed", e.MaxContextTokens, c.MaxContextTokens)
	}
	for _, label := range sortedKeys(c.Residency) {
		if !slices.Contains(c.Residency[label], e.Label(label)) {
			return fmt.Errorf("residency %s = %q excludes it: its %s is %q", label, c.Residency[label], label, e.Label(label))
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (c *checker) class(k *Class) {
	where := place{kind: "class", name: k.Name}
	c.name("class", k.Name)
	if c.classes[k.Name] != nil {
		c.errorf("%s: duplicate", where)
	}
	c.classes[k.Name] = k
	for _, label := range sortedKeys(k.Residency) {
		if len(k.Residency[label]) == 0 {
			c.errorf("%s: residency %s allows no value", where, label)
		}
	}
	c.atLeast0(where, "max_context_tokens", k.MaxContextTokens)
	c.guard(where.in("guard", ""), &k.Guard)
	c.match(where, &k.Match)
}

// guard checks what is set; 0 and nil are not.
func (c *checker) guard(where place, g *Guard) {
	if g.RetryAttempts != 0 {
		c.number(where, "retry_attempts", float64(g.RetryAttempts), 1, MaxRetryAttempts)
	}
	if g.RetryBudgetRatio != nil {
		c.number(where, "retry_budget_ratio", *g.RetryBudgetRatio, 0, 1)
	}
	if g.RetryBudgetFloor != nil {
		c.number(where, "retry_budget_floor", *g.RetryBudgetFloor, 0, MaxRetryBudgetFloor)
	}
	for _, timeout := range []struct {
		name    string
		ms, max float64
	}{
		{"ttft_timeout_ms", g.TTFTTimeoutMs, MaxTimeoutMs},
		{"idle_timeout_ms", g.IdleTimeoutMs, MaxTimeoutMs},
		{"total_timeout_ms", g.TotalTimeoutMs, MaxTotalTimeoutMs},
	} {
		if timeout.ms != 0 {
			c.number(where, timeout.name, timeout.ms, MinTimeoutMs, timeout.max)
		}
	}
}

func (c *checker) match(where place, m *Match) {
	if m.Path != "" && !strings.HasPrefix(m.Path, "/") {
		c.errorf("%s: path is %q, want a prefix that starts with \"/\"", where, m.Path)
	}
	for _, method := range m.Methods {
		if method == "" || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			c.errorf("%s: method is %q, want capital letters", where, method)
		}
	}
	for _, model := range m.Models {
		if model == "" || strings.Contains(strings.TrimSuffix(model, "*"), "*") {
			c.errorf("%s: model is %q, want a name, or a prefix and \"*\"", where, model)
		}
	}
	if slices.Contains(m.Identity, "") {
		c.errorf("%s: an empty identity", where)
	}
	if _, ok := m.Headers[""]; ok {
		c.errorf("%s: a header without a name", where)
	}
}

func (c *checker) engine(e *Engine) {
	where := place{kind: "engine", name: e.Name}
	c.name("engine", e.Name)
	c.name(where.String()+": region", e.Region)
	c.engines[e.Name] = e
	for i, endpoint := range e.Endpoints {
		if err := checkEndpoint(endpoint); err != nil {
			c.errorf("%s: endpoint %q: %w", where, endpoint, err)
		}
		if slices.Contains(e.Endpoints[:i], endpoint) {
			c.errorf("%s: endpoint %q is given twice", where, endpoint)
		}
	}
	for _, n := range []struct {
		name  string
		value float64
	}{
		{"max_context_tokens", e.MaxContextTokens},
		{"capacity_rps", e.CapacityRPS},
		{"limit_rps", e.LimitRPS},
		{"planned_rps", e.PlannedRPS},
		{"planned_reference_rps", e.PlannedRefRPS},
		{"utilization", e.Utilization},
		{"latency_ms", e.LatencyMs},
		{"price_ms", e.PriceMs},
		{"limit_price_ms", e.LimitPriceMs},
		{"price", e.Price},
		{"prefill_price", e.PrefillPrice},
		{"output_price", e.OutputPrice},
	} {
		c.atLeast0(where, n.name, n.value)
	}
	c.profile(where.in("profile", ""), &e.Profile)
}

// checkEndpoint demands the base URL of an HTTP server.
func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return err
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("want http:// or https://")
	case u.Hostname() == "":
		return fmt.Errorf("no host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("want no user, query or fragment")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("port is %s, want 1 to 65535", port)
		}
	}
	return nil
}

func (c *checker) profile(where place, p *Profile) {
	if !(p.PromptTokens > 0) {
		c.errorf("%s: prompt_tokens is %v, want > 0", where, p.PromptTokens)
	}
	c.atLeast0(where, "prompt_tokens", p.PromptTokens)
	c.atLeast0(where, "output_tokens", p.OutputTokens)
	c.atLeast0(where, "fit_error", p.FitError)
	c.curve(where, "ttft", p.TTFTV, p.TTFTMs)
	c.curve(where, "tbot", p.TBOTV, p.TBOTMs)
	if p.Queueing != "" {
		c.oneOf(where, "queueing", p.Queueing, "ps", "none")
		if len(p.TTFTMs) > 1 || len(p.TBOTMs) > 1 {
			c.errorf("%s: a formula has %d and %d values, want one each", where, len(p.TTFTMs), len(p.TBOTMs))
		}
	}
}

func (c *checker) curve(where place, name string, v, ms []float64) {
	if len(v) != len(ms) || len(v) == 0 {
		c.errorf("%s: %s has %d utilizations and %d times, want as many and at least one", where, name, len(v), len(ms))
		return
	}
	if v[0] != 0 {
		c.errorf("%s: %s_utilization starts at %v, want 0", where, name, v[0])
	}
	for i := range v {
		c.atLeast0(where, name+"_utilization", v[i])
		c.atLeast0(where, name+"_ms", ms[i])
		if i > 0 && !(v[i] > v[i-1]) {
			c.errorf("%s: %s_utilization %v after %v, want ascending", where, name, v[i], v[i-1])
		}
	}
}
