package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// kind is what the caller does with a request.
type kind int

const (
	whole    kind = iota // reads an answer of one piece
	streamed             // reads a stream to its end
	canceled             // leaves a stream, or before its answer
)

func (k kind) String() string {
	return [...]string{"whole", "streamed", "canceled"}[k]
}

// ask is one request of the soak.
type ask struct {
	id   string
	kind kind
	body []byte
	crc  uint32
}

// newAsk draws a request: 80 % whole answers, 15 % streams, 5 % that are
// canceled; bodies of a few KB, a tenth of up to a quarter of the maximum, one
// in fifty up to the maximum.
func newAsk(n int, r *rand.Rand, maxBytes int) ask {
	a := ask{id: "soak-" + strconv.Itoa(n)}
	switch p := r.Float64(); {
	case p < 0.05:
		a.kind = canceled
	case p < 0.2:
		a.kind = streamed
	}
	size := 1<<10 + r.IntN(8<<10)
	switch p := r.Float64(); {
	case p < 0.02:
		size = r.IntN(maxBytes)
	case p < 0.12:
		size = r.IntN(maxBytes / 4)
	}
	head := fmt.Sprintf(`{"model":"chat","stream":%t,"messages":[{"role":"user","content":"%s `, a.kind != whole, a.id)
	const tail = `"}]}`
	fill := strings.Repeat(string(rune('a'+n%26)), max(0, size-len(head)-len(tail)))
	a.body = []byte(head + fill + tail)
	a.crc = crc32.ChecksumIEEE(a.body)
	return a
}

// errLeft is how a request ends that its caller canceled.
var errLeft = errors.New("canceled by the caller")

// do sends the request to an agent and checks its answer. A nil error means
// that all of it came and all of the body had arrived.
func (a *ask) do(ctx context.Context, client *http.Client, agent string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if a.kind == canceled {
		// Before the answer, within the stream, or in time to see it whole.
		defer time.AfterFunc(rand.N(25*time.Millisecond), cancel).Stop()
	}
	url := "http://" + agent + "/v1/chat/completions"
	if a.kind != whole {
		url += "?stream"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(a.body))
	if err != nil {
		return err
	}
	r.GetBody = nil // the client must not hide a lost request by asking again
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(requestID, a.id)
	err = a.read(client.Do(r))
	if err != nil && a.kind == canceled && ctx.Err() != nil {
		return errLeft
	}
	return err
}

func (a *ask) read(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("status %s: %s", resp.Status, bytes.TrimSpace(text))
	}
	var got answer
	if a.kind == whole {
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
	} else {
		n, _ := strconv.ParseInt(resp.Header.Get("X-Bytes"), 10, 64)
		crc, _ := strconv.ParseUint(resp.Header.Get("X-CRC32"), 10, 32)
		got = answer{Bytes: n, CRC32: uint32(crc)}
		if err := readStream(resp.Body); err != nil {
			return err
		}
	}
	if want := (answer{Bytes: int64(len(a.body)), CRC32: a.crc}); got != want {
		return fmt.Errorf("%w: the engine got %+v, want %+v", errAltered, got, want)
	}
	return nil
}

var (
	// errAltered means that a body or an answer was not passed on as it was.
	errAltered = errors.New("altered")
	// errCleanEnd means that a stream looked complete and was not.
	errCleanEnd = errors.New("a broken stream ended as if it were complete")
)

// readStream reads a stream and compares it byte for byte.
func readStream(body io.Reader) error {
	want := streamText()
	got, err := io.ReadAll(body)
	switch {
	case !strings.HasPrefix(want, string(got)):
		return fmt.Errorf("%w: stream is %q, want %q", errAltered, got, want)
	case err == nil && len(got) < len(want):
		return errCleanEnd
	}
	return err
}

// streamText returns the whole of a stream.
func streamText() string {
	var b strings.Builder
	for i := range frames {
		fmt.Fprintf(&b, frame, i)
	}
	b.WriteString(done)
	return b.String()
}
