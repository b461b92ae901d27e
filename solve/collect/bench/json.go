package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
)

// object is a JSON object.
type object map[string]any

// readJSON reads one document or several, as tools append them, one result per
// line: each is an object or a list of objects.
func (in *reader) readJSON(data []byte) {
	text, replaced := withoutNaN(data)
	if replaced > 0 {
		r := Run{File: in.file}
		in.notes = append(in.notes, r.remark("%d values are NaN or Infinity, read as not measured", replaced))
	}
	documents := json.NewDecoder(bytes.NewReader(text))
	for {
		var raw json.RawMessage
		err := documents.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			at := len(text)
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				at = int(syntax.Offset)
			}
			in.problemf(lineAt(text, at), "is not JSON: %v", err)
			return
		}
		end := int(documents.InputOffset())
		line := lineAt(text, end-len(raw))
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			in.problemf(line, "is not JSON: %v", err)
			return
		}
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, element := range list {
			o, ok := element.(map[string]any)
			if !ok {
				in.problemf(line, "has a %T where a result is wanted, an object", element)
				return
			}
			in.document(line, o, raw)
		}
	}
}

// document reads the result of one tool, told by the keys that it alone has.
func (in *reader) document(line int, o object, raw []byte) {
	_, ttftObject := o["time_to_first_token"].(map[string]any)
	switch {
	case o["benchmarks"] != nil:
		in.source.Format = "GuideLLM"
		in.guidellm(line, o)
	case o["load_summary"] != nil && o["successes"] != nil:
		in.source.Format = "inference-perf"
		in.inferencePerf(line, o)
	case o["status"] != nil && o["data"] != nil:
		in.source.Format = "Prometheus"
		in.prometheus(line, raw)
	case ttftObject:
		in.source.Format = "GenAI-Perf or AIPerf"
		in.genAIPerf(line, o)
	case o["request_throughput"] != nil:
		in.source.Format = "vLLM"
		in.vllm(line, o)
	default:
		keys := slices.Sorted(maps.Keys(o))
		in.problemf(line, "is no result of vllm bench serve, GuideLLM, inference-perf, GenAI-Perf, AIPerf or a Prometheus range query; its keys are %.200q", keys)
	}
}

// number returns the number at a path of keys, 0 if there is none.
func (o object) number(path ...string) float64 {
	o, last := o.walk(path)
	v, _ := o[last].(float64)
	return v
}

// text returns the string at a path of keys, "" if there is none.
func (o object) text(path ...string) string {
	o, last := o.walk(path)
	s, _ := o[last].(string)
	return s
}

// sub returns the object at a path of keys, an empty one if there is none.
func (o object) sub(path ...string) object {
	o, last := o.walk(path)
	s, _ := o[last].(map[string]any)
	return s
}

func (o object) walk(path []string) (object, string) {
	for _, key := range path[:len(path)-1] {
		next, _ := o[key].(map[string]any)
		o = next
	}
	return o, path[len(path)-1]
}

// first returns the first of several keys whose number is there.
func (o object) first(keys ...string) float64 {
	for _, key := range keys {
		if v := o.number(key); v != 0 {
			return v
		}
	}
	return 0
}

// lineAt returns the line of an offset, from 1.
func lineAt(text []byte, offset int) int {
	offset = max(0, min(offset, len(text)))
	return 1 + bytes.Count(text[:offset], []byte{'\n'})
}

// withoutNaN replaces NaN and Infinity, which Python writes and JSON does not
// know, by 0, which is not measured, and blanks; it returns how many there were.
func withoutNaN(data []byte) (text []byte, replaced int) {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data, 0
	}
	text = bytes.Clone(data)
	inString := false
	for i := 0; i < len(text); i++ {
		switch {
		case inString && text[i] == '\\':
			i++
		case text[i] == '"':
			inString = !inString
		case inString:
		default:
			for _, word := range []string{"NaN", "-Infinity", "Infinity"} {
				if bytes.HasPrefix(text[i:], []byte(word)) {
					copy(text[i:], "0        "[:len(word)])
					i += len(word) - 1
					replaced++
					break
				}
			}
		}
	}
	return text, replaced
}
