package bench

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxName is the length of a name in an input file.
const maxName = 63

// profileNames makes a name for every group, from GPU, model, the other labels
// that differ between them, and the lengths where a configuration has several. All are
// valid names of profiles and differ.
func profileNames(list []*group) []string {
	differs := differingLabels(list)
	shapes := make(map[string]int)
	for _, g := range list {
		shapes[labelKey(g.labels)]++
	}
	names := make([]string, len(list))
	taken := make(map[string]bool)
	for i, g := range list {
		var parts []string
		for _, l := range g.labels {
			if (differs[l.Key] || identity(l.Key)) && l.Value != "" && l.Value != "0" {
				parts = append(parts, namePart(l))
			}
		}
		if len(parts) == 0 {
			base := filepath.Base(g.first().File)
			parts = append(parts, cleanName(strings.TrimSuffix(base, filepath.Ext(base))))
		}
		shape := ""
		if shapes[labelKey(g.labels)] > 1 {
			shape = fmt.Sprintf("-%.0f-%.0f", g.promptTokens, g.outputTokens)
		}
		names[i] = unique(strings.Join(parts, "-"), shape, taken)
	}
	return names
}

// identity says whether a label is always part of a name, so that profiles of
// several calls can stand in one file.
func identity(key string) bool {
	return key == "gpu" || key == "model" || key == "model_id" || key == "folder"
}

// differingLabels returns the keys whose values are not the same everywhere.
func differingLabels(list []*group) map[string]bool {
	first := make(map[string]string)
	differs := make(map[string]bool)
	for i, g := range list {
		for _, l := range g.labels {
			if v, ok := first[l.Key]; ok && v != l.Value || !ok && i > 0 {
				differs[l.Key] = true
			}
			if _, ok := first[l.Key]; !ok {
				first[l.Key] = l.Value
			}
		}
	}
	return differs
}

// namePart is a label in a name: the last part of a path-like value, and the
// key before a bare number.
func namePart(l Label) string {
	value := l.Value[strings.LastIndexAny(l.Value, "/\\")+1:]
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return cleanName(shortKey(l.Key) + value)
	}
	return cleanName(value)
}

// shortKey shortens all words of a key but the last to their first letters:
// attention_dp is adp.
func shortKey(key string) string {
	words := strings.Split(key, "_")
	for i := range words[:len(words)-1] {
		words[i] = words[i][:min(1, len(words[i]))]
	}
	return strings.Join(words, "")
}

// cleanName replaces what a name cannot have.
func cleanName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._-", r)) {
			return r
		}
		return '-'
	}, s)
}

// ValidName says whether a name can be that of a profile here.
func ValidName(name string) bool {
	return name == unique(cleanName(name), "", make(map[string]bool))
}

// unique returns a valid name that is not taken, and takes it: base, cut to
// leave room for the end.
func unique(base, end string, taken map[string]bool) string {
	base = strings.TrimLeft(base, "._-")
	if base == "" {
		base = "profile"
	}
	name := base[:min(len(base), maxName-len(end))] + end
	for n := 2; taken[name]; n++ {
		more := end + "-" + strconv.Itoa(n)
		name = base[:min(len(base), maxName-len(more))] + more
	}
	taken[name] = true
	return name
}
