package proxy

import (
	"net/http"
	"net/netip"

	"github.com/irb-project/irb/agent/config"
)

// listener is what a listener says about those who come through it.
type listener struct {
	identity       string
	identityHeader string // canonical; "" none
	trustedProxies []netip.Prefix
	clientCerts    bool
}

func newListener(l config.Listener) *listener {
	return &listener{
		identity:       l.Identity,
		identityHeader: http.CanonicalHeaderKey(l.IdentityHeader),
		trustedProxies: l.TrustedProxies,
		clientCerts:    l.ClientCAFile != "",
	}
}

func (l *listener) trusts(a netip.Addr) bool {
	a = a.Unmap()
	for _, p := range l.trustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// identify finds out who asks, from what the caller cannot make up: what a
// trusted proxy says, else the client certificate, else the listener. Two names
// from a proxy are a doubt, and in doubt nobody gets in.
func (x *exchange) identify() *answer {
	r, l := x.request, x.listener
	x.peer = peerAddr(r.RemoteAddr)
	x.trustedPeer = l.trusts(x.peer.Addr())
	x.identity[0] = l.identity
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		x.identity[0] = certificateIdentity(r.TLS.VerifiedChains[0][0])
		x.believed = true
	}
	x.believed = x.believed || x.trustedPeer
	if refusal := x.checkTrustedHeaders(); refusal != nil || !x.trustedPeer {
		return refusal
	}
	if l.identityHeader == "" {
		return nil
	}
	switch names := r.Header[l.identityHeader]; len(names) {
	case 0:
	case 1:
		x.identity[0] = names[0]
	default:
		return ambiguous("identity", "the trusted proxy names more than one identity")
	}
	return nil
}

// checkTrustedHeaders refuses two values of a header that decides on the class:
// by which of them is not known, and the class that neither leads to may be one
// with less strict rules.
func (x *exchange) checkTrustedHeaders() *answer {
	if !x.believed {
		return nil // they decide nothing
	}
	for _, name := range x.plan.trustedHeaders {
		if len(x.request.Header[name]) > 1 {
			return ambiguous("header", "the header "+name+" has more than one value")
		}
	}
	return nil
}

func ambiguous(what, message string) *answer {
	return &answer{status: http.StatusForbidden, kind: "permission_error", code: "ambiguous_" + what, message: message}
}
