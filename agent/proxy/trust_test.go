package proxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
)

// byIdentity is a fleet whose class "eu" is for identity eu-gateway, class
// "gold" for the header x-tier: gold, class "chat" for the rest.
func byIdentity(t testing.TB) *snapshot.Snapshot {
	eu, gold, rest := engine(t, answerJSON("eu")), engine(t, answerJSON("gold")), engine(t, answerJSON("rest"))
	s := fleet(named("rest", rest))
	s.Engines = append(s.Engines, named("eu", eu), named("gold", gold))
	s.Classes = []snapshot.Class{
		{Name: "eu", Match: snapshot.Match{Identity: []string{"eu-gateway"}}},
		{Name: "gold", Match: snapshot.Match{Headers: map[string]string{"x-tier": "gold"}}},
		s.Classes[0],
	}
	for _, name := range []string{"eu", "gold"} {
		s.Sources = append(s.Sources, snapshot.Source{Cluster: "here", Class: name, LayoutFrom: []uint32{0}, LayoutTo: []string{name}})
	}
	return s
}

func TestIdentity(t *testing.T) {
	for _, test := range []struct {
		name, listener string
		header         []string
		status         int
		want           string
	}{
		{"a header anybody can set is nothing", "", []string{"x-who", "eu-gateway"}, 200, "rest"},
		{"the listener's", "identity = \"eu-gateway\"\n", nil, 200, `"eu"`},
		{"a trusted proxy's word", "trusted_proxies = [\"127.0.0.1\"]\nidentity_header = \"x-who\"\n", []string{"x-who", "eu-gateway"}, 200, `"eu"`},
		{"above the listener's", "identity = \"eu-gateway\"\ntrusted_proxies = [\"127.0.0.1\"]\nidentity_header = \"x-who\"\n", []string{"x-who", "us"}, 200, "rest"},
		{"another's word", "trusted_proxies = [\"10.0.0.0/8\"]\nidentity_header = \"x-who\"\n", []string{"x-who", "eu-gateway"}, 200, "rest"},
		{"two words", "trusted_proxies = [\"127.0.0.1\"]\nidentity_header = \"x-who\"\n", []string{"x-who", "eu-gateway", "x-who", "us"}, 403, "ambiguous_identity"},
		{"a trusted header of a trusted proxy", "trusted_proxies = [\"127.0.0.1\"]\n", []string{"x-tier", "gold"}, 200, "gold"},
		{"a trusted header of another", "trusted_proxies = [\"10.0.0.0/8\"]\n", []string{"x-tier", "gold"}, 200, "rest"},
		{"said twice", "trusted_proxies = [\"127.0.0.1\"]\n", []string{"x-tier", "gold", "x-tier", "silver"}, 403, "ambiguous_header"},
		{"said twice by another", "trusted_proxies = [\"10.0.0.0/8\"]\n", []string{"x-tier", "gold", "x-tier", "silver"}, 200, "rest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := testConfig + test.listener
			if strings.Contains(test.listener, "trusted_proxies") {
				text = "trusted_headers = [\"x-tier\"]\n" + text
			}
			r := startWith(t, byIdentity(t), text, nil)
			expect(t, r.post(chatBody, test.header...), test.status, test.want)
		})
	}
}

// TestIdentityHeaderIsRemoved: what one proxy says to us is not for engines.
func TestIdentityHeaderIsRemoved(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header["X-Who"], r.Header["X-Forwarded-For"])
	})
	r := start(t, fleet(named("a", e)), "trusted_proxies = [\"127.0.0.1\"]\nidentity_header = \"x-who\"\n")
	expect(t, r.post(chatBody, "X-Who", "me", "X-Forwarded-For", "8.8.8.8"), 200, "[] [8.8.8.8, 127.0.0.1]")
}

