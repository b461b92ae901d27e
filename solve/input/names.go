package input

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const wantName = `1 to 63 of A-Z a-z 0-9 blank . _ -, a letter or digit first, no blank last`

// validName says whether s matches [A-Za-z0-9][A-Za-z0-9 ._-]{0,62} without a
// blank at the end.
func validName(s string) bool {
	if len(s) == 0 || len(s) > 63 || s[len(s)-1] == ' ' || !isAlnum(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case isAlnum(c), c == ' ', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// validText says whether s is free text as model ids are: not empty, UTF-8,
// no control characters.
func validText(s string) bool {
	return s != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// quote returns s quoted and cut to a readable length.
func quote(s string) string {
	const limit = 80
	if len(s) > limit {
		return fmt.Sprintf("%.*q... (%d bytes)", limit, s[:limit], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// didYouMean returns a hint that looks for the name nearest to a wrong one.
func didYouMean(wrong string, names []string) func() string {
	return func() string {
		if near := nearest(wrong, names); near != "" {
			return fmt.Sprintf("did you mean %q?", near)
		}
		return ""
	}
}

// didYouMeanKey is didYouMean for the keys of a map.
func didYouMeanKey[V any](wrong string, names map[string]V) func() string {
	return func() string { return didYouMean(wrong, sorted(names))() }
}

// nearest returns the name with the fewest edits to wrong, the first in order
// of name among equals, "" if none is near. A name that contains wrong, or the
// reverse, is the farthest that is still near.
func nearest(wrong string, names []string) string {
	limit := max(1, len(wrong)/3)
	best, bestEdits := "", limit+1
	for _, name := range names {
		var edits int
		switch d := len(name) - len(wrong); {
		case strings.EqualFold(name, wrong):
			edits = 0
		case min(len(name), len(wrong)) >= 3 && (strings.Contains(name, wrong) || strings.Contains(wrong, name)):
			edits = min(limit, max(d, -d))
		case max(d, -d) > bestEdits:
			continue // each edit changes the length by at most one
		default:
			edits = editDistance(wrong, name)
		}
		if edits < bestEdits || edits == bestEdits && best != "" && name < best {
			best, bestEdits = name, edits
		}
	}
	return best
}

// editDistance is the number of insertions, deletions, substitutions and
// swaps of neighbours between a and b, in bytes (optimal string alignment).
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			d := last[j-1]
			if a[i-1] != b[j-1] {
				d++
			}
			d = min(d, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// plural returns "1 cell" or "3 cells".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// list returns the first few names, quoted, and how many more there are.
func list(names []string) string {
	const limit = 5
	quoted := make([]string, 0, limit)
	for _, name := range names[:min(len(names), limit)] {
		quoted = append(quoted, quote(name))
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - limit; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
