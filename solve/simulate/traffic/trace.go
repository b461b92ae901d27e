package traffic

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Trace is requests that were recorded, in order of time, the first at 0.
type Trace struct {
	Requests    []Request // without sources, see Assign
	BlockTokens int       // size of the blocks that it names; 0: it names none
	// Skipped rows have no prompt: requests that failed, as a rule.
	Skipped int
}

const (
	maxTraceBytes = 1 << 30
	maxProblems   = 50
)

// ReadTrace reads a trace. Its first line tells the format:
//
//	{"timestamp": ms, "input_length", "output_length", "hash_ids"}   Mooncake, a line per request
//	TIMESTAMP,ContextTokens,GeneratedTokens                          Azure 2023
//	session_id,...,request_arrival_delta_s,...,input_tokens,...      agents' sessions, times from the start of each
//	session_id,...,start_time_unix_s,...,input_tokens,...            agents' sessions
//	Timestamp,...,Request tokens,Response tokens,...                 BurstGPT
//
// The error names file and line of all that is wrong, up to 50.
func ReadTrace(file string, r io.Reader) (*Trace, error) {
	in := bufio.NewReaderSize(io.LimitReader(r, maxTraceBytes), 64<<10)
	t := &reader{file: file, trace: &Trace{}}
	head, err := in.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if head = bytes.TrimLeft(head, " \t\r\n\xef\xbb\xbf"); len(head) > 0 && head[0] == '{' {
		t.readLines(in)
	} else {
		t.readTable(in)
	}
	if err := errors.Join(t.problems...); err != nil {
		return nil, err
	}
	if len(t.trace.Requests) == 0 {
		return nil, fmt.Errorf("%s: has no request, want at least one", file)
	}
	t.trace.order()
	return t.trace, nil
}

// order sorts by time and lets the first request be at 0.
func (t *Trace) order() {
	slices.SortStableFunc(t.Requests, func(a, b Request) int { return cmp.Compare(a.AtS, b.AtS) })
	start := t.Requests[0].AtS
	turns := map[uint64]int32{}
	for i := range t.Requests {
		r := &t.Requests[i]
		r.AtS -= start
		if r.Conversation != 0 {
			r.Turn = turns[r.Conversation]
			turns[r.Conversation]++
		}
	}
}

// Before returns how many requests come before a time in s.
func (t *Trace) Before(atS float64) int {
	n, _ := slices.BinarySearchFunc(t.Requests, atS, func(r Request, at float64) int { return cmp.Compare(r.AtS, at) })
	return n
}

// Assign gives each conversation, or each request of none, to a source drawn by
// weight, the same one for the same seed.
func (t *Trace) Assign(weights []float64, seed uint64) {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	for i := range t.Requests {
		r := &t.Requests[i]
		draw := r.Conversation
		if draw == 0 {
			draw = uint64(i) + 1
		}
		x := float64(scramble(draw^seed<<32)>>11) / (1 << 53) * sum
		r.Source = 0
		for s, w := range weights {
			if x -= w; x < 0 && w > 0 {
				r.Source = int32(s)
				break
			}
		}
	}
}

// Replay gives the requests of a trace, speed times as fast, up to a time.
type Replay struct {
	trace            *Trace
	speed, durationS float64
	next             int
}

// NewReplay replays a trace from its start.
func NewReplay(t *Trace, speed, durationS float64) *Replay {
	return &Replay{trace: t, speed: speed, durationS: durationS}
}

// Next implements Stream.
func (p *Replay) Next(r *Request) bool {
	if p.next == len(p.trace.Requests) {
		return false
	}
	*r = p.trace.Requests[p.next]
	r.AtS /= p.speed
	p.next++
	return r.AtS < p.durationS
}
