package h1server

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// TestLateLook: a timer that fires once more loses nothing of the next request.
func TestLateLook(t *testing.T) {
	c, client := pipe(t, &Server{})
	w := &response{conn: c}
	c.watch.w, c.watch.wanted = w, true
	c.watch.timer = time.AfterFunc(time.Hour, func() {})
	go io.WriteString(client, "ab")
	c.watch.look()
	c.watch.look()
	c.watch.end()
	rest := make([]byte, 1)
	if _, err := c.Conn.Read(rest); err != nil || string(c.unread)+string(rest) != "ab" {
		t.Errorf("%q then %q, %v", c.unread, rest, err)
	}
	if w.ctx.Err() != nil {
		t.Error("the client counts as gone")
	}
}

// TestDeadlineWhileWatching: a deadline for reading the body that is set as the
// body ends does not make the client count as gone.
func TestDeadlineWhileWatching(t *testing.T) {
	c, client := pipe(t, &Server{})
	w := &response{conn: c}
	c.watch.w = w
	c.watch.begin()
	for end := time.Now().Add(4 * watchAfter); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err := c.SetReadDeadline(longAgo); err != nil {
			t.Fatal(err)
		}
	}
	if w.ctx.Err() != nil {
		t.Fatal("the client counts as gone")
	}
	client.Close()
	select {
	case <-w.ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("nobody hears that the client left")
	}
	c.watch.end()
}

// TestClientLeavesBehindBlankLine: a client that ends its body with a line that
// its length does not count can cancel too.
func TestClientLeavesBehindBlankLine(t *testing.T) {
	for name, wait := range map[string]time.Duration{"at once": 0, "later": 4 * watchAfter} {
		began, left := make(chan bool), make(chan bool)
		_, address := listen(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			close(began)
			<-r.Context().Done()
			close(left)
		})
		c := dial(t, address)
		c.send(post("hello"))
		<-began
		time.Sleep(wait)
		c.send("\r\n")
		time.Sleep(2 * watchAfter)
		c.conn.Close()
		select {
		case <-left:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the handler never heard of it", name)
		}
	}
}
