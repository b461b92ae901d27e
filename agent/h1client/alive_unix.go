//go:build unix

package h1client

import (
	"crypto/tls"
	"net"
	"syscall"
)

// alive looks, without waiting, whether the server has closed the connection or
// sent something nobody asked for. What cannot be looked at counts as alive.
func alive(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true
	}
	quiet := true
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, e := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = e == syscall.EAGAIN || e == syscall.EWOULDBLOCK
	})
	return err == nil && quiet
}
