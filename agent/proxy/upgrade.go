package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/irb-project/irb/agent/metrics"
)

// isUpgrade says whether the client wants a WebSocket, as those of the realtime
// API do. No other protocol is passed on: h2c for one would carry requests past
// every rule to the engine, unseen. A wish for one may be ignored (RFC 9110,
// 7.8).
func isUpgrade(r *http.Request) bool {
	wish := r.Header["Upgrade"]
	if len(wish) != 1 || !strings.EqualFold(wish[0], "websocket") || r.Method != http.MethodGet || r.ProtoMajor != 1 {
		return false
	}
	asked := false
	connectionNames(r.Header, func(name string) { asked = asked || name == "Upgrade" })
	return asked
}

// upgrades are the connections that left HTTP: the server no longer knows them.
type upgrades struct {
	mu     sync.Mutex
	conns  map[io.Closer]netip.AddrPort // of the engine
	wait   sync.WaitGroup
	closed bool
}

func (u *upgrades) add(c io.Closer, engine netip.AddrPort) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	if u.conns == nil {
		u.conns = map[io.Closer]netip.AddrPort{}
	}
	u.conns[c] = engine
	u.wait.Add(1)
	return true
}

func (u *upgrades) remove(c io.Closer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.conns, c)
	u.wait.Done()
}

// WaitUpgrades waits until connections that left HTTP have ended, or ctx has.
func (p *Proxy) WaitUpgrades(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		p.upgrades.wait.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// cut closes the connections to engines that may not be dialed any more, and
// those of which it is not known where they lead.
func (u *upgrades) cut(check func(netip.AddrPort) error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c, engine := range u.conns {
		if check(engine) != nil {
			c.Close()
		}
	}
}

func (u *upgrades) closeAll() {
	u.mu.Lock()
	u.closed = true
	for c := range u.conns {
		c.Close()
	}
	u.mu.Unlock()
	u.wait.Wait()
}

// upgrade joins the client's connection with the engine's until either ends.
// There is no limit on silence: a realtime session may pause as long as both
// sides wish. A client that does not take what is sent to it has ended it.
func (x *exchange) upgrade(t *try, resp *http.Response) *failure {
	defer t.end()
	defer resp.Body.Close()
	engine, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || !isUpgrade(x.request) {
		return &failure{reason: metrics.Reset, err: errors.New("switches protocols without being asked to"), try: t}
	}
	conn, buffered, err := x.control.Hijack()
	if err != nil {
		return &failure{reason: metrics.Reset, err: err, try: t}
	}
	defer conn.Close()
	t.watch.stop()
	x.status = resp.StatusCode
	if !x.proxy.upgrades.add(conn, engineAddress(engine)) {
		return nil
	}
	defer x.proxy.upgrades.remove(conn)
	if a := engineAddress(engine); a.IsValid() && x.proxy.dialer.policy.Load().check(a) != nil {
		return nil // the rules have changed since it was dialed
	}
	if err := x.switchProtocol(resp, conn, buffered.Writer); err != nil {
		x.outcome = metrics.Canceled
		return nil
	}
	ended := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(engine, buffered.Reader) // either end is the end
		ended <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(&patientWriter{conn, x}, engine)
		ended <- struct{}{}
	}()
	<-ended
	conn.Close()
	engine.Close()
	<-ended
	x.outcome = metrics.OK
	return nil
}

// patientWriter gives the client as long for each write as for one of an answer: a
// client that does not read must not hold a session of the engine for ever.
type patientWriter struct {
	conn net.Conn
	x    *exchange
}

func (w *patientWriter) Write(p []byte) (int, error) {
	if err := w.conn.SetWriteDeadline(w.x.proxy.now().Add(w.x.writeTimeout)); err != nil {
		return 0, err
	}
	return w.conn.Write(p)
}

// engineAddress is where an upgraded connection leads; not valid if that is not
// known.
func engineAddress(engine io.ReadWriteCloser) netip.AddrPort {
	if c, ok := engine.(interface{ RemoteAddr() net.Addr }); ok {
		if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
			return a.AddrPort()
		}
	}
	return netip.AddrPort{}
}

func (x *exchange) switchProtocol(resp *http.Response, conn net.Conn, w *bufio.Writer) error {
	h := http.Header{}
	x.responseHeader(h, resp.Header)
	h["Connection"] = []string{"Upgrade"}
	h["Upgrade"] = resp.Header["Upgrade"]
	if !strings.EqualFold(h.Get("Upgrade"), x.request.Header.Get("Upgrade")) {
		return errors.New("engine switches to another protocol than was asked for")
	}
	if err := conn.SetDeadline(x.proxy.now().Add(x.writeTimeout)); err != nil {
		return err
	}
	answer := http.Response{StatusCode: resp.StatusCode, ProtoMajor: 1, ProtoMinor: 1, Header: h}
	if err := answer.Write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}
