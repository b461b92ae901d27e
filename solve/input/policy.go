package input

import (
	"fmt"
	"strings"

	"github.com/irb-project/irb/solve/model"
)

// Defaults of policy.toml.
const (
	defaultFleet           = "default"
	defaultClass           = "default"
	defaultMaxUtilization  = 0.9
	defaultOutputTokenWork = 4
	defaultRoundTrips      = 1
	defaultFailureDomain   = "region"
)

// policy is a policy and where its parts were said.
type policy struct {
	model.Policy
	root                   *lines
	classAt, ruleAt, capAt []*lines
}

// defaultPolicy is the policy without a file: one class that matches all.
func defaultPolicy() *policy {
	return &policy{
		Policy: model.Policy{
			Fleet:           defaultFleet,
			MaxUtilization:  defaultMaxUtilization,
			OutputTokenWork: defaultOutputTokenWork,
			RoundTrips:      defaultRoundTrips,
			Work:            model.WorkAuto,
			FailureDomain:   defaultFailureDomain,
			Classes:         []model.Class{{Name: defaultClass}},
		},
		root:    &lines{},
		classAt: []*lines{{}},
	}
}

// readPolicy reads policy.toml, nil if it is no TOML.
func readPolicy(f *file) *policy {
	root := parseTOML(f)
	if root == nil {
		return nil
	}
	p := defaultPolicy()
	p.root = root.at
	if fleet := root.name("fleet"); fleet != "" {
		p.Fleet = fleet
	}
	p.MaxUtilization = root.number("max_utilization", fractionPos, defaultMaxUtilization)
	p.OutputTokenWork = root.number("output_token_work", positive, defaultOutputTokenWork)
	p.RoundTrips = root.number("round_trips", notNegative, defaultRoundTrips)
	p.Reference = readReference(root.sub("reference"))
	p.Work = model.WorkKind(root.oneOf("work", string(model.WorkAuto), string(model.WorkSingle), string(model.WorkSplit)))
	p.Shed = root.oneOf("shed", "forbid", "allow") == "allow"
	if domain := root.name("failure_domain"); domain != "" {
		p.FailureDomain = domain
	}
	p.TTFTLimitMs = root.number("ttft_limit_ms", positive, 0)
	p.TBOTLimitMs = root.number(root.spelling("tbot_limit_ms", "tpot_limit_ms", "itl_limit_ms"), positive, 0)
	p.CachePenaltyMs = root.optional("cache_penalty_ms", notNegative)
	p.readClasses(root.subs("class"))
	for i, t := range root.subs("rule") {
		p.Rules = append(p.Rules, readRule(t, fmt.Sprintf("rule %d (%s:%d)", i+1, f.file, t.at.line)))
		p.ruleAt = append(p.ruleAt, t.at)
	}
	for i, t := range root.subs("cap") {
		p.Caps = append(p.Caps, readCap(t, fmt.Sprintf("cap %d (%s:%d)", i+1, f.file, t.at.line)))
		p.capAt = append(p.capAt, t.at)
	}
	root.done()
	return p
}

func readReference(t *table) *model.Tokens {
	if t == nil {
		return nil
	}
	reference := model.Tokens{
		Prompt: t.number("prompt_tokens", positive, 1),
		Output: t.number("output_tokens", positive, 1),
	}
	t.need("prompt_tokens", "output_tokens")
	t.done()
	return &reference
}

func (p *policy) readClasses(tables []*table) {
	if len(tables) == 0 {
		return // the default class stays
	}
	p.Classes, p.classAt = nil, nil
	for _, t := range tables {
		p.Classes = append(p.Classes, readClass(t))
		p.classAt = append(p.classAt, t.at)
	}
}

func readClass(t *table) model.Class {
	var c model.Class
	if c.Name = t.name("name"); c.Name != "" {
		t.what = "class " + quote(c.Name)
	}
	c.Model = t.str("model", validText, "the id of a model")
	c.Priority = t.integer("priority")
	c.Residency = readResidency(t.sub("residency"))
	c.Requires = t.list("requires", validName, "a name: "+wantName)
	c.ContextTokens = t.number("context_tokens", positive, 0)
	c.MaxShare = t.number("max_share", fractionPos, 0)
	c.MaxDomainShare = t.number("max_domain_share", fractionPos, 0)
	c.CachePenaltyMs = t.optional("cache_penalty_ms", notNegative)
	c.Guard = readGuard(t.sub("guard"))
	c.Match = readMatch(t.sub("match"))
	if c.Match.Models == nil && c.Model != "" {
		// Engines of this class serve this model only, so a request for
		// another one is not of this class.
		c.Match.Models = []string{c.Model}
	}
	t.need("name")
	t.done()
	return c
}

func readResidency(t *table) map[string][]string {
	if t == nil {
		return nil
	}
	residency := make(map[string][]string, len(t.values))
	for _, label := range sorted(t.values) {
		if !validName(label) {
			t.report.problemf(t.line(label), "residency has the label %s, want a name: %s", quote(label), wantName)
		}
		values := t.oneOrList(label, validText, "the value of a label")
		if values != nil && len(values) == 0 {
			t.report.problemf(t.line(label), "residency %s is empty, want at least one value; it would allow no engine", label)
		}
		residency[label] = values
	}
	return residency
}