func TestNoClass(t *testing.T) {
	s := byIdentity(t)
	s.Classes[2].Model = "chat-large"
	r := start(t, s, "")
	expect(t, r.post(`{"model":"chat-lrage"}`), 404,
		`no traffic class takes POST /v1/chat/completions for model \"chat-lrage\"; the classes are: eu; gold; chat (model chat-large)`)
	expect(t, r.post(`{}`), 404, "without a model")
	s = byIdentity(t)
	s.Sources = s.Sources[1:]
	r.publish(s)
	expect(t, r.post(chatBody), 503, `class \"chat\" has no weights in cluster \"here\"`)
}

func TestKeyScopes(t *testing.T) {
	s := fleet(named("a", engine(t, answerJSON("a"))))
	r := startWith(t, s, "affinity_header = \"x-session-id\"\n"+testConfig, nil)
	key := func(identity, header, body string) uint64 {
		x := &exchange{plan: r.proxy.plan.Load(), proxy: r.proxy, request: httptest.NewRequest("POST", "/v1/x", strings.NewReader(body))}
		x.request.ContentLength = int64(len(body))
		x.control = *http.NewResponseController(httptest.NewRecorder())
		x.identity[0] = identity
		if header != "" {
			x.request.Header.Set("X-Session-Id", header)
		}
		x.listener = &listener{}
		if a := x.intake(); a != nil {
			t.Fatal(a.message)
		}
		if a := x.classify(); a != nil {
			t.Fatal(a.message)
		}
		x.setKey()
		return x.key
	}
	same := []uint64{key("i", "s", `{"model":"m"}`), key("i", "s", `{"model":"n","prompt_cache_key":"other"}`)}
	if same[0] != same[1] {
		t.Error("one session has two keys")
	}
	others := []uint64{key("j", "s", chatBody), key("i", "t", chatBody), key("i", "", chatBody), key("i", "", `{"prompt_cache_key":"s"}`)}
	seen := map[uint64]bool{same[0]: true}
	for i, k := range others[:3] {
		if seen[k] {
			t.Errorf("key %d is that of another tenant or session", i)
		}
		seen[k] = true
	}
	if others[3] != same[0] {
		t.Error("a session named by header and by prompt_cache_key has two keys")
	}
	if one, two := key("i", "", `{}`), key("i", "", `{}`); one == two {
		t.Error("requests without a key share one")
	}
}

// authority makes certificates for tests.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.cert = a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, &a.key.PublicKey)
	a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *authority) sign(c, parent *x509.Certificate, public any) *x509.Certificate {
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return signed
}

func (a *authority) write(name, kind string, der []byte) string {
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue writes NAME.pem and NAME.key for a name and loopback.
func (a *authority) issue(name string, serial int64) (cert, key string) {
	private, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	spiffe, _ := url.Parse("spiffe://" + name)
	c := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, URIs: []*url.URL{spiffe},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, &private.PublicKey)
	der, _ := x509.MarshalECPrivateKey(private)
	return a.write(name+".pem", "CERTIFICATE", c.Raw), a.write(name+".key", "EC PRIVATE KEY", der)
}

