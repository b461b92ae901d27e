package bench

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// readCSV reads a table with one run per row. Columns are found by name, see
// columns.go; times need their unit in it.
func (in *reader) readCSV(data []byte) {
	rows := csv.NewReader(bytes.NewReader(data))
	rows.FieldsPerRecord = -1
	rows.Comment = '#'
	head, err := rows.Read()
	if err != nil {
		in.csvProblem(err)
		return
	}
	t := &csvTable{in: in, head: slices.Clone(head)}
	t.find()
	if len(in.problems) > 0 {
		return
	}
	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			in.csvProblem(err)
			return
		}
		line, _ := rows.FieldPos(0)
		t.row(line, cells)
	}
}

func (in *reader) csvProblem(err error) {
	line := 0
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		line, err = parse.StartLine, parse.Err
	}
	in.problemf(line, "is not CSV: %v", err)
}

// csvTable is a CSV whose columns are known.
type csvTable struct {
	in      *reader
	head    []string
	columns map[quantity]column
	by      []int // columns that name the configuration
}

// find looks for the columns that are needed and reports those that are not
// there, all at once.
func (t *csvTable) find() {
	t.columns = make(map[quantity]column)
	var noUnit []string
	used := make(map[int]bool)
	seen := make(map[string]bool)
	for i, name := range t.head {
		key := strings.TrimSpace(name)
		if seen[key] {
			t.in.problemf(1, "column %q is there twice", key)
		}
		seen[key] = true
		c, ok := parseColumn(name)
		if !ok {
			continue
		}
		c.index, c.name = i, key
		used[i] = true
		if c.scale == 0 {
			noUnit = append(noUnit, key)
			continue
		}
		if old, taken := t.columns[c.quantity]; !taken || c.rank < old.rank {
			t.columns[c.quantity] = c
		}
	}
	t.demand(ttft, "TTFT, like ttft_ms or mean_ttft_ms", noUnit)
	t.demand(tbot, "TBOT, like tpot_ms, itl_ms or tbot_ms", noUnit)
	if !t.has(concurrency) && !t.has(offered) && !t.has(completed) {
		t.in.problemf(1, "has no column of load, want concurrency, request_rate_rps or throughput_rps")
	}
	for _, q := range []struct {
		q            quantity
		perSecond    quantity
		option       float64
		column, flag string
	}{
		{prompt, inputTokS, t.in.options.PromptTokens, "prompt_tokens (or isl)", "--prompt-tokens"},
		{output, outputTokS, t.in.options.OutputTokens, "output_tokens (or osl)", "--output-tokens"},
	} {
		if !t.has(q.q) && q.option == 0 && !(t.has(q.perSecond) && t.has(completed)) {
			t.in.problemf(1, "has no column %s, want one, or %s", q.column, q.flag)
		}
	}
	t.configuration(used)
}

func (t *csvTable) has(q quantity) bool {
	_, ok := t.columns[q]
	return ok
}

func (t *csvTable) demand(q quantity, want string, noUnit []string) {
	if t.has(q) {
		return
	}
	for _, name := range noUnit {
		if c, _ := parseColumn(name); c.quantity == q {
			t.in.problemf(1, "column %q does not say its unit, want it in the name: %s_ms, %s_s or %s_us", name, name, name, name)
			return
		}
	}
	t.in.problemf(1, "has no column of %s", want)
}

// configuration finds the columns that tell configurations apart.
func (t *csvTable) configuration(used map[int]bool) {
	if by := t.in.options.By; by != nil {
		for _, name := range by {
			i := slices.IndexFunc(t.head, func(h string) bool { return strings.TrimSpace(h) == name })
			if i < 0 {
				t.in.problemf(1, "has no column %q to tell configurations apart; it has %s", name, strings.Join(t.head, ", "))
				continue
			}
			t.by = append(t.by, i)
		}
	}
	for i, name := range t.head {
		name = strings.TrimSpace(name)
		switch {
		case t.in.options.By != nil && slices.Contains(t.by, i):
			t.in.source.By = append(t.in.source.By, name)
		case used[i]:
		case t.in.options.By == nil && name != "" && !ofOneRun(name):
			t.by = append(t.by, i)
			t.in.source.By = append(t.in.source.By, name)
		default:
			t.in.source.Ignored = append(t.in.source.Ignored, name)
		}
	}
}

// row reads one run.
func (t *csvTable) row(line int, cells []string) {
	if len(cells) != len(t.head) {
		t.in.unreadable(line, fmt.Sprintf("row has %d cells, want %d as in the header", len(cells), len(t.head)))
		return
	}
	r := Run{Line: line}
	var faults []string
	value := func(q quantity) float64 {
		c, ok := t.columns[q]
		if !ok {
			return 0
		}
		v, fault := number(cells[c.index])
		if fault != "" {
			if q.optional() {
				return 0
			}
			faults = append(faults, c.name+" "+fault)
			return math.NaN()
		}
		return v * c.scale
	}
	r.TTFTMs, r.TBOTMs, r.E2EMs = value(ttft), value(tbot), value(e2e)
	r.PromptTokens, r.OutputTokens = value(prompt), value(output)
	r.Concurrency, r.OfferedRPS, r.CompletedRPS = value(concurrency), value(offered), value(completed)
	r.Completed, r.Failed = value(requestsOK), value(requestsFailed)
	if in := value(inputTokS); r.PromptTokens == 0 && r.CompletedRPS > 0 {
		r.PromptTokens = in / r.CompletedRPS
	}
	switch out := value(outputTokS); {
	case r.OutputTokens == 0 && r.CompletedRPS > 0:
		r.OutputTokens = out / r.CompletedRPS
	case r.CompletedRPS == 0 && r.OutputTokens > 0:
		r.CompletedRPS = out / r.OutputTokens
	}
	for _, i := range t.by {
		r.Labels = append(r.Labels, Label{strings.TrimSpace(t.head[i]), strings.TrimSpace(cells[i])})
	}
	t.in.add(r, faults...)
}

// number reads a cell; a blank one is 0, not measured.
func number(cell string) (v float64, fault string) {
	cell = strings.TrimSpace(cell)
	if cell == "" {
		return 0, ""
	}
	v, err := strconv.ParseFloat(cell, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Sprintf("is %.40q, want a finite number > 0", cell)
	}
	return v, ""
}
