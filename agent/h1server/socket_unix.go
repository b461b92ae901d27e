//go:build unix

package h1server

import "syscall"

// socketReads says whether sockets are read past net.
const socketReads = true

// readSocket reads once without waiting; false means that nothing is here.
func (c *conn) readSocket(fd uintptr) bool {
	c.hold()
	for {
		n, err := syscall.Read(int(fd), c.buffer[:])
		switch err {
		case nil:
			c.unread = c.buffer[:n]
			return true
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			c.letGo()
			return false
		}
		c.readErr = err
		return true
	}
}