func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// TestListenerTLS: HTTP/2 over TLS, client certificates as identity, and a
// certificate that is rotated while the agent runs.
func TestListenerTLS(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("agent", 2)
	s := byIdentity(t)
	s.Classes[0].Match.Identity = []string{"spiffe://client"}
	r := start(t, s, fmt.Sprintf("tls_cert_file = %q\ntls_key_file = %q\nclient_ca_file = %q\n", cert, key, a.dir+"/ca.pem"))
	serverTLS, err := ServerTLS(r.config.Listeners[0], slog.New(slog.NewTextHandler(r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(r.config, r.proxy.Handler(r.config.Listeners[0]), serverTLS, slog.New(slog.DiscardHandler))
	go server.Serve(listen)
	defer server.Close()
	r.url = "https://" + listen.Addr().String()
	client := func(certificates ...tls.Certificate) *http.Client {
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: a.pool(), Certificates: certificates}}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	clientCert, clientKey := a.issue("client", 3)
	pair, err := tls.LoadX509KeyPair(clientCert, clientKey)
	if err != nil {
		t.Fatal(err)
	}
	r.client = client(pair)
	resp := r.post(chatBody)
	if resp.ProtoMajor != 2 || resp.TLS.PeerCertificates[0].SerialNumber.Int64() != 2 {
		t.Errorf("HTTP/%d, certificate %v", resp.ProtoMajor, resp.TLS.PeerCertificates[0].SerialNumber)
	}
	expect(t, resp, 200, `"eu"`)

	r.client = client()
	if _, err := r.do(context.Background(), "POST", "/v1/x", strings.NewReader(chatBody)); err == nil {
		t.Error("served without a client certificate")
	}

	a.issue("agent", 9)
	r.client = client(pair)
	resp = r.post(chatBody)
	if n := resp.TLS.PeerCertificates[0].SerialNumber.Int64(); n != 9 {
		t.Errorf("certificate %d after the rotation, want 9", n)
	}
	read(t, resp)
	if err := os.WriteFile(cert, []byte("half a certifica"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.client = client(pair)
	expect(t, r.post(chatBody), 200, `"eu"`)
	if !strings.Contains(r.log.String(), "the old one stays in use") {
		t.Errorf("log: %s", r.log)
	}
}

// TestEngineTLS: CA, client certificate, SNI and token towards engines, over
// HTTP/1.1 and HTTP/2.
func TestEngineTLS(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("engine.test", 2)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	e := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %s %s %s %d", r.ProtoMajor, r.TLS.ServerName, r.TLS.PeerCertificates[0].Subject.CommonName, r.Header.Get("Authorization"), len(b))
	}))
	e.EnableHTTP2 = true
	e.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: a.pool(), ClientAuth: tls.RequireAndVerifyClientCert}
	e.StartTLS()
	defer e.Close()
	clientCert, clientKey := a.issue("agent", 3)
	token := filepath.Join(a.dir, "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("[engine]\nca_file = %q\nclient_cert_file = %q\nclient_key_file = %q\nserver_name = \"engine.test\"\ntoken_file = %q\n",
		a.dir+"/ca.pem", clientCert, clientKey, token)
	for protocol, more := range map[string]string{"1": "", "2": "http2 = true\n"} {
		r := start(t, fleet(named("a", e)), settings+more)
		for range 3 {
			expect(t, r.post(chatBody, "Authorization", "Bearer client"), 200, fmt.Sprintf("%s engine.test agent Bearer secret %d", protocol, len(chatBody)))
		}
		if err := os.WriteFile(token, []byte("next"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := r.proxy.token.refresh(); err != nil {
			t.Fatal(err)
		}
		expect(t, r.post(chatBody), 200, "Bearer next")
		if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.server.Close()
	}
	r := start(t, fleet(named("a", e)), fmt.Sprintf("[engine]\nca_file = %q\n", a.dir+"/ca.pem"))
	expect(t, r.post(chatBody), 502, "broke the connection before it answered")
	r.logged("certificate required")
	r = start(t, fleet(named("a", e)), "")
	expect(t, r.post(chatBody), 503, "could not be reached")
	r.logged("certificate signed by unknown authority")
}

func TestEngineH2C(t *testing.T) {
	e := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"text\":\"HTTP/%d %d\"}\n\n", r.ProtoMajor, len(b))
	}))
	e.Config.Protocols = new(http.Protocols)
	e.Config.Protocols.SetUnencryptedHTTP2(true)
	e.Start()
	defer e.Close()
	r := start(t, fleet(named("a", e)), "[engine]\nhttp2 = true\n")
	expect(t, r.post(streamBody), 200, fmt.Sprintf("HTTP/2 %d", len(streamBody)))
}

func TestClientAuthorization(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%q", r.Header["Authorization"]) })
	r := start(t, fleet(named("a", e)), "[engine]\nclient_authorization = \"drop\"\n")
	expect(t, r.post(chatBody, "Authorization", "Bearer k"), 200, "[]")
}

