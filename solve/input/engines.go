package input

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

// engineRow is an engine and where it was said.
type engineRow struct {
	model.Engine
	at *lines
}

// profileRow is a profile whose reference request may still be the policy's.
type profileRow struct {
	profile.Spec
	at        *lines
	hasTokens bool // it says its reference request itself
}

// readEngines reads engines.toml.
func readEngines(f *file) ([]engineRow, []profileRow) {
	root := parseTOML(f)
	if root == nil {
		return nil, nil
	}
	var profiles []profileRow
	if all := root.sub("profile"); all != nil {
		for _, name := range sorted(all.values) {
			if t := all.sub(name); t != nil {
				profiles = append(profiles, readProfile(t, name))
			}
		}
	}
	var engines []engineRow
	for _, t := range root.subs("engine") {
		engines = append(engines, readEngine(t))
	}
	root.done()
	if len(engines) == 0 && f.ok() {
		f.problemf(0, "has no engines")
	}
	return engines, profiles
}

func readProfile(t *table, name string) profileRow {
	if !validName(name) {
		t.report.problemf(t.at.line, "profile is %s, want a name: %s", quote(name), wantName)
	}
	t.what = "profile " + quote(name)
	p := profileRow{at: t.at}
	p.Name = name
	p.PromptTokens = t.number("prompt_tokens", positive, 0)
	p.OutputTokens = t.number("output_tokens", positive, 0)
	p.hasTokens = t.has("prompt_tokens") && t.has("output_tokens")
	p.AcceptErrorAbove25 = t.boolean("accept_error_above_25")
	tbot := t.spelling("tbot_ms", "tpot_ms", "itl_ms")
	t.need("ttft_ms", tbot)
	table, formula := t.has("utilization"), t.has("queueing")
	switch {
	case table && formula:
		t.report.problemf(t.line("queueing"), "%s has both utilization (a table) and queueing (a formula), want one", t.what)
	case table:
		p.Utilization = t.utilization()
		p.TTFTMs = t.curve("ttft_ms", len(p.Utilization))
		p.TBOTMs = t.curve(tbot, len(p.Utilization))
	case formula:
		p.Queueing = t.oneOf("queueing", "none", "ps")
		p.TTFTMs = []float64{t.number("ttft_ms", positive, 1)}
		p.TBOTMs = []float64{t.number(tbot, positive, 1)}
	default:
		t.report.problemf(t.at.line, `%s has neither utilization (a table) nor queueing = "ps" or "none" (a formula)`, t.what)
	}
	t.done()
	return p
}

// spelling returns the spelling of a key that the table uses, the first if
// none, and reports a second one.
func (t *table) spelling(keys ...string) string {
	used := ""
	for _, key := range keys {
		switch {
		case !t.has(key):
		case used == "":
			used = key
		default:
			t.report.problemf(t.line(key), "%s says the same as %s, want one of them", key, used)
		}
	}
	if used == "" {
		return keys[0]
	}
	return used
}

// utilization reads the first column of a profile table.
func (t *table) utilization() []float64 {
	v := t.numbers("utilization", notNegative)
	if v == nil {
		return nil
	}
	at := t.at.key("utilization")
	if len(v) == 0 {
		t.report.problemf(at.line, "utilization is empty, want a list that starts at 0")
		return nil
	}
	if v[0] != 0 {
		t.report.problemf(at.element(0).line, "utilization starts at %s, want 0", number(v[0]))
	}
	for i := 1; i < len(v); i++ {
		if v[i] <= v[i-1] {
			t.report.problemf(at.element(i).line, "utilization[%d] is %s after %s, want it to increase", i, number(v[i]), number(v[i-1]))
		}
	}
	return v
}

// curve reads a column of a profile table; n is the number of its points.
func (t *table) curve(key string, n int) []float64 {
	v := t.numbers(key, positive)
	if v != nil && n > 0 && len(v) != n {
		t.report.problemf(t.line(key), "%s has %d values, want %d as utilization has", key, len(v), n)
	}
	return v
}

