package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// holder is what the lock file says of the process that holds it.
type holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// lockOutput lets one process at a time make an output, from reading what is
// there to replacing it. It locks the hidden file .NAME.lock beside the output.
// The lock ends with the process, however that ends.
func lockOutput(output string, now time.Time) (release func(), err error) {
	if output == "" || output == "-" {
		return func() {}, nil
	}
	if target, err := filepath.EvalSymlinks(output); err == nil {
		output = target
	}
	output = filepath.Clean(output)
	path := filepath.Join(filepath.Dir(output), "."+filepath.Base(output)+".lock")
	for {
		f, err := openLocked(path, output)
		if err != nil {
			return nil, err
		}
		// The last holder removes the file before it lets go: who locked
		// the file that is gone has locked nothing.
		mine, err1 := f.Stat()
		there, err2 := os.Stat(path)
		if err1 != nil || err2 != nil || !os.SameFile(mine, there) {
			f.Close()
			continue
		}
		host, _ := os.Hostname()
		if text, err := json.Marshal(holder{os.Getpid(), host, now.UTC()}); err == nil && f.Truncate(0) == nil {
			_, _ = f.Write(append(text, '\n')) // for the eyes of others only
		}
		return func() {
			_ = os.Remove(path)
			f.Close()
		}, nil
	}
}

func openLocked(path, output string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock of %s: %w", output, err)
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return f, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		err := fmt.Errorf("%s is being made by %s; nothing written", output, readHolder(f))
		return nil, errors.Join(err, f.Close())
	default:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
}

func readHolder(f *os.File) string {
	var h holder
	text, err := io.ReadAll(io.LimitReader(f, 1<<12))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return "another process"
	}
	return fmt.Sprintf("process %d on %s since %s", h.PID, h.Host, h.Since.Format(time.RFC3339))
}
