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
	if !x.trustedPeer {
		return nil
	}
	x.believed = true
	if l.identityHeader == "" {
		return nil
	}
	switch names := r.Header[l.identityHeader]; len(names) {
	case 0:
	case 1:
		x.identity[0] = names[0]
	default:
		return &answer{
			status: http.StatusForbidden, kind: "permission_error", code: "ambiguous_identity",
			message: "the trusted proxy names more than one identity",
		}
	}
	return nil
}
