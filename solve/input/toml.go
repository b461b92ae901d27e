package input

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// parseTOML returns the root table of a TOML file, nil if it is no TOML.
func parseTOML(f *file) *table {
	var values map[string]any
	text := string(f.text)
	if _, err := toml.Decode(text, &values); err != nil {
		line := 0
		message := strings.TrimPrefix(err.Error(), "toml: ")
		if parse, ok := errors.AsType[toml.ParseError](err); ok {
			line, message = parse.Position.Line, parse.Message
		}
		f.problemf(line, "is not TOML: %s", message)
		return nil
	}
	return &table{report: &f.report, what: "the file", values: values, at: indexLines(text)}
}

func toNumber(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v + 0, true // + 0 turns -0 into 0
	case int64:
		return float64(v), true
	}
	return 0, false
}

// show renders a TOML value for a message.
func show(value any) string {
	switch v := value.(type) {
	case string:
		return quote(v)
	case float64:
		return number(v)
	case []any, []map[string]any:
		return "a list"
	case map[string]any:
		return "a table"
	case time.Time:
		return "a time"
	}
	return fmt.Sprint(value) // int64, bool
}
