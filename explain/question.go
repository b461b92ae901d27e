package explain

import "fmt"

// BadQuestion is a question that names what is not there or makes no sense.
type BadQuestion struct{ text string }

func (e *BadQuestion) Error() string { return e.text }

func badQuestion(format string, args ...any) error {
	return &BadQuestion{fmt.Sprintf(format, args...)}
}
