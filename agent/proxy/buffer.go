package proxy

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	errBodyTooLarge = errors.New("request body too large")
	errAgentFull    = errors.New("too many request bodies held at once")
)

// bodyMemory bounds the bytes of all request bodies that are held.
type bodyMemory struct {
	used  atomic.Int64
	limit atomic.Int64
	gauge prometheus.Gauge
}

func (m *bodyMemory) reserve(n int64) bool {
	if m.used.Add(n) > m.limit.Load() {
		m.used.Add(-n)
		return false
	}
	m.gauge.Set(float64(m.used.Load()))
	return true
}

func (m *bodyMemory) release(n int64) { m.gauge.Set(float64(m.used.Add(-n))) }

const (
	// smallBody is the size of the pooled memory, enough for most requests.
	smallBody = 16 << 10
	// firstBody is what a body gets at first, however long it says it will be; it
	// gets more, twice as much each time, when so much has come. Else a few clients
	// that announce much and send nothing would have all memory that there is.
	firstBody = 64 << 10
)

// bodyPool makes bodyBuffers that begin with pooled memory.
type bodyPool struct {
	memory *bodyMemory
	small  sync.Pool // *[smallBody]byte
}

// bodyBuffer is a request body in memory. It is used by the request and by each
// attempt's transport, which may read on after its attempt has failed; the last
// one to let go gives the memory back. Only the memory is pooled, not the
// bodyBuffer, so that letting go twice can never touch another request's.
type bodyBuffer struct {
	data     []byte
	small    *[smallBody]byte // what data began in
	reserved int64
	refs     atomic.Int32
	gone     atomic.Bool // the request has let go: no retry
	once     atomic.Bool // it is read by an attempt that will be the only one
	pool     *bodyPool
}

func (p *bodyPool) get() *bodyBuffer {
	small, ok := p.small.Get().(*[smallBody]byte)
	if !ok {
		small = new([smallBody]byte)
	}
	b := &bodyBuffer{data: small[:0], small: small, pool: p}
	b.refs.Store(1)
	return b
}

func (b *bodyBuffer) release() {
	if b.refs.Add(-1) > 0 {
		return
	}
	if b.reserved > 0 {
		b.pool.memory.release(b.reserved)
	}
	b.data = nil
	if b.small != nil {
		b.pool.small.Put(b.small)
		b.small = nil
	}
}

// grow makes room for n bytes within the limits.
func (b *bodyBuffer) grow(n int64) error {
	if more := n - b.reserved; more > 0 {
		if !b.pool.memory.reserve(more) {
			return errAgentFull
		}
		b.reserved = n
	}
	if n > int64(cap(b.data)) {
		b.data = append(make([]byte, 0, n), b.data...)
		if b.small != nil {
			b.pool.small.Put(b.small)
			b.small = nil
		}
	}
	return nil
}

// read fills the buffer from r, which says it holds length bytes (-1: it does
// not say). It fails with errBodyTooLarge above limit and errAgentFull if the
// agent holds too much already.
func (b *bodyBuffer) read(r io.Reader, length, limit int64) error {
	if length > limit {
		return errBodyTooLarge
	}
	if err := b.grow(min(max(length, 1), firstBody)); err != nil {
		return err
	}
	for {
		if len(b.data) == cap(b.data) {
			if int64(len(b.data)) == length { // the rest is the end of the body
				var one [1]byte
				n, err := r.Read(one[:])
				if n > 0 {
					return errBodyTooLarge
				}
				if err == io.EOF {
					return nil
				} else if err != nil {
					return err
				}
				continue
			}
			most := length
			if length < 0 {
				most = limit + 1
			}
			if err := b.grow(min(2*int64(cap(b.data)), most)); err != nil {
				return err
			}
		}
		n, err := r.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		if int64(len(b.data)) > limit {
			return errBodyTooLarge
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// reader returns a body for one attempt. With once set the buffer is given up
// when the attempt has read it: it is too large to keep for another.
func (b *bodyBuffer) reader(once bool) io.ReadCloser {
	b.refs.Add(1)
	return &bodyReader{buffer: b, rest: b.data, once: once}
}

// drop lets go of the request's own hold on the buffer; more than once is fine.
func (b *bodyBuffer) drop() {
	if !b.gone.Swap(true) {
		b.release()
	}
}

// bodyReader reads a bodyBuffer. Close may be called at any time and from
// another goroutine, as transports do.
type bodyReader struct {
	mu     sync.Mutex
	buffer *bodyBuffer // nil once closed
	rest   []byte
	once   bool
	begun  bool
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rest) == 0 || r.buffer == nil {
		return 0, io.EOF
	}
	if !r.begun {
		r.begun = true
		r.buffer.once.Store(r.once)
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buffer == nil {
		return nil
	}
	if r.once && r.begun {
		r.buffer.drop()
	}
	r.buffer.release()
	r.buffer, r.rest = nil, nil
	return nil
}
