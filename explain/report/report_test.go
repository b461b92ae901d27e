package report

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func sample() *Report {
	r := &Report{}
	r.Line("first\nsecond")
	r.Heading("engines of %s", "us-east")
	t := NewTable(append([]Column{{"engine", Engine}}, Numbers("req/s", "of it")...)...)
	t.Add(Word("a-1"), Rate(100), Percent(0.75))
	t.Add(Word("großer"), Rate(2.5), Word(""))
	r.Add(t)
	r.Item("a-1 is full")
	r.Item("the rest is not")
	r.Line("after all")
	r.Add(NewTable(Texts("", "")...))
	r.Rest(0, "engines")
	r.Rest(2, "engines")
	return r
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := sample().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `first
second

engines of us-east
  engine  req/s   of it
  a-1       100  75.0 %
  großer    2.5
  a-1 is full
  the rest is not

after all

... and 2 engines
`
	if b.String() != want {
		t.Errorf("text is\n%s\nwant\n%s", b.String(), want)
	}
}

func TestColour(t *testing.T) {
	var plain, coloured strings.Builder
	if err := errors.Join(sample().WriteText(&plain), sample().WriteColour(&coloured)); err != nil {
		t.Fatal(err)
	}
	got := coloured.String()
	for _, want := range []string{
		"\x1b[1mengines of us-east\x1b[0m\n",
		"  \x1b[4mengine\x1b[0m  \x1b[4mreq/s\x1b[0m   \x1b[4mof it\x1b[0m\n",
		"\x1b[2m... and 2 engines\x1b[0m\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%q", want, got)
		}
	}
	if bare := regexp.MustCompile("\x1b\\[[0-9]m").ReplaceAllString(got, ""); bare != plain.String() {
		t.Errorf("without colour it is\n%s\nwant\n%s", bare, plain.String())
	}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	if err := sample().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	const want = `first

second

### engines of us-east

| engine | req/s | of it |
| --- | ---: | ---: |
| a-1 | 100 | 75.0 % |
| großer | 2.5 |  |

- a-1 is full
- the rest is not

after all

|  |  |
| --- | --- |

*... and 2 engines*
`
	if b.String() != want {
		t.Errorf("Markdown is\n%s\nwant\n%s", b.String(), want)
	}
}

// A name is text wherever it stands.
func TestNamesAreNoMarkup(t *testing.T) {
	for name, want := range map[string]string{
		`</script><img src=x onerror=alert(1)>`: `&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;`,
		"a|b":                                   `a\|b`,
		"a\n| b":                                `a \| b`,
		"`code` *b* _i_ ~s~":                    "\\`code\\` \\*b\\* \\_i\\_ \\~s\\~",
		"[x](javascript:y)":                     `\[x\](javascript:y)`,
		`back\slash`:                            `back\\slash`,
		"@team #1 &amp;":                        "@\u200bteam \\#1 &amp;amp;",
		"http://10.0.0.1:800":                   "http:\u200b//10.0.0.1:800",
	} {
		if got := escape(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("a|b\n<c>")
	f.Fuzz(func(t *testing.T, name string) {
		r, table := &Report{}, NewTable(Texts("x", "y")...)
		table.Add(Word(name), Word("z"))
		r.Add(table)
		var b strings.Builder
		if err := r.WriteMarkdown(&b); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) != 3 || strings.ContainsAny(lines[2], "<>") || strings.Count(strings.ReplaceAll(strings.ReplaceAll(lines[2], `\\`, ""), `\|`, ""), "|") != 3 {
			t.Errorf("%q becomes the row %q", name, lines)
		}
	})
}
