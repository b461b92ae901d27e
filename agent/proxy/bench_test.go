package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkRequest sends requests of 4 KB over real sockets. Client and engine
// are loops over prepared bytes that allocate nothing, so the allocations are
// the agent's; of the time some 15 us are theirs.
func BenchmarkRequest(b *testing.B) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, strings.Repeat("lorem ipsum ", 330))
	request := fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)

	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listen.Close()
	go func() {
		for {
			c, err := listen.Accept()
			if err != nil {
				return
			}
			go answerAll(c, []byte(answer), len(body))
		}
	}()
	s := fleet(named("a", &httptest.Server{URL: "http://" + listen.Addr().String()}))
	r := start(b, s, "")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err != nil {
			b.Error(err)
			return
		}
		defer c.Close()
		reader := bufio.NewReader(c)
		for pb.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			if err := skipMessage(reader, len("{}")); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// answerAll answers every request on a connection.
func answerAll(c net.Conn, answer []byte, bodyBytes int) {
	defer c.Close()
	reader := bufio.NewReaderSize(c, 16<<10)
	for skipMessage(reader, bodyBytes) == nil {
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// skipMessage reads a header and a body of known length.
func skipMessage(r *bufio.Reader, bodyBytes int) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			_, err := r.Discard(bodyBytes)
			return err
		}
	}
}
