package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// requestBytes is the size of a request body.
const requestBytes = 4 << 10

// request returns the bytes of request n. Every conversation has its own first
// user message, by which irb knows it, and its own x-session-id, by which the
// peers know it.
func request(path string, conversation int) []byte {
	head := fmt.Sprintf(`{"model":"chat","stream":%t,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Conversation %d. `,
		path == streamPath, conversation)
	const tail = `"}],"max_tokens":256}`
	body := head + strings.Repeat("word ", requestBytes/5)[:requestBytes-len(head)-len(tail)] + tail
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nX-Session-Id: %d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, conversation, len(body), body)
}

// conversations is how many different ones a caller has.
const conversations = 256

func requests(path string) [][]byte {
	all := make([][]byte, conversations)
	for i := range all {
		all[i] = request(path, i)
	}
	return all
}

// caller is one connection of the load generator.
type caller struct {
	conn   net.Conn
	reader *bufio.Reader
}

func dial(address string) (*caller, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &caller{conn: c, reader: bufio.NewReaderSize(c, 4<<10)}, nil
}

// send writes a request and reads the head of its answer.
func (c *caller) send(request []byte) (*http.Response, error) {
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
		return nil, fmt.Errorf("status %s: %s", answer.Status, bytes.TrimSpace(text))
	}
	return answer, nil
}

// ask sends a request and reads its whole answer.
func (c *caller) ask(request []byte) error {
	answer, err := c.send(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// withCallers runs work on n connections and returns the first error.
func withCallers(n int, address string, work func(i int, c *caller) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			c, err := dial(address)
			if err == nil {
				err = work(i, c)
				c.conn.Close()
			}
			errs[i] = err
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// closedCallers saturate a proxy on a small machine.
const closedCallers = 64

// closedLoop sends requests one after another on each of closedCallers
// connections. started is called after a warm-up, finished at the end, between
// them n requests were answered in took.
func closedLoop(address string, warm, duration time.Duration, started, finished func()) (n int64, took time.Duration, err error) {
	all := requests(askPath)
	var count atomic.Int64
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(warm)
		started()
		first, begin := count.Load(), time.Now()
		time.Sleep(duration)
		finished()
		n, took = count.Load()-first, time.Since(begin)
		stop.Store(true)
	}()
	err = withCallers(closedCallers, address, func(i int, c *caller) error {
		for k := i; !stop.Load(); k++ {
			if err := c.ask(all[k%len(all)]); err != nil {
				return err
			}
			count.Add(1)
		}
		return nil
	})
	<-done
	return n, took, err
}

const (
	// openRPS is the rate of the open loop.
	openRPS = 2000
	// openCallers are enough that none is still busy when its turn comes.
	openCallers = 32
)

// openLoop sends requests at openRPS and returns their latencies. Each is taken
// from when the request was due if its connection was still busy then, so that
// a slow answer counts for all that wait for it; else from when it was sent,
// which leaves out how late the kernel woke the sender.
func openLoop(address string, duration time.Duration) ([]time.Duration, error) {
	all := requests(askPath)
	const every = openCallers * time.Second / openRPS // of one caller
	latencies := make([][]time.Duration, openCallers)
	begin := time.Now().Add(100 * time.Millisecond)
	err := withCallers(openCallers, address, func(i int, c *caller) error {
		due := begin.Add(time.Duration(i) * time.Second / openRPS)
		for k := i; due.Sub(begin) < duration; k++ {
			from := due
			if wait := time.Until(due); wait > 0 {
				time.Sleep(wait)
				from = time.Now()
			}
			if err := c.ask(all[k%len(all)]); err != nil {
				return err
			}
			latencies[i] = append(latencies[i], time.Since(from))
			due = due.Add(every)
		}
		return nil
	})
	return slices.Concat(latencies...), err
}

// streamLoad holds n streams open and returns how long each token took from
// the engine to here. started is called when all streams run, finished after
// duration; only tokens between the two count.
func streamLoad(address string, n int, duration time.Duration, began time.Time, started, finished func()) ([]time.Duration, error) {
	all := requests(streamPath)
	var running atomic.Int64
	var counting atomic.Bool
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	latencies := make([][]time.Duration, n)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		for running.Load() < int64(n) && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second) // the burst of connections is over
		started()
		counting.Store(true)
		time.Sleep(duration)
		counting.Store(false)
		finished()
	}()
	err := withCallers(n, address, func(i int, c *caller) error {
		defer context.AfterFunc(ctx, func() { c.conn.Close() })()
		answer, err := c.send(all[i%len(all)])
		if err != nil {
			cancel()
			return err
		}
		running.Add(1)
		lines := bufio.NewReaderSize(answer.Body, 1<<10)
		for {
			line, err := lines.ReadSlice('\n')
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				cancel()
				return fmt.Errorf("stream %d broke: %w", i, err)
			}
			sent, ok := tokenTime(line)
			if ok && counting.Load() {
				latencies[i] = append(latencies[i], time.Since(began)-sent)
			}
		}
	})
	<-done
	tokens := slices.Concat(latencies...)
	if err == nil && len(tokens) == 0 {
		err = errors.New("no token came")
	}
	return tokens, err
}

// quantile returns the q-quantile, rounded up to a sample; it sorts d.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[max(0, int(math.Ceil(q*float64(len(d))))-1)]
}
