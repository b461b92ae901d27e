//go:build !linux

package proxy

import (
	"net"
	"time"
)

// kernelRTT: how to ask differs from system to system; the time of the connect
// must do.
func kernelRTT(net.Conn) (time.Duration, bool) { return 0, false }
