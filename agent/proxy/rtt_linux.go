package proxy

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernelRTT returns the round trip that the kernel measured in the handshake of
// a new connection. A busy agent notices late that a connect is done; the
// kernel does not. False if there is none, as after a lost packet.
func kernelRTT(conn net.Conn) (rtt time.Duration, ok bool) {
	c, is := conn.(syscall.Conn)
	if !is {
		return 0, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.Rtt > 0 {
			rtt, ok = time.Duration(info.Rtt)*time.Microsecond, true
		}
	})
	return rtt, ok && err == nil
}
