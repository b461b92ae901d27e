// Command irbctl computes, signs, verifies and explains routing policies.
package main

import (
	"io"
	"os"
	"time"
)

func main() {
	app := &app{
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.Getenv,
		now:    time.Now,
	}
	os.Exit(app.execute(os.Args[1:]))
}

// app is what a command may touch of the outside world.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	getenv func(string) string
	now    func() time.Time
}
