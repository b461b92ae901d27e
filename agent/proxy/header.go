package proxy

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/irb-project/irb/agent/signal"
)

// hopByHop says whether a header belongs to one connection (RFC 9110, 7.6.1) or
// frames a message: copying it to another connection, or to another version of
// HTTP, breaks the framing there.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Proxy-Authenticate", "Proxy-Authorization", "Http2-Settings":
		return true
	}
	return false
}

// internalPrefixes begin the names of headers that only gateways say to each
// other.
var internalPrefixes = []string{"X-Gateway-Destination-Endpoint", "X-Irb-"}

// loadReportPrefix begins the names of ORCA load reports, which tell how full
// an engine is and are for us, not for clients.
const loadReportPrefix = "Endpoint-Load-Metrics"

// reportFormat asks for the form of load report that costs least to read.
var reportFormat = []string{"TEXT"}

func isInternal(name string) bool {
	for _, p := range internalPrefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// ofGateways says whether a header of an answer is not for clients.
func ofGateways(name string) bool {
	return isInternal(name) || strings.HasPrefix(name, loadReportPrefix)
}

// connectionNames calls f for every header that the Connection header names.
func connectionNames(h http.Header, f func(name string)) {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			if name = strings.TrimSpace(name); name != "" {
				f(http.CanonicalHeaderKey(name))
			}
		}
	}
}

// requestHeader returns the header for the engine, a pooled one. Values are
// shared with the client's header, which nobody changes.
func (x *exchange) requestHeader() http.Header {
	in := x.request.Header
	out, ok := x.proxy.headers.Get().(http.Header)
	if !ok {
		out = make(http.Header, len(in)+6)
	}
	for name, values := range in {
		if hopByHop(name) || isInternal(name) {
			continue
		}
		out[name] = values
	}
	connectionNames(in, func(name string) { delete(out, name) })
	delete(out, "Content-Length") // the transport writes the one of the body it sends
	delete(out, "Expect")         // answered by us: the body is here already
	if x.listener.identityHeader != "" {
		delete(out, x.listener.identityHeader)
	}
	for _, te := range in["Te"] {
		if strings.Contains(strings.ToLower(te), "trailers") {
			out["Te"] = []string{"trailers"}
		}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = []string{""} // else the transport would name itself
	}
	x.setForwarded(out)
	x.setAuthorization(out)
	out["X-Request-Id"] = x.requestIDValue[:]
	out[signal.FormatHeader] = reportFormat // asked of engines for ourselves
	return out
}

// setForwarded tells the engine who asked. What the client itself says about
// that is believed of trusted proxies only.
func (x *exchange) setForwarded(h http.Header) {
	client := x.clientAddress()
	if x.trustedPeer {
		if before := h["X-Forwarded-For"]; len(before) > 0 {
			client = strings.Join(before, ", ") + ", " + client
		}
	} else {
		delete(h, "Forwarded")
		delete(h, "X-Forwarded-Host")
		delete(h, "X-Forwarded-Proto")
		delete(h, "X-Forwarded-Port")
		delete(h, "X-Real-Ip")
	}
	h["X-Forwarded-For"] = x.forwardedValue(0, client)
	if _, ok := h["X-Forwarded-Host"]; !ok {
		h["X-Forwarded-Host"] = x.forwardedValue(1, x.request.Host)
	}
	if _, ok := h["X-Forwarded-Proto"]; !ok {
		proto := "http"
		if x.request.TLS != nil {
			proto = "https"
		}
		h["X-Forwarded-Proto"] = x.forwardedValue(2, proto)
	}
}

// forwardedValue returns a value of the header for the engine in memory that the
// exchange has.
func (x *exchange) forwardedValue(i int, v string) []string {
	x.forwarded[i] = v
	return x.forwarded[i : i+1 : i+1]
}

// clientAddress is the address of the client without its port.
func (x *exchange) clientAddress() string {
	if address, _, ok := strings.Cut(x.request.RemoteAddr, ":"); ok && x.peer.Addr().Is4() {
		return address
	}
	return x.peer.Addr().Unmap().String()
}

func (x *exchange) setAuthorization(h http.Header) {
	switch {
	case x.proxy.token != nil:
		h["Authorization"] = []string{"Bearer " + x.proxy.token.get()}
	case !x.plan.forwardAuthorization:
		delete(h, "Authorization")
	}
}

// responseHeader copies the engine's header into the client's.
func (x *exchange) responseHeader(out, in http.Header) {
	for name, values := range in {
		if hopByHop(name) || ofGateways(name) {
			continue
		}
		out[name] = values
	}
	connectionNames(in, func(name string) { delete(out, name) })
	out["X-Request-Id"] = x.requestIDValue[:]
}

// validRequestID accepts ids that are safe to log and to send on.
func validRequestID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func peerAddr(remote string) netip.AddrPort {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.AddrPort{} // a listener that is no TCP one
	}
	return a
}
