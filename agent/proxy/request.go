package proxy

import (
	"io"
	"net/http"
	"net/url"
)

// newRequest is the client's request as the engine of an attempt gets it.
func (x *exchange) newRequest(t *try) *http.Request {
	e, in := t.at.endpoint, x.request
	u := &url.URL{Scheme: e.url.Scheme, Host: e.host, Path: in.URL.Path, RawPath: in.URL.RawPath, RawQuery: in.URL.RawQuery, ForceQuery: in.URL.ForceQuery}
	if e.basePath != "" {
		u.RawPath = e.basePath + in.URL.EscapedPath()
		u.Path, _ = url.PathUnescape(u.RawPath) // both parts were parsed before
	}
	out := new(http.Request).WithContext(&t.ctx)
	out.Method, out.URL, out.Host, out.Header = in.Method, u, e.url.Host, x.requestHeader()
	out.Proto, out.ProtoMajor, out.ProtoMinor = "HTTP/1.1", 1, 1
	switch {
	case x.body != nil:
		out.Body = x.body.reader(x.once())
		out.ContentLength = int64(len(x.body.data))
		out.Trailer = in.Trailer
		if len(in.Trailer) > 0 {
			out.ContentLength = -1 // trailers need the chunked form
		}
		if x.proxy.http2 && !x.once() {
			// For a connection that the engine is about to close: it says
			// which requests it has not begun.
			out.GetBody = func() (io.ReadCloser, error) { return x.body.reader(false), nil }
		}
	case x.upload != nil:
		if in.ContentLength < 0 && in.Trailer == nil {
			in.Trailer = http.Header{} // for those that come unannounced
		}
		out.Body = x.upload
		out.ContentLength = in.ContentLength
		out.Trailer = in.Trailer
	}
	if isUpgrade(in) {
		out.Header["Connection"] = []string{"Upgrade"}
		out.Header["Upgrade"] = in.Header["Upgrade"]
	}
	return out
}
