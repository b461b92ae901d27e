package input

import (
	"regexp"
	"strings"
	"testing"
)

func TestValidName(t *testing.T) {
	// The expression of the format, and no blank at the end.
	name := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}$`)
	for _, s := range []string{
		"a", "0", "East US 2", "a.b_c-d", "us-east", strings.Repeat("x", 63), "a  b",
		"", " ", "-a", ".a", "_a", " a", "a ", "a/b", "a\n", "\n", "a\tb", "é", "aé", "a\x00", strings.Repeat("x", 64), "a\"b",
	} {
		want := name.MatchString(s) && !strings.HasSuffix(s, " ")
		if got := validName(s); got != want {
			t.Errorf("validName(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	for _, test := range []struct {
		wrong string
		names string
		want  string
	}{
		{"regoin", "name region endpoints", "region"}, // a swap is one edit
		{"Region", "name region", "region"},           // so is nothing but case
		{"rtt", "from to rtt_ms", "rtt_ms"},
		{"engines", "engine profile", "engine"},
		{"us-eats", "us-west us-east", "us-east"},
		{"us-est", "us-west us-east", "us-east"}, // a tie: the first in order
		{"b", "a c", "a"},
		{"tools", "vision json", ""},
		{"x", "", ""},
	} {
		if got := nearest(test.wrong, strings.Fields(test.names)); got != test.want {
			t.Errorf("nearest(%q, %s) = %q, want %q", test.wrong, test.names, got, test.want)
		}
	}
}

func TestQuoteIsShort(t *testing.T) {
	if got, want := quote("a\"b"), `"a\"b"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := quote(strings.Repeat("x", 1000)); got != `"`+strings.Repeat("x", 80)+`"... (1000 bytes)` {
		t.Errorf("got %s", got)
	}
}
