package config

import (
	"fmt"
	"strings"
)

// Markdown returns the table of settings for readers.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| setting | value | default | reload | meaning |\n|---|---|---|---|---|\n")
	for _, s := range Settings() {
		value := s.kind()
		switch {
		case s.OneOf != nil:
			value = strings.Join(s.OneOf, ", ")
		case s.Min != "":
			value = fmt.Sprintf("%s, %s to %s", value, s.Min, s.Max)
		}
		def := s.Default
		if def == "" {
			def = "none"
		}
		reload := ""
		if s.Reload {
			reload = "*"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", s.Key, value, def, reload, s.Meaning)
	}
	return b.String()
}
