//go:build !unix

package h1server

// socketReads says whether sockets are read past net.
const socketReads = false

func (c *conn) readSocket(uintptr) bool { return true }
