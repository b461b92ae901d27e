package report

import (
	"bytes"
	"io"
	"strings"
)

// WriteMarkdown prints a report in GitHub's Markdown. Names are text there
// too: nothing in them is markup.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b bytes.Buffer
	for i, part := range r.Parts {
		_, isItem := part.(Item)
		if i > 0 {
			if _, wasItem := r.Parts[i-1].(Item); !isItem || !wasItem {
				b.WriteByte('\n')
			}
		}
		switch p := part.(type) {
		case Heading:
			b.WriteString("### " + escape(string(p)) + "\n")
		case Line:
			b.WriteString(escape(string(p)) + "\n")
		case Note:
			b.WriteString("*" + escape(string(p)) + "*\n")
		case Item:
			b.WriteString("- " + escape(string(p)) + "\n")
		case *Table:
			p.markdown(&b)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (t *Table) markdown(b *bytes.Buffer) {
	line := func(text func(i int) string) {
		for i := range t.Columns {
			b.WriteString("| " + text(i) + " ")
		}
		b.WriteString("|\n")
	}
	line(func(i int) string { return escape(t.Columns[i].Title) })
	line(func(i int) string {
		if t.Columns[i].Kind == Number {
			return "---:"
		}
		return "---"
	})
	for _, row := range t.Rows {
		line(func(i int) string { return escape(row[i].Text) })
	}
}

// markup takes the meaning from what GitHub's Markdown and HTML give one to.
// Angle brackets and ampersands become entities, as a backslash does not stop
// every reader of HTML; a zero-width space stops mentions.
var markup = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `|`, `\|`, `~`, `\~`, `#`, `\#`,
	`<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, "@", "@\u200b", "\n", " ", "\r", " ", "://", ":\u200b//",
)

func escape(text string) string { return markup.Replace(text) }