// The bounds of what a class may say to the guards of agents, which are those
// of the settings that agent.toml has for the same.
var (
	attemptsBounds = bounds{lo: 1, hi: 10, want: "a whole number in [1, 10]"}
	floorBounds    = bounds{hi: 1000, want: "a number of retries/s in [0, 1000]"}
	timeoutBounds  = bounds{lo: 10, hi: 3600e3, want: "a time in ms in [10, 3600000], an hour"}
	totalBounds    = bounds{lo: 10, hi: 24 * 3600e3, want: "a time in ms in [10, 86400000], a day"}
)

func readGuard(t *table) model.Guard {
	var g model.Guard
	if t == nil {
		return g
	}
	attempts := t.number("retry_attempts", attemptsBounds, 0)
	if g.RetryAttempts = int(attempts); float64(g.RetryAttempts) != attempts {
		t.bad("retry_attempts", attempts, attemptsBounds.want)
	}
	g.RetryBudgetRatio = t.optional("retry_budget_ratio", fraction)
	g.RetryBudgetFloor = t.optional("retry_budget_floor", floorBounds)
	g.TTFTTimeoutMs = t.number("ttft_timeout_ms", timeoutBounds, 0)
	g.IdleTimeoutMs = t.number("idle_timeout_ms", timeoutBounds, 0)
	g.TotalTimeoutMs = t.number("total_timeout_ms", totalBounds, 0)
	if g.TotalTimeoutMs > 0 && g.TTFTTimeoutMs > g.TotalTimeoutMs {
		t.report.problemf(t.line("ttft_timeout_ms"), "ttft_timeout_ms is %s, want at most total_timeout_ms, %s", number(g.TTFTTimeoutMs), number(g.TotalTimeoutMs))
	}
	t.done()
	return g
}

func readMatch(t *table) model.Match {
	var m model.Match
	if t == nil {
		return m
	}
	m.Path = t.str("path", func(s string) bool { return strings.HasPrefix(s, "/") && validText(s) }, `a prefix that starts with "/"`)
	for _, method := range t.oneOrList("method", validToken, "an HTTP method") {
		m.Methods = append(m.Methods, strings.ToUpper(method))
	}
	m.Models = t.oneOrList("model", validModelPattern, `the id of a model, or a prefix of it that ends in "*"`)
	m.Identity = t.oneOrList("identity", validText, "the name of an identity")
	m.Headers = readHeaders(t.sub("headers"))
	t.done()
	return m
}

// readHeaders returns headers by their name in lower case.
func readHeaders(t *table) map[string]string {
	if t == nil {
		return nil
	}
	headers := make(map[string]string, len(t.values))
	for _, key := range sorted(t.values) {
		name := strings.ToLower(key)
		if !validToken(key) {
			t.report.problemf(t.line(key), "headers has %s, want the name of an HTTP header", quote(key))
		}
		if _, twice := headers[name]; twice {
			t.report.problemf(t.line(key), "header %s is there twice, case does not matter", quote(name))
		}
		headers[name] = t.str(key, validText, "a string of one line, not empty")
	}
	return headers
}

// validToken says whether s is a token of HTTP (RFC 9110, 5.6.2), as methods
// and the names of headers are.
func validToken(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(s[i])) {
			return false
		}
	}
	return s != ""
}

func validModelPattern(s string) bool {
	return validText(s) && !strings.Contains(s[:len(s)-1], "*")
}

func readRule(t *table, name string) model.Rule {
	r := model.Rule{Name: name}
	t.what = "rule"
	r.Cluster = t.name("cluster")
	r.Class = t.name("class")
	r.Engine = t.name("engine")
	r.Region = t.name("region")
	r.Forbid = t.boolean("forbid")
	r.MinShare = t.optional("min_share", fraction)
	r.MaxShare = t.optional("max_share", fraction)
	t.exactlyOne("engine", "region")
	t.exactlyOne("forbid", "min_share", "max_share")
	if t.has("forbid") && !r.Forbid && t.values["forbid"] == false {
		t.bad("forbid", false, "true, or no rule")
	}
	t.done()
	return r
}

func readCap(t *table, name string) model.Cap {
	c := model.Cap{Name: name}
	t.what = "cap"
	c.Engine = t.name("engine")
	c.Region = t.name("region")
	c.MaxRPS = t.number("max_rps", notNegative, 0)
	t.exactlyOne("engine", "region")
	t.need("max_rps")
	t.done()
	return c
}

// exactlyOne reports if none or several of keys are there.
func (t *table) exactlyOne(keys ...string) {
	var found []string
	for _, key := range keys {
		if t.has(key) {
			found = append(found, key)
		}
	}
	switch want := strings.Join(keys, ", "); {
	case len(found) == 0:
		t.report.problemf(t.at.line, "%s has none of %s, want one", t.what, want)
	case len(found) > 1:
		t.report.problemf(t.at.line, "%s has %s, want one of %s", t.what, strings.Join(found, " and "), want)
	}
}
