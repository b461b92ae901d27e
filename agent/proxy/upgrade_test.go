package proxy

import (
	"bufio"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// upgrading is an engine that echoes what comes over a WebSocket.
func upgrading(t testing.TB, hello string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			fmt.Fprintf(w, "HTTP/%d", r.ProtoMajor)
			return
		}
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nSec-WebSocket-Accept: k\r\n\r\n%s", r.Header.Get("Upgrade"), hello)
		_, _ = io.Copy(c, rw)
	}
}

// upgrade asks for another protocol over a connection of its own.
func (r *rig) upgrade(request string) (net.Conn, *bufio.Reader, *http.Response) {
	r.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	io.WriteString(c, request)
	reader := bufio.NewReader(c)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return c, reader, resp
}

const websocket = "GET /v1/realtime?model=m HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"

// TestOnlyWebSockets: a connection that leaves HTTP for anything else could carry
// requests past all rules. Who asks for it is served without it.
func TestOnlyWebSockets(t *testing.T) {
	r := start(t, fleet(named("a", engine(t, upgrading(t, "")))), "")
	body := "Content-Type: application/json\r\nContent-Length: " + fmt.Sprint(len(chatBody)) + "\r\n\r\n" + chatBody
	for _, request := range []string{
		"GET /v1/x?model=m HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
		"GET /v1/x?model=m HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n",
		"GET /v1/x?model=m HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n",
		"GET /v1/x?model=m HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n",
		"POST /v1/x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + body,
	} {
		_, _, resp := r.upgrade(request)
		if text := read(t, resp); resp.StatusCode != 200 || text != "HTTP/1" {
			t.Errorf("%.60q...: %d %q", request, resp.StatusCode, text)
		}
	}
}

// TestUpgradeBesideHTTP2: engines that are asked over HTTP/2 are asked for
// WebSockets over HTTP/1.1.
func TestUpgradeBesideHTTP2(t *testing.T) {
	for name, listen := range map[string]func(*testing.T) *httptest.Server{
		"h2c": func(t *testing.T) *httptest.Server {
			e := httptest.NewUnstartedServer(upgrading(t, ""))
			e.Config.Protocols = new(http.Protocols)
			e.Config.Protocols.SetHTTP1(true)
			e.Config.Protocols.SetUnencryptedHTTP2(true)
			e.Start()
			return e
		},
		"TLS": func(t *testing.T) *httptest.Server {
			e := httptest.NewUnstartedServer(upgrading(t, ""))
			e.EnableHTTP2 = true
			e.StartTLS()
			return e
		},
	} {
		e := listen(t)
		t.Cleanup(e.Close)
		ca := t.TempDir() + "/ca.pem"
		if e.TLS != nil {
			block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.Certificate().Raw})
			if err := os.WriteFile(ca, block, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		more := "[engine]\nhttp2 = true\n"
		if e.TLS != nil {
			more += fmt.Sprintf("ca_file = %q\n", ca)
		}
		r := start(t, fleet(named("a", e)), more)
		expect(t, r.post(chatBody), 200, "HTTP/2")
		c, reader, resp := r.upgrade(websocket)
		if resp.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("%s: %s", name, resp.Status)
			continue
		}
		io.WriteString(c, "more")
		b := make([]byte, 4)
		if _, err := io.ReadFull(reader, b); err != nil || string(b) != "more" {
			t.Errorf("%s: got %q, %v", name, b, err)
		}
		c.Close()
		r.idle()
		expect(t, r.post(chatBody), 200, "HTTP/2")
	}
}

// TestUpgrade passes a WebSocket-like connection through, both ways.
func TestUpgrade(t *testing.T) {
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" || r.URL.Query().Get("model") != "m" {
			http.Error(w, "no upgrade", 400)
			return
		}
		upgrading(t, "hello ")(w, r)
	})
	r := start(t, fleet(named("a", e)), "")
	c, reader, resp := r.upgrade(websocket + "early")
	if resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Accept") != "k" {
		t.Fatal(resp)
	}
	expectBytes := func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		if _, err := io.ReadFull(reader, b); err != nil || string(b) != want {
			t.Errorf("got %q %v, want %q", b, err, want)
		}
	}
	expectBytes("hello early")
	io.WriteString(c, "more")
	expectBytes("more")
	// Other networks do not matter to it.
	r.proxy.SetConfig(parseConfig(t, strings.Replace(testConfig, "127.0.0.0/8", "127.0.0.1/32", 1)))
	io.WriteString(c, "again")
	expectBytes("again")
	// The drain waits for it, then its limit ends it.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.proxy.WaitUpgrades(ctx)
	r.proxy.Close()
	if _, err := reader.ReadByte(); err == nil {
		t.Error("the connection outlives Close")
	}
	r.idle()
}

// TestUpgradeToAClientThatDoesNotRead ends, at the engine too.
func TestUpgradeToAClientThatDoesNotRead(t *testing.T) {
	ended := make(chan error, 1)
	e := engine(t, func(w http.ResponseWriter, r *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, err = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		for piece := make([]byte, 1<<20); err == nil; {
			_, err = c.Write(piece)
		}
		ended <- err
	})
	r := start(t, fleet(named("a", e)), "[timeouts]\nclient_write = \"50ms\"\n")
	_, _, resp := r.upgrade(websocket)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.Status)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the engine still sends")
	}
	r.idle()
}

// TestUpgradeEndsWithItsNetwork: a connection to an engine that may no longer be
// dialed is cut, and a new one refused.
func TestUpgradeEndsWithItsNetwork(t *testing.T) {
	r := start(t, fleet(named("a", engine(t, upgrading(t, "")))), "")
	_, open, resp := r.upgrade(websocket)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.Status)
	}
	r.proxy.SetConfig(parseConfig(t, strings.Replace(testConfig, "127.0.0.0/8", "10.0.0.0/8", 1)))
	if _, err := open.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
	if _, _, resp := r.upgrade(websocket); resp.StatusCode != http.StatusServiceUnavailable {
		t.Error(resp.Status)
	}
	r.idle()
}
