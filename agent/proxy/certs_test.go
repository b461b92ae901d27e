package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// replaceCA puts the CA of another authority in the place of a's.
func (a *authority) replaceCA(by *authority) {
	a.t.Helper()
	text, err := os.ReadFile(by.dir + "/ca.pem")
	if err != nil {
		a.t.Fatal(err)
	}
	// As certificate managers do, and of another size than before.
	if err := os.WriteFile(a.dir+"/next.pem", append([]byte("# rotated\n"), text...), 0o600); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Rename(a.dir+"/next.pem", a.dir+"/ca.pem"); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) pair(name string, serial int64) tls.Certificate {
	a.t.Helper()
	pair, err := tls.LoadX509KeyPair(a.issue(name, serial))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// TestClientCARotation: which client certificates count follows the file, without
// a restart, over HTTP/2 as before; one that cannot be read changes nothing.
func TestClientCARotation(t *testing.T) {
	old, next := newAuthority(t), newAuthority(t)
	cert, key := old.issue("agent", 2)
	r := start(t, fleet(named("a", engine(t, answerJSON("a")))), fmt.Sprintf("tls_cert_file = %q\ntls_key_file = %q\nclient_ca_file = %q\n", cert, key, old.dir+"/ca.pem"))
	log := slog.New(slog.NewTextHandler(r.log, nil))
	settings, err := ServerTLS(r.config.Listeners[0], log)
	if err != nil {
		t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(r.config, r.proxy.Handler(r.config.Listeners[0]), settings, slog.New(slog.DiscardHandler))
	go server.Serve(listen)
	defer server.Close()
	r.url = "https://" + listen.Addr().String()
	ask := func(certificate tls.Certificate, sessions tls.ClientSessionCache) error {
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: old.pool(), Certificates: []tls.Certificate{certificate}, ClientSessionCache: sessions}}
		defer transport.CloseIdleConnections()
		r.client = &http.Client{Transport: transport}
		resp, err := r.do(context.Background(), "POST", "/v1/x", strings.NewReader(chatBody))
		if err != nil {
			return err
		}
		if resp.ProtoMajor != 2 {
			t.Errorf("HTTP/%d", resp.ProtoMajor)
		}
		expect(t, resp, 200, `"a"`)
		return nil
	}
	ofOld, ofNext, session := old.pair("client", 3), next.pair("client", 4), tls.NewLRUClientSessionCache(1)
	if err := ask(ofOld, session); err != nil {
		t.Error(err)
	}
	if ask(ofNext, nil) == nil {
		t.Error("a certificate of another CA is taken")
	}
	old.replaceCA(next)
	if err := ask(ofNext, nil); err != nil {
		t.Error("after the rotation:", err)
	}
	if ask(ofOld, nil) == nil || ask(ofOld, session) == nil {
		t.Error("after the rotation a certificate of the old CA is taken")
	}
	if err := os.WriteFile(old.dir+"/ca.pem", []byte("half a certifica"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ask(ofNext, nil); err != nil {
		t.Error("with a broken file:", err)
	}
	r.logged("the old one stays in use")
}

// TestEngineCARotation: which engines are believed follows the file.
func TestEngineCARotation(t *testing.T) {
	old, next := newAuthority(t), newAuthority(t)
	e := httptest.NewUnstartedServer(answerJSON("a"))
	e.TLS = &tls.Config{Certificates: []tls.Certificate{next.pair("engine", 5)}}
	e.StartTLS()
	t.Cleanup(e.Close)
	for _, http2 := range []bool{false, true} {
		old.replaceCA(newAuthority(t))
		r := start(t, fleet(named("a", e)), fmt.Sprintf("[engine]\nhttp2 = %v\nca_file = %q\n", http2, old.dir+"/ca.pem"))
		expect(t, r.post(chatBody), 503, "could not be reached")
		old.replaceCA(next)
		expect(t, r.post(chatBody), 200, `"a"`)
	}
}
