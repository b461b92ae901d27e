package collect

import (
	"errors"
	"os"
)

// swapInSteps exchanges two folders where that cannot be done in one step. For
// a moment b is not there: who reads then fails, and reads no mixture. A failure
// leaves both as they were.
func swapInSteps(a, b string) error {
	aside := a + ".aside"
	if err := os.Rename(b, aside); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return errors.Join(err, os.Rename(aside, b))
	}
	return os.Rename(aside, a)
}
