package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress shows on a terminal which stage runs, once a command has taken
// longer than a second. It is silent elsewhere.
type progress struct {
	mu      sync.Mutex
	w       io.Writer // nil: no terminal
	current string
	shown   bool
	done    chan struct{}
	once    sync.Once
}

func (a *app) newProgress() *progress {
	p := &progress{done: make(chan struct{})}
	file, ok := a.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return p
	}
	p.w = file
	go p.run()
	return p
}

func (p *progress) run() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	start := time.Now()
	for {
		select {
		case <-p.done:
			return
		case <-tick.C:
			p.mu.Lock()
			fmt.Fprintf(p.w, "\r\x1b[K%s (%ds)", p.current, int(time.Since(start).Seconds()))
			p.shown = true
			p.mu.Unlock()
		}
	}
}

// stage names what begins now.
func (p *progress) stage(name string) {
	p.mu.Lock()
	p.current = name
	p.mu.Unlock()
}

// stop clears the line; it may be called twice.
func (p *progress) stop() {
	p.once.Do(func() {
		close(p.done)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.shown {
			fmt.Fprint(p.w, "\r\x1b[K")
		}
	})
}
