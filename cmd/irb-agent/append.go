package main

import (
	"os"
	"sync"
)

// appendFile is a file that is appended to and may be moved away meanwhile.
type appendFile struct {
	path string

	mu sync.Mutex
	f  *os.File // nil before the first reopen
}

// reopen goes on with the file that has the path now, a new one if none has.
// After an error it goes on with the old one.
func (a *appendFile) reopen() error {
	next, err := os.OpenFile(a.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	a.mu.Lock()
	old := a.f
	a.f = next
	a.mu.Unlock()
	if old != nil {
		return old.Close()
	}
	return nil
}

func (a *appendFile) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.f.Write(p)
}

func (a *appendFile) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.f.Close()
}
