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
	// settleTime without events must pass before the file is read: an editor or
	// a copy writes in steps.
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
	for {
		look, asked := false, false
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
		case <-settle.C:
			latest, look = time.Time{}, true
		case <-poll:
			look = true
		case <-r.trigger:
			look, asked = true, true
		}
		r.tellUnwatched(w.refresh())
		if look {
			r.check(asked)
			continue
		}
		if latest.IsZero() {
			latest = time.Now().Add(maxSettle)
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
