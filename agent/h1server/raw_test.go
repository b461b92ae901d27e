package h1server

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sawHandler answers with what it was asked.
func sawHandler(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	var fields []string
	for name, values := range r.Header {
		fields = append(fields, fmt.Sprintf("%s=%q", name, values))
	}
	slices.Sort(fields)
	w.Header().Set("Content-Type", "text/plain")
	text := fmt.Sprintf("%s %q host %q length %d close %v %v %q %v trailer %v", r.Method, r.RequestURI, r.Host, r.ContentLength, r.Close, fields, b, err, r.Trailer)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	io.WriteString(w, text)
}

// probe is a request after the raw one: is it read as one, and is the connection
// still open?
const probe = "GET /probe HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"

// TestRawRequestsAsNetHTTP: what a client can put on the wire gets the answers
// and the end of the connection that net/http has for it, and above all, the same
// bytes are taken for requests.
func TestRawRequestsAsNetHTTP(t *testing.T) {
	const start = "POST /a HTTP/1.1\r\nHost: h\r\n"
	const ok, bad, both = "200", "400", "200 200" // of the request, then of the probe
	tests := []struct {
		name, raw string
		want      string // statuses of the answers
	}{
		{"plain", start + "Content-Length: 3\r\n\r\nabc", both},
		{"no length", start + "\r\n", both},
		{"length with zeros before", start + "Content-Length: 003\r\n\r\nabc", both},
		{"length with blanks around", start + "Content-Length: \t 3 \r\n\r\nabc", both},
		{"length with a sign", start + "Content-Length: +3\r\n\r\nabc", bad},
		{"negative length", start + "Content-Length: -3\r\n\r\nabc", bad},
		{"length with a separator", start + "Content-Length: 1_0\r\n\r\nabc", bad},
		{"length in base 16", start + "Content-Length: 0x3\r\n\r\nabc", bad},
		{"length with a blank inside", start + "Content-Length: 3 0\r\n\r\nabc", bad},
		{"empty length", start + "Content-Length: \r\n\r\nabc", bad},
		{"length too large for 63 bits", start + "Content-Length: 9223372036854775808\r\n\r\nabc", bad},
		{"list of lengths", start + "Content-Length: 3, 3\r\n\r\nabc", bad},
		{"two lengths that differ", start + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", bad},
		{"two lengths that agree", start + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", both},
		{"length and chunked", start + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", both},
		{"chunked", start + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", both},
		{"chunked in capitals", start + "Transfer-Encoding: CHUNKED\r\n\r\n3\r\nabc\r\n0\r\n\r\n", both},
		{"chunked after a tab", start + "Transfer-Encoding:\tchunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", both},
		{"chunked behind another encoding", start + "Transfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "501"},
		{"unknown encoding", start + "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\nabc", "501"},
		{"two encodings", start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "501"},
		{"chunked with a blank before the colon", start + "Transfer-Encoding : chunked\r\nContent-Length: 3\r\n\r\nabc", bad},
		{"chunks with an extension", start + "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n", both},
		{"trailers", start + "Trailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n", both},
		{"chunked in HTTP/1.0", "POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", ok},
		{"HTTP/1.0", "POST /a HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", ok},
		{"HTTP/1.0 that stays", "POST /a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", both},
		{"HTTP/1.2", "GET /a HTTP/1.2\r\nHost: h\r\n\r\n", both},
		{"HTTP/3.0", "GET /a HTTP/3.0\r\nHost: h\r\n\r\n", "505"},
		{"no version", "GET /a\r\nHost: h\r\n\r\n", bad},
		{"version in lower case", "GET /a http/1.1\r\nHost: h\r\n\r\n", bad},
		{"two blanks", "GET  /a HTTP/1.1\r\nHost: h\r\n\r\n", bad},
		{"tab for a blank", "GET\t/a\tHTTP/1.1\r\nHost: h\r\n\r\n", bad},
		{"blank in the target", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", bad},
		{"blank behind the version", "GET /a HTTP/1.1 \r\nHost: h\r\n\r\n", bad},
		{"method in lower case", "get /a HTTP/1.1\r\nHost: h\r\n\r\n", both},
		{"method that is none", "G@T /a HTTP/1.1\r\nHost: h\r\n\r\n", bad},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", both},
		{"absolute target", "GET http://other/a HTTP/1.1\r\nHost: h\r\n\r\n", both},
		{"target of two slashes", "GET //other/a HTTP/1.1\r\nHost: h\r\n\r\n", both},
		{"target with a fragment", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", both},
		{"target with a broken escape", "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", bad},
		{"target of other characters", "GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n", both},
		{"target without a slash", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", bad},
		{"DELETE with a body", "DELETE /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", both},
		{"GET with a body", "GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", both},
		{"no host", "GET /a HTTP/1.1\r\nX: h\r\n\r\n", bad},
		{"empty host", "GET /a HTTP/1.1\r\nHost:\r\n\r\n", both},
		{"two hosts", "GET /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", bad},
		{"host that is none", "GET /a HTTP/1.1\r\nHost: h/\"x\r\n\r\n", bad},
		{"blank before the colon", start + "X-A : 1\r\n\r\n", bad},
		{"no colon", start + "X-A\r\n\r\n", bad},
		{"no name", start + ": 1\r\n\r\n", bad},
		{"name of other characters", start + "X-\xc3\xa9: 1\r\n\r\n", bad},
		{"name with a separator", start + "X(A): 1\r\n\r\n", bad},
		{"name with an underscore", start + "content_length: 7\r\n\r\n", both},
		{"value of other characters", start + "X-A: \xc3\xa9\r\n\r\n", both},
		{"zero byte in a value", start + "X-A: a\x00b\r\n\r\n", bad},
		{"delete in a value", start + "X-A: a\x7fb\r\n\r\n", bad},
		{"folded line", start + "X-A: 1\r\n b\r\n\r\n", both},
		{"folded line at the start", "GET /a HTTP/1.1\r\n Host: h\r\n\r\n", bad},
		{"length in a folded line", start + "Content-Length:\r\n 3\r\n\r\nabc", both},
		{"line feeds alone", "POST /a HTTP/1.1\nHost: h\nContent-Length: 3\n\nabc", both},
		{"line feed inside", start + "X-A: 1\nContent-Length: 3\r\n\r\nabc", both},
		{"end by a line feed alone", start + "Content-Length: 3\r\n\nabc", both},
		{"carriage return inside", start + "X-A: 1\rContent-Length: 3\r\n\r\n", bad},
		{"carriage return too many", start + "Content-Length: 3\r\r\n\r\nabc", bad},
		{"line before the request", "\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n", bad},
		{"line behind the body", start + "Content-Length: 3\r\n\r\nabc\r\n", both},
		{"bytes behind the body", start + "Content-Length: 3\r\n\r\nabcdef\r\n", "200 400"},
		{"request behind a short length", start + "Content-Length: 0\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n", "200 200 200"},
		{"request in a body", start + "Content-Length: 32\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n\r\n", both},
		{"many fields", start + strings.Repeat("a:\r\n", 3000) + "\r\n", both},
		{"close", start + "Connection: close\r\nContent-Length: 3\r\n\r\nabc", ok},
		{"close in a list", start + "Connection: x, Close\r\nContent-Length: 3\r\n\r\nabc", ok},
		{"close in a second field", start + "Connection: keep-alive\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc", ok},
		{"expectation", start + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", "100 200 200"},
		{"unknown expectation", start + "Expect: 200-ok\r\nContent-Length: 3\r\n\r\nabc", "417"},
		{"upgrade that nobody takes", start + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", both},
		{"pragma", start + "Pragma: no-cache\r\n\r\n", both},
		{"garbage", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", bad},
	}
	_, quick := listen(t, sawHandler)
	full := listenFull(t, sawHandler)
	for _, test := range tests {
		for _, before := range []string{"", post("")} { // also on a connection that is in use
			got, statuses := transcript(t, quick, before+test.raw+probe)
			want, _ := transcript(t, full, before+test.raw+probe)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s:\n%q, net/http:\n%q", test.name, got, want)
			}
			if before != "" {
				continue
			}
			if statuses != test.want {
				t.Errorf("%s: answers %s, want %s", test.name, statuses, test.want)
			}
		}
	}
}

// listenFull starts a server of net/http and returns its address.
func listenFull(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// transcript sends raw at once and returns all answers up to the end of the
// connection, and their statuses.
func transcript(t *testing.T, address, raw string) (answers []string, statuses string) {
	t.Helper()
	c := dial(t, address)
	c.send(raw)
	text, err := io.ReadAll(c.in)
	if err != nil {
		t.Errorf("%q: %v", raw[:min(100, len(raw))], err)
	}
	in := bufio.NewReader(strings.NewReader(string(text)))
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			if err != io.ErrUnexpectedEOF {
				t.Errorf("%q: answer %v of %q", raw, err, text)
			}
			return answers, strings.TrimSpace(statuses)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Header.Del("X-Full")
		resp.Header.Del("Date")
		answers = append(answers, fmt.Sprint(resp.Status, resp.Header, resp.ContentLength, resp.TransferEncoding, resp.Close, string(b), err))
		statuses += fmt.Sprint(" ", resp.StatusCode)
	}
}
