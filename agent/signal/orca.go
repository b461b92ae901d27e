package signal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// The headers of ORCA load reports (Open Request Cost Aggregation): a request
// asks for one by FormatHeader with the value TEXT, the answer has it in
// ReportHeader. In their canonical form.
const (
	FormatHeader = "Endpoint-Load-Metrics-Format"
	ReportHeader = "Endpoint-Load-Metrics"
)

const (
	maxReportBytes  = 8 << 10 // of a header value
	maxReportFields = 64
)

var errBinary = errors.New("orca: a binary report, want TEXT as asked for, or JSON")

// ParseORCA reads the value of a ReportHeader: TEXT or JSON, with the word
// before it or without. A report with a duplicate, a value that is no finite
// number, or anything else that is malformed is refused whole: half of a report
// may be the wrong half.
//
//	TEXT named_metrics.kv_cache_usage_perc=0.4, named_metrics.num_requests_waiting=3
//	JSON {"named_metrics":{"kv_cache_usage_perc":0.4,"num_requests_waiting":3}}
//
// A TEXT report is read without allocation.
func ParseORCA(value string) (Report, error) {
	if len(value) > maxReportBytes {
		return Nothing(), fmt.Errorf("orca: %d bytes, want at most %d", len(value), maxReportBytes)
	}
	value = strings.TrimSpace(value)
	word, rest, _ := strings.Cut(value, " ")
	switch {
	case word == "TEXT":
		return parseText(rest)
	case word == "JSON":
		return parseJSON(rest)
	case word == "BIN":
		return Nothing(), errBinary
	case strings.HasPrefix(value, "{"):
		return parseJSON(value)
	}
	return parseText(value)
}

// fields collects the fields of a report and notices duplicates.
type fields struct {
	report Report
	seen   [maxReportFields]path
	n      int
}

// path is where a field is: "" or the name of a map, and the name in it.
type path struct{ prefix, name string }

func (f *fields) add(at path, x float64) error {
	name := at.name
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("orca: %q is %v, want a finite number", name, x)
	}
	if f.n == maxReportFields {
		return fmt.Errorf("orca: more than %d fields", maxReportFields)
	}
	for _, s := range f.seen[:f.n] {
		if s == at {
			return fmt.Errorf("orca: %q is there twice", name)
		}
	}
	f.seen[f.n] = at
	f.n++
	if at.prefix != "named_metrics" {
		return nil
	}
	name = name[strings.LastIndexByte(name, ':')+1:] // "vllm:num_requests_waiting"
	if q, ok := orcaName(name); ok {
		f.report.set(q, x)
	}
	return nil
}

func parseText(text string) (Report, error) {
	f := fields{report: Nothing()}
	for rest := text; ; {
		field, more, found := strings.Cut(rest, ",")
		name, value, ok := strings.Cut(field, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" {
			return Nothing(), fmt.Errorf("orca: %q, want NAME=NUMBER", field)
		}
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return Nothing(), fmt.Errorf("orca: %q is %q, want a finite number", name, value)
		}
		at := path{name: name}
		if prefix, inner, dotted := strings.Cut(name, "."); dotted {
			at = path{prefix, inner}
		}
		if err := f.add(at, x); err != nil {
			return Nothing(), err
		}
		if !found {
			return f.report, nil
		}
		rest = more
	}
}

// parseJSON reads tokens, because a decoded map would hide duplicates.
func parseJSON(text string) (Report, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	f := fields{report: Nothing()}
	if err := f.object(d, "", 0); err != nil {
		return Nothing(), err
	}
	if _, err := d.Token(); err != io.EOF {
		return Nothing(), errors.New("orca: something follows the JSON object")
	}
	return f.report, nil
}

// object reads one object and those within it, one level deep.
func (f *fields) object(d *json.Decoder, prefix string, depth int) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("orca: malformed JSON, want an object of numbers")
	}
	var maps []string // read so far
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return errors.New("orca: malformed JSON, want an object of numbers")
		}
		if nested := mapName(name); nested != "" && depth == 0 {
			for _, m := range maps {
				if m == nested {
					return fmt.Errorf("orca: %q is there twice", nested)
				}
			}
			maps = append(maps, nested)
			if err := f.object(d, nested, 1); err != nil {
				return err
			}
			continue
		}
		t, err = d.Token()
		number, ok := t.(json.Number)
		if err != nil || !ok {
			return fmt.Errorf("orca: %q is %v, want a finite number", name, t)
		}
		x, err := number.Float64()
		if err != nil {
			return fmt.Errorf("orca: %q is %v, want a finite number", name, number)
		}
		if err := f.add(path{prefix, name}, x); err != nil {
			return err
		}
	}
	_, err := d.Token() // the closing brace
	return err
}

// mapName returns the name of a field that holds an object, "" for others. The
// JSON of protobuf spells names in camel case.
func mapName(name string) string {
	switch name {
	case "named_metrics", "namedMetrics":
		return "named_metrics"
	case "utilization":
		return "utilization"
	case "request_cost", "requestCost":
		return "request_cost"
	}
	return ""
}
