package reload

import (
	"context"
	"errors"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Run follows the file until ctx ends: by file events where there are any, and
// by looking at its content every poll interval, since network file systems
// send none.
func (r *Reloader) Run(ctx context.Context) {
	poll := time.NewTicker(r.options.PollInterval)
	defer poll.Stop()
	r.run(ctx, poll.C)
}

const (
	// glanceTime after the first of several events a file that is whole is taken
	// into service: most are renamed into place.
	glanceTime = 2 * time.Millisecond
	// settleTime without events must pass before anything is said about a file
	// that is not: an editor or a copy writes in steps.
	settleTime = 50 * time.Millisecond
	// maxSettle is the longest that a stream of events may put it off.
	maxSettle = 500 * time.Millisecond
)

func (r *Reloader) run(ctx context.Context, poll <-chan time.Time) {
	w, err := newWatcher(r.options.Path)
	r.tellUnwatched(err)
	defer w.close()
	r.loop(ctx, w, poll)
}

func (r *Reloader) loop(ctx context.Context, w *watcher, poll <-chan time.Time) {
	r.tellUnwatched(w.refresh())
	settle := time.NewTimer(0) // at once: the file may have changed since Start
	var latest time.Time       // of the timer; zero if it does not run
	glance := time.NewTimer(time.Hour)
	glance.Stop()
	for {
		var look func() // nil: there was an event
		select {
		case <-ctx.Done():
			return
		case e := <-w.events:
			if !w.matters(e) {
				continue
			}
		case err := <-w.errors:
			// An overflow hides events, so it counts as one.
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				r.tellUnwatched(err)
			}
		case <-glance.C:
			look = r.glance
		case <-settle.C:
			latest = time.Time{}
			look = func() { r.check(false) }
		case <-poll:
			look = r.poll
		case <-r.trigger:
			look = func() { r.check(true) }
		}
		r.tellUnwatched(w.refresh())
		if look != nil {
			look()
			continue
		}
		if latest.IsZero() {
			latest = time.Now().Add(maxSettle)
			glance.Reset(glanceTime)
		}
		settle.Reset(min(settleTime, time.Until(latest)))
	}
}

// tellUnwatched reports that file events are missing, the same reason once.
func (r *Reloader) tellUnwatched(err error) {
	if err == nil || err.Error() == r.unwatched {
		return
	}
	r.unwatched = err.Error()
	r.options.Report(Event{Result: Unwatched, Err: err})
}
