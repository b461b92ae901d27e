package config

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// nameForm is the form of names in the snapshot; a blank may not end one.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}$`)

// hostForm is a DNS name.
var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9.])?$`)

// headerForm is a token of RFC 9110, without the marks that nobody uses.
var headerForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkMeaning checks what no single row of the table can.
func (p *parser) checkMeaning() {
	c := p.config
	p.checkName("fleet", c.Fleet)
	p.checkName("cluster", c.Cluster)
	for _, n := range c.Drain {
		p.checkName("drain", n)
	}
	for _, n := range c.Hold {
		p.checkName("hold", n)
	}
	if len(c.TrustedKeys) == 0 && len(c.TrustedKeyFiles) == 0 {
		p.fail(p.line("trusted_keys"), "trusted_keys and trusted_key_files are empty, want at least one key")
	}
	p.checkHeader("affinity_header", c.AffinityHeader)
	for _, h := range c.TrustedHeaders {
		p.checkHeader("trusted_headers", h)
	}
	if n := c.AgentsName; n != "" && !hostForm.MatchString(n) {
		p.fail(p.line("agents_name"), "agents_name is %q, want a DNS name without a port", n)
	}
	p.checkAddress("status_listen", c.StatusListen)
	p.checkDebug(c.DebugListen)
	if c.Body.Replay > c.Body.MaxRequest {
		p.fail(p.line("body.replay"), "body.replay is above body.max_request")
	}
	if c.Body.MaxRequest > c.Body.MaxAgent {
		p.fail(p.line("body.max_request"), "body.max_request is above body.max_agent")
	}
	p.checkPair("engine.client_cert_file", c.Engine.ClientCertFile, "engine.client_key_file", c.Engine.ClientKeyFile)
	p.checkListeners()
	p.checkBelief()
}

// checkBelief: a header that any client can set must not choose a class, so
// trusted headers need somebody to be trusted.
func (p *parser) checkBelief() {
	if len(p.config.TrustedHeaders) == 0 {
		return
	}
	for _, l := range p.config.Listeners {
		if len(l.TrustedProxies) > 0 || l.ClientCAFile != "" {
			return
		}
	}
	p.fail(p.line("trusted_headers"), "trusted_headers needs a listener with trusted_proxies or client_ca_file: they are believed of nobody else")
}

func (p *parser) checkListeners() {
	seen := map[string]string{}
	if a := p.config.StatusListen; a != "" {
		seen[a] = "status_listen"
	}
	if a := p.config.DebugListen; a != "" {
		seen[a] = "debug_listen"
	}
	for i, l := range p.config.Listeners {
		at := func(key string) string { return "listener[" + strconv.Itoa(i) + "]." + key }
		p.checkAddress(at("address"), l.Address)
		if first, ok := seen[l.Address]; ok && l.Address != "" && !strings.HasSuffix(l.Address, ":0") {
			p.fail(p.line(at("address")), "%s is %q, which %s has already", at("address"), l.Address, first)
		}
		seen[l.Address] = at("address")
		p.checkPair(at("tls_cert_file"), l.TLSCertFile, at("tls_key_file"), l.TLSKeyFile)
		if l.ClientCAFile != "" && l.TLSCertFile == "" {
			p.fail(p.line(at("client_ca_file")), "%s needs tls_cert_file", at("client_ca_file"))
		}
		p.checkHeader(at("identity_header"), l.IdentityHeader)
		if l.IdentityHeader != "" && len(l.TrustedProxies) == 0 {
			p.fail(p.line(at("identity_header")), "%s needs trusted_proxies: a header that any client can set is no identity", at("identity_header"))
		}
	}
}

func (p *parser) checkName(key, name string) {
	if name != "" && (!nameForm.MatchString(name) || strings.HasSuffix(name, " ")) {
		p.fail(p.line(key), "%s is %q, want a name of letters, digits, blanks, '.', '_', '-', at most 63, without a blank at the end", key, name)
	}
}

func (p *parser) checkHeader(key, name string) {
	if name != "" && !headerForm.MatchString(name) {
		p.fail(p.line(key), "%s is %q, want the name of a header", key, name)
	}
}

func (p *parser) checkAddress(key, address string) {
	if address == "" {
		return
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		p.fail(p.line(key), "%s is %q, want host:port", key, address)
	}
}

// checkDebug: pprof and the routing table are for those who are on the machine.
func (p *parser) checkDebug(address string) {
	if address == "" || strings.HasPrefix(address, "unix:") {
		return
	}
	host, _, err := net.SplitHostPort(address)
	addr, parseErr := netip.ParseAddr(host)
	if err != nil || host != "localhost" && (parseErr != nil || !addr.IsLoopback()) {
		p.fail(p.line("debug_listen"), "debug_listen is %q, want a loopback address or unix:PATH", address)
	}
}

func (p *parser) checkPair(key1, value1, key2, value2 string) {
	switch {
	case value1 != "" && value2 == "":
		p.fail(p.line(key1), "%s needs %s", key1, key2)
	case value1 == "" && value2 != "":
		p.fail(p.line(key2), "%s needs %s", key2, key1)
	}
}
