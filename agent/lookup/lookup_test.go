package lookup

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// server is a DNS server on loopback that knows two names; the answer to the
// second is too large for UDP.
type server struct{ udp, tcp string }

func startServer(t *testing.T) server {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { packets.Close(); streams.Close() })
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := packets.ReadFrom(b)
			if err != nil {
				return
			}
			packets.WriteTo(answer(t, b[:n], true), from)
		}
	}()
	go func() {
		for {
			c, err := streams.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var length [lengthBytes]byte
				if _, err := io.ReadFull(c, length[:]); err != nil {
					return
				}
				b := make([]byte, binary.BigEndian.Uint16(length[:]))
				if _, err := io.ReadFull(c, b); err != nil {
					return
				}
				a := answer(t, b, false)
				c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...))
			}()
		}
	}()
	return server{packets.LocalAddr().String(), streams.Addr().String()}
}

func answer(t *testing.T, query []byte, datagram bool) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		t.Error(err)
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	host := dnsmessage.MustNewName("host.test.")
	a := func(name dnsmessage.Name, ttl uint32, last byte) {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, Type: dnsmessage.TypeA, TTL: ttl},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, last}},
		})
	}
	switch {
	case q.Name.String() == "large.test." && datagram:
		m.Truncated = true
	case q.Type != dnsmessage.TypeA: // no such record
	case q.Name.String() == "large.test.":
		a(q.Name, 9, 9)
	case q.Name.String() == "pool.test.":
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, Type: dnsmessage.TypeCNAME, TTL: 7},
			Body:   &dnsmessage.CNAMEResource{CNAME: host},
		})
		a(host, 30, 1)
		a(host, 30, 2)
	default:
		m.RCode = dnsmessage.RCodeNameError
	}
	b, err := m.Pack()
	if err != nil {
		t.Error(err)
	}
	return b
}

func TestAddresses(t *testing.T) {
	s := startServer(t)
	r := Resolver{Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		address := s.udp
		if network == "tcp" {
			address = s.tcp
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	for _, test := range []struct {
		host string
		want []string
		ttl  time.Duration
	}{
		{"pool.test.", []string{"127.0.0.1", "127.0.0.2"}, 7 * time.Second}, // the alias holds shortest
		{"large.test.", []string{"127.0.0.9"}, 9 * time.Second},
		{"127.0.0.3", []string{"127.0.0.3"}, 0},
		{"none.test.", nil, 0},
	} {
		found, ttl, err := r.Addresses(t.Context(), test.host)
		var got []string
		for _, a := range found {
			got = append(got, a.Unmap().WithZone("").String())
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) || ttl != test.ttl || (err == nil) != (test.want != nil) {
			t.Errorf("%s: %v, %v, %v; want %v, %v", test.host, got, ttl, err, test.want, test.ttl)
		}
	}
	r = Resolver{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }}
	if found, _, err := r.Addresses(t.Context(), "pool.test."); err == nil {
		t.Errorf("without a server: %v", found)
	}
	if found, _, err := r.Addresses(t.Context(), "localhost"); err != nil || !slices.ContainsFunc(found, netip.Addr.IsLoopback) {
		t.Errorf("of the hosts file: %v %v", found, err)
	}
}

// FuzzHear: servers are not ours.
func FuzzHear(f *testing.F) {
	f.Add([]byte{0, 1, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, message []byte) {
		var l listener
		l.hear(message)
		if l.lowest() < 0 {
			t.Error(l.lowest())
		}
	})
}