func TestDialPolicy(t *testing.T) {
	for _, test := range []struct {
		allowed, address string
		ok               bool
	}{
		{"10.0.0.0/8", "10.1.2.3:80", true},
		{"10.0.0.0/8", "[::ffff:10.1.2.3]:80", true},
		{"10.0.0.0/8", "11.1.2.3:80", false},
		{"0.0.0.0/0", "93.184.216.34:80", true},
		{"0.0.0.0/0", "127.0.0.1:80", false},
		{"0.0.0.0/0", "169.254.169.254:80", false},
		{"0.0.0.0/0", "0.0.0.0:80", false},
		{"0.0.0.0/0", "224.0.0.1:80", false},
		{"0.0.0.0/0", "100.100.100.200:80", false},
		{"::/0", "[::1]:80", false},
		{"::/0", "[fe80::1%eth0]:80", false},
		{"::/0", "[fd00:ec2::254]:80", false},
		{"::/0", "[2001:db8::1]:80", true},
		{"127.0.0.0/8", "127.0.0.1:80", true},
		{"127.0.0.1/32", "127.0.0.1:80", true},
		{"127.0.0.1/32", "127.0.0.2:80", false},
		{"126.0.0.0/7", "127.0.0.1:80", false},
		{"169.254.169.254/32", "169.254.169.254:80", true},
		{"127.0.0.0/8", "127.0.0.1:8080", false}, // our own listener
	} {
		p := dialPolicy{allowed: []netip.Prefix{netip.MustParsePrefix(test.allowed)}, own: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080")}}
		if err := p.check(netip.MustParseAddrPort(test.address)); (err == nil) != test.ok {
			t.Errorf("%s in %s: %v, want allowed %v", test.address, test.allowed, err, test.ok)
		}
	}
}

// TestForbiddenEngines: the address is checked when it is dialed, also if it
// comes from DNS, and the agent is never its own engine.
func TestForbiddenEngines(t *testing.T) {
	var asked bool
	e := engine(t, func(w http.ResponseWriter, r *http.Request) { asked = true })
	r := startWith(t, fleet(named("a", e)), strings.Replace(testConfig, `"127.0.0.0/8", "::1/128"`, `"0.0.0.0/0", "::/0"`, 1), nil)
	expect(t, r.post(chatBody), 503, `engine \"a\" could not be reached; endpoints tried: 1, no other is left`)
	r.logged("is not in allow_engine_networks")
	byName := named("a", e)
	byName.Endpoints[0] = strings.Replace(e.URL, "127.0.0.1", "localhost", 1)
	r.publish(fleet(byName))
	expect(t, r.post(chatBody), 503, "engine_unreachable")
	if asked {
		t.Error("the engine was asked all the same")
	}
	r = start(t, fleet(named("a", e)), "")
	loop := named("a", e)
	loop.Endpoints[0] = r.url
	r.publish(fleet(loop))
	expect(t, r.post(chatBody), 503, "could not be reached")
	r.logged("is a listener of this agent")
}

// TestTighterNetworksEndConnections: after a reload that forbids an engine's
// address no request gets there on a connection that was open before, idle or
// busy, and the answer under way still arrives.
func TestTighterNetworksEndConnections(t *testing.T) {
	for _, protocol := range []string{"1", "2"} {
		var asked, open atomic.Int32
		entered, release := make(chan bool), make(chan bool)
		e := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.URL.Path == "/v1/held" {
				entered <- true
				<-release
			}
			fmt.Fprintf(w, "HTTP/%d", r.ProtoMajor)
		}))
		e.Config.Protocols = new(http.Protocols)
		e.Config.Protocols.SetHTTP1(true)
		e.Config.Protocols.SetUnencryptedHTTP2(true)
		e.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed:
				open.Add(-1)
			}
		}
		e.Start()
		t.Cleanup(e.Close)
		text := testConfig
		if protocol == "2" {
			text += "[engine]\nhttp2 = true\n"
		}
		r := startWith(t, fleet(named("a", e)), text, func(o *Options) { o.Config.Timeouts.EngineIdle = time.Hour })
		reload := func(networks string) {
			r.proxy.SetConfig(parseConfig(t, strings.Replace(text, `"127.0.0.0/8", "::1/128"`, networks, 1)))
		}
		good := "HTTP/" + protocol
		// Idle.
		expect(t, r.post(chatBody), 200, good)
		reload(`"127.0.0.2/32"`)
		eventually(t, "the end of the idle connection", func() bool { return open.Load() == 0 })
		expect(t, r.post(chatBody), 503, "engine_unreachable")
		// Allowed again, then forbidden while busy.
		reload(`"127.0.0.0/8"`)
		held := make(chan *http.Response, 1)
		go func() {
			resp, err := r.do(context.Background(), "POST", "/v1/held", strings.NewReader(chatBody))
			if err != nil {
				t.Error(err)
			}
			held <- resp
		}()
		<-entered
		reload(`"127.0.0.2/32"`)
		expect(t, r.post(chatBody), 503, "engine_unreachable") // not beside the other on its connection
		release <- true
		if resp := <-held; resp != nil {
			expect(t, resp, 200, good)
		}
		r.idle()
		expect(t, r.post(chatBody), 503, "engine_unreachable")
		if n := asked.Load(); n != 2 {
			t.Errorf("HTTP/%s: the engine was asked %d times, want 2", protocol, n)
		}
		// A reload that changes nothing keeps connections.
		reload(`"127.0.0.0/8"`)
		expect(t, r.post(chatBody), 200, good)
		before := open.Load()
		reload(`"127.0.0.0/8"`)
		expect(t, r.post(chatBody), 200, good)
		if n := open.Load(); n != before {
			t.Errorf("HTTP/%s: %d connections after a reload without change, want %d", protocol, n, before)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var asked bool
	inner := engine(t, func(w http.ResponseWriter, r *http.Request) { asked = true })
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL, http.StatusTemporaryRedirect)
	})
	r := start(t, fleet(named("a", e)), "")
	resp := r.post(chatBody)
	if resp.Header.Get("Location") != inner.URL {
		t.Errorf("Location %q", resp.Header.Get("Location"))
	}
	expect(t, resp, 307, "")
	if asked {
		t.Error("the redirect was followed")
	}
}

