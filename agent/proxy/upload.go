package proxy

import (
	"bytes"
	"io"
	"sync/atomic"
)

// upload is a body that goes to the engine as it comes from the client. It can
// be sent once.
type upload struct {
	head    []byte // what was read of the body already
	body    slowReader
	touched atomic.Bool
	broken  atomic.Bool // the client failed us, not the engine
}

func (u *upload) Read(p []byte) (int, error) {
	u.touched.Store(true)
	if len(u.head) > 0 {
		n := copy(p, u.head)
		u.head = u.head[n:]
		return n, nil
	}
	n, err := u.body.Read(p)
	if err != nil && err != io.EOF {
		u.broken.Store(true)
	}
	return n, err
}

// headBytes of white space before a JSON object are enough.
const headBytes = 512

// beginsObject says whether the body begins as a JSON object does: clients often
// send one under another type, curl -d for one. What it reads stays in the body.
func (u *upload) beginsObject() (bool, error) {
	head := make([]byte, 0, headBytes)
	for len(head) < cap(head) {
		n, err := u.body.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		u.head = head
		if text := bytes.TrimLeft(head, " \t\r\n"); len(text) > 0 {
			return text[0] == '{', nil
		}
		if err == io.EOF {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return false, nil
}

// Close leaves the client's body open: the server closes it, and an attempt
// that failed before it began to read may be followed by another.
func (u *upload) Close() error { return nil }
