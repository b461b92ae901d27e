package h1client

import (
	"crypto/tls"
	"errors"
	"os"
	"time"
)

func alwaysAlive() bool { return true }

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// drained says whether nothing follows an answer that was read. TLS may hold what
// it has read from the socket, where alive does not see it.
func (c *conn) drained() bool {
	if c.reader.Buffered() > 0 {
		return false
	}
	if _, ok := c.Conn.(*tls.Conn); !ok {
		return true
	}
	_ = c.SetReadDeadline(longAgo) // the read fails too
	_, err := c.reader.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}
