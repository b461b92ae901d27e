//go:build unix

package h1client

import (
	"crypto/tls"
	"net"
	"syscall"
)

// look returns a function that looks, without waiting, whether the server has
// closed the connection or sent something nobody asked for. What cannot be
// looked at counts as alive. It is made once for a connection, since making it
// costs more than the look.
func look(c net.Conn) (alive func() bool) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return alwaysAlive
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return alwaysAlive
	}
	var one [1]byte
	var quiet bool
	peek := func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	}
	return func() bool { return raw.Control(peek) == nil && quiet }
}