func readEngine(t *table) engineRow {
	e := engineRow{at: t.at}
	if e.Name = t.name("name"); e.Name != "" {
		t.what = "engine " + quote(e.Name)
	}
	e.Region = t.name("region")
	e.Endpoints = t.endpoints()
	e.InternalAffinity = t.boolean("internal_affinity")
	e.Models = t.list("models", validText, "the id of a model")
	e.MaxContextTokens = t.number("max_context_tokens", positive, 0)
	e.Capabilities = t.list("capabilities", validName, "a name: "+wantName)
	e.Profile = t.name("profile")
	e.CapacityRPS = t.number("capacity_rps", notNegative, 0)
	e.Health = t.number("health", fraction, 1)
	e.MaxUtilization = t.number("max_utilization", fractionPos, 0)
	e.TTFTLimitMs = t.number("ttft_limit_ms", positive, 0)
	e.TBOTLimitMs = t.number(t.spelling("tbot_limit_ms", "tpot_limit_ms", "itl_limit_ms"), positive, 0)
	e.Labels = t.labels(e.Region)
	t.need("name", "region", "endpoints", "profile", "capacity_rps")
	t.done()
	return e
}

// labels reads the labels of an engine; region is one without being said.
func (t *table) labels(region string) map[string]string {
	sub := t.sub("labels")
	if sub == nil {
		return nil
	}
	labels := make(map[string]string, len(sub.values))
	for _, key := range sorted(sub.values) {
		if !validName(key) {
			t.report.problemf(sub.line(key), "label is %s, want a name: %s", quote(key), wantName)
		}
		labels[key] = sub.str(key, validText, "a string of one line, not empty")
	}
	if v, ok := labels["region"]; ok && v != region {
		t.report.problemf(sub.line("region"), "label region is %s, want the engine's region %s, or leave it out", quote(v), quote(region))
	}
	return labels
}

// endpoints reads the addresses of an engine as scheme://host:port.
func (t *table) endpoints() []string {
	written := t.list("endpoints", func(string) bool { return true }, "a URL")
	if t.has("endpoints") && written != nil && len(written) == 0 {
		t.report.problemf(t.line("endpoints"), "endpoints is empty, want at least one URL")
	}
	seen := make(map[string]bool, len(written))
	endpoints := make([]string, 0, len(written))
	for i, s := range written {
		line := t.at.key("endpoints").element(i).line
		endpoint, err := normalEndpoint(s)
		switch {
		case err != nil:
			t.report.problemf(line, "endpoint %s %s", quote(s), err)
		case seen[endpoint]:
			t.report.problemf(line, "endpoint %s is there twice", quote(s))
		default:
			seen[endpoint] = true
			endpoints = append(endpoints, endpoint)
		}
	}
	return endpoints
}

// normalEndpoint returns an engine's address as scheme://host or
// scheme://host:port in lower case. The agent appends the path of the request,
// so an endpoint has none.
func normalEndpoint(s string) (string, error) {
	const want = "want http://host:port or https://host:port"
	u, err := url.Parse(s)
	if err != nil {
		return "", fmt.Errorf("is no URL, %s", want)
	}
	port := u.Port()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("has scheme %q, %s", u.Scheme, want)
	case u.Hostname() == "":
		return "", fmt.Errorf("has no host, %s", want)
	case !validHost(u.Hostname()):
		return "", fmt.Errorf("has the host %q, which is no IP address and no DNS name, %s", u.Hostname(), want)
	case u.User != nil:
		return "", fmt.Errorf("has a user name, %s; credentials belong to the agent", want)
	case u.Path != "" && u.Path != "/":
		return "", fmt.Errorf("has the path %q, %s; the path is the request's", u.Path, want)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("has a query or fragment, %s", want)
	case strings.HasSuffix(u.Host, ":"):
		return "", fmt.Errorf("has an empty port, %s", want)
	}
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return "", fmt.Errorf("has port %s, want 1 to 65535", port)
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	for i := range len(host) {
		if c := host[i]; !isAlnum(c) && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return host != ""
}

// hidesReplicas says whether an engine's one address may stand for several
// replicas: it is a name, not an IP address, and internal affinity is not
// declared. Whoever connects to such a name scatters conversations over the
// caches behind it. One IP address is taken to be one replica.
func (e *engineRow) hidesReplicas() bool {
	if len(e.Endpoints) != 1 || e.InternalAffinity {
		return false
	}
	u, err := url.Parse(e.Endpoints[0])
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err != nil && u.Hostname() != "localhost"
}
