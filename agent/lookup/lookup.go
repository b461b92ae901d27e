// Package lookup resolves host names as the system is set up to, and tells how
// long the answer holds: Go's resolver knows files, servers and search domains,
// but keeps the time to live to itself, so that is read off its messages.
package lookup

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Resolver resolves names. The zero value is ready for use.
type Resolver struct {
	// Dial connects to a DNS server; nil: a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Addresses returns the addresses of a host, and how long DNS says that they
// hold; 0 if it does not say, as for names of the hosts file.
func (r *Resolver) Addresses(ctx context.Context, host string) ([]netip.Addr, time.Duration, error) {
	l := &listener{dial: r.Dial}
	if l.dial == nil {
		l.dial = new(net.Dialer).DialContext
	}
	// One of its own for each lookup, since it merges those that it shares.
	resolver := net.Resolver{PreferGo: true, Dial: l.connect}
	found, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, 0, err
	}
	return found, l.lowest(), nil
}

// listener listens to what the servers say about one name.
type listener struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu  sync.Mutex
	ttl time.Duration
	any bool // ttl was heard of
}

func (l *listener) lowest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ttl
}

func (l *listener) connect(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := l.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if udp, ok := c.(*net.UDPConn); ok { // the resolver looks at the type
		return &datagrams{UDPConn: udp, heard: l.hear}, nil
	}
	return &stream{Conn: c, heard: l.hear}, nil
}

// hear takes one message: the lowest time to live of all answers counts, those
// of aliases too.
func (l *listener) hear(message []byte) {
	var p dnsmessage.Parser
	if _, err := p.Start(message); err != nil || p.SkipAllQuestions() != nil {
		return
	}
	for {
		h, err := p.AnswerHeader()
		if err != nil || p.SkipAnswer() != nil {
			return // the end, or what the resolver will complain of
		}
		l.lower(time.Duration(h.TTL) * time.Second)
	}
}

func (l *listener) lower(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.any || ttl < l.ttl {
		l.any, l.ttl = true, ttl
	}
}

// datagrams is a connection of which each read is a message.
type datagrams struct {
	*net.UDPConn
	heard func(message []byte)
}

func (d *datagrams) Read(p []byte) (int, error) {
	n, err := d.UDPConn.Read(p)
	d.heard(p[:n])
	return n, err
}

// stream is a connection of messages with their lengths before them.
type stream struct {
	net.Conn
	heard func(message []byte)
	read  []byte
}

// lengthBytes come before each message (RFC 1035, 4.2.2).
const lengthBytes = 2

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.read = append(s.read, p[:n]...)
	for len(s.read) >= lengthBytes {
		end := lengthBytes + int(s.read[0])<<8 + int(s.read[1])
		if len(s.read) < end {
			break
		}
		s.heard(s.read[lengthBytes:end])
		s.read = s.read[end:]
	}
	return n, err
}