func TestBadTargets(t *testing.T) {
	r := start(t, fleet(named("a", engine(t, answerJSON("a")))), "")
	for _, target := range []string{"/v1/../admin", "/v1/%2e%2e/admin", "/v1/x%2f..%2fadmin"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", target)
		b, _ := io.ReadAll(c)
		c.Close()
		if !strings.HasPrefix(string(b), "HTTP/1.1 400") {
			t.Errorf("%s: %.40q", target, b)
		}
	}
}

// TestTraceIsNotPassedOn: an engine that answers it would tell its token.
func TestTraceIsNotPassedOn(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("the engine got %s", r.Method) })
	r := start(t, fleet(named("a", e)), "")
	resp, err := r.do(context.Background(), "TRACE", "/v1/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, resp, 400, "bad_method")
}

// TestUnsendableRequestsAreTheClients: what HTTP/2 carries and HTTP/1.1 cannot is
// refused before any engine could be blamed for it.
func TestUnsendableRequestsAreTheClients(t *testing.T) {
	r := start(t, fleet(named("a", engine(t, answerJSON("a")))), "")
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Method = "PO ST" },
		func(r *http.Request) { r.URL.RawQuery = "a=b c" },
		func(r *http.Request) { r.URL.RawQuery = "a=b\x7f" },
	} {
		for range 10 {
			request := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(chatBody))
			request.Header.Set("Content-Type", "application/json")
			change(request)
			w := httptest.NewRecorder()
			r.proxy.Handler(r.config.Listeners[0]).ServeHTTP(w, request)
			if w.Code != 400 || !strings.Contains(w.Body.String(), "bad_target") {
				t.Fatalf("%q ?%q: %d %s", request.Method, request.URL.RawQuery, w.Code, w.Body)
			}
		}
	}
	if n := r.metric(`irb_requests_total{class="chat"`); n != "" {
		t.Errorf("%s requests got to the engine", n)
	}
	expect(t, r.post(chatBody), 200, `"a"`)
}
