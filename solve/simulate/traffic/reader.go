package traffic

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/irb-project/irb/solve/simulate/kv"
)

// reader collects requests and problems.
type reader struct {
	file     string
	trace    *Trace
	problems []error
	sessions map[string]*session
	start    time.Time // of the first row with a date
}

// session is what is known of an agent's session so far.
type session struct {
	prompt float64
	epoch  uint64 // of its text, which begins anew when the agent compacts it
}

func (t *reader) problemf(line int, format string, args ...any) {
	if len(t.problems) < maxProblems {
		t.problems = append(t.problems, fmt.Errorf("%s:%d: %s", t.file, line, fmt.Sprintf(format, args...)))
	}
}

// full says that enough problems are known.
func (t *reader) full() bool { return len(t.problems) >= maxProblems }

// add takes a request, or counts it if it has no prompt.
func (t *reader) add(r Request) {
	if r.PromptTokens < 1 {
		t.trace.Skipped++
		return
	}
	t.trace.Requests = append(t.trace.Requests, r)
}

// mooncakeBlock is the size of the blocks that Mooncake's traces name.
const mooncakeBlock = 512

// keyBlocks is how many blocks of a Mooncake prompt make its affinity key, as
// the agent keys raw prompts by their beginning: all of one trace share the
// first block.
const keyBlocks = 2

// readLines reads Mooncake's JSON lines.
func (t *reader) readLines(in *bufio.Reader) {
	t.trace.BlockTokens = mooncakeBlock
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, 16<<20)
	for line := 1; scan.Scan() && !t.full(); line++ {
		text := strings.TrimSpace(strings.TrimPrefix(scan.Text(), "\ufeff"))
		if text == "" {
			continue
		}
		var row struct {
			Timestamp    *float64 `json:"timestamp"`
			InputLength  *float64 `json:"input_length"`
			OutputLength *float64 `json:"output_length"`
			HashIDs      []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.problemf(line, "is no request: %v", err)
			continue
		}
		if row.Timestamp == nil || row.InputLength == nil || row.OutputLength == nil {
			t.problemf(line, "lacks timestamp, input_length or output_length, want all three")
			continue
		}
		at := t.within(line, "timestamp", *row.Timestamp, maxSeconds*1000) / 1000
		r := Request{
			AtS:          at,
			PromptTokens: t.within(line, "input_length", *row.InputLength, maxTokens),
			OutputTokens: t.within(line, "output_length", *row.OutputLength, maxTokens),
			Prefix:       kv.Prefix{Named: row.HashIDs},
		}
		for _, id := range row.HashIDs[:min(keyBlocks, len(row.HashIDs))] {
			r.Conversation = scramble(r.Conversation ^ id)
		}
		t.add(r)
	}
	if err := scan.Err(); err != nil {
		t.problems = append(t.problems, fmt.Errorf("%s: %w", t.file, err))
	}
}

const (
	maxSeconds = 1e10 // as unix time: the year 2286
	maxTokens  = 1e8
)

// within returns x if it is a finite number from 0 to limit, else 0.
func (t *reader) within(line int, name string, x, limit float64) float64 {
	if !(x >= 0 && x <= limit) {
		t.problemf(line, "%s is %v, want 0 to %g", name, x, limit)
		return 0
	}
	return x
}

// columns are the places of what a table tells; -1: it does not.
type columns struct {
	at, prompt, output, session int
	date                        bool // at is a date, not seconds
}

// readTable reads one of the CSV formats, told by their headers.
func (t *reader) readTable(in *bufio.Reader) {
	rows := csv.NewReader(in)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		t.problemf(1, "has no header: %v", err)
		return
	}
	header = slices.Clone(header) // the reader uses its rows again
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	c, ok := columnsOf(header)
	if !ok {
		t.problemf(1, "header %q is of no known trace, want Azure's (TIMESTAMP, ContextTokens, GeneratedTokens), BurstGPT's (Timestamp, Request tokens, Response tokens), or sessions with input_tokens, output_tokens and request_arrival_delta_s or start_time_unix_s",
			strings.Join(header, ","))
		return
	}
	t.sessions = map[string]*session{}
	for !t.full() {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			line := 0
			if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
				line = parse.Line
				err = parse.Err
			}
			t.problemf(line, "is no row: %v", err)
			if !errors.Is(err, csv.ErrFieldCount) {
				return
			}
			continue
		}
		line, _ := rows.FieldPos(0)
		t.readRow(line, row, c, header)
	}
}

func columnsOf(header []string) (columns, bool) {
	find := func(names ...string) int {
		return slices.IndexFunc(header, func(h string) bool { return slices.Contains(names, strings.TrimSpace(h)) })
	}
	c := columns{
		at:      find("TIMESTAMP", "Timestamp", "request_arrival_delta_s", "start_time_unix_s"),
		prompt:  find("ContextTokens", "Request tokens", "input_tokens"),
		output:  find("GeneratedTokens", "Response tokens", "output_tokens"),
		session: find("session_id", "Session ID"),
	}
	if c.at < 0 || c.prompt < 0 || c.output < 0 {
		return c, false
	}
	c.date = header[c.at] == "TIMESTAMP"
	return c, true
}

func (t *reader) readRow(line int, row []string, c columns, header []string) {
	before := len(t.problems)
	var r Request
	if c.date {
		// 100 ns digits, which layouts with 9s take as they come.
		at, err := time.Parse("2006-01-02 15:04:05.999999999", row[c.at])
		if err != nil {
			t.problemf(line, "%s is %q, want a time such as 2023-11-16 18:17:03.9799600", header[c.at], row[c.at])
		}
		if t.start.IsZero() {
			t.start = at
		}
		r.AtS = at.Sub(t.start).Seconds()
	} else {
		r.AtS = t.number(line, header[c.at], row[c.at], maxSeconds)
	}
	r.PromptTokens = t.number(line, header[c.prompt], row[c.prompt], maxTokens)
	r.OutputTokens = t.number(line, header[c.output], row[c.output], maxTokens)
	if c.session >= 0 && row[c.session] != "" {
		t.join(row[c.session], &r)
	}
	if len(t.problems) == before {
		t.add(r)
	}
}

// shrunk is the part of its length below which a prompt cannot be its
// predecessor gone on: the agent has compacted the text.
const shrunk = 0.8

// join makes a request part of its session, whose prompts go on from each
// other: real ones repeat almost all of what was said.
func (t *reader) join(id string, r *Request) {
	s := t.sessions[id]
	if s == nil {
		s = &session{}
		t.sessions[id] = s
	}
	r.Conversation = max(1, xxhash.Sum64String(id))
	if r.PromptTokens < shrunk*s.prompt {
		s.epoch++
	}
	s.prompt = r.PromptTokens
	r.Prefix.Conversation = scramble(r.Conversation + s.epoch)
}

func (t *reader) number(line int, name, text string, limit float64) float64 {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(x) {
		t.problemf(line, "%s is %q, want a number", name, text)
		return 0
	}
	return t.within(line, name, x, limit)
}
