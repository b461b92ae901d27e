package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// deadlines is a connection that notes the deadlines it is given.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.read = append(d.read, t)
	return nil
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.write = append(d.write, t)
	return nil
}

// A client has at least its whole time for each read and write, and at most a
// quarter more, although deadlines are not moved on every one.
func TestDeadlinesAreNeverEarly(t *testing.T) {
	now := time.Unix(1000, 0)
	const limit = 8 * time.Second
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	x := &exchange{
		proxy: &Proxy{now: func() time.Time { return now }}, writeTimeout: limit,
		control:  *http.NewResponseController(d),
		request:  httptest.NewRequest("POST", "/", endless{}),
		deadline: now.Add(time.Hour),
	}
	body := slowReader{x: x, limit: limit}
	for range 50 {
		x.extendWrite()
		if _, err := body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		for what, all := range map[string][]time.Time{"write": d.write, "read": d.read} {
			if left := all[len(all)-1].Sub(now); left < limit || left > limit*5/4 {
				t.Errorf("%v are left for a %s, want %v to a quarter more", left, what, limit)
			}
		}
		now = now.Add(limit / 16)
	}
	// Each serves 4 steps of a sixteenth after the one that sets it.
	if len(d.write) != 10 || len(d.read) != 10 {
		t.Errorf("%d and %d deadlines for 50 writes and reads, want 10 each", len(d.write), len(d.read))
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
