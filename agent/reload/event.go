package reload

import (
	"fmt"

	"github.com/irb-project/irb/agent/snapshot"
)

// The results of an event beside the reasons of package snapshot, which are
// results too.
const (
	Accepted    = "accepted"   // taken into service
	Unchanged   = "unchanged"  // in service already
	Unreadable  = "unreadable" // the file cannot be read
	BuildFailed = "build"      // no table can be made of it
	Stale       = "stale"      // the snapshot in service has expired and goes on serving
	Unwatched   = "unwatched"  // no file events: changes are found by polling alone
)

// Results returns every result, for the labels of metrics.
func Results() []string {
	all := []string{Accepted, Unchanged, Unreadable, BuildFailed, Stale, Unwatched}
	for _, reason := range snapshot.Reasons() {
		all = append(all, string(reason))
	}
	return all
}

// Event is something that happened to the weight file.
type Event struct {
	Result   string
	Sequence int64 // 0: not known
	Err      error // why it was refused
	// Expired: it is past its time, and serves all the same.
	Expired bool
	// FromState: it is about the file kept before the restart.
	FromState bool
	// StateErr: it is in service, but could not be kept for a restart.
	StateErr error
}

// ok says whether the weight file is what is in service.
func (e Event) ok() bool { return e.Result == Accepted || e.Result == Unchanged }

// same says whether telling e after o would tell nothing new.
func (e Event) same(o Event) bool {
	return e.Result == o.Result && e.Sequence == o.Sequence && fmt.Sprint(e.Err) == fmt.Sprint(o.Err) && e.FromState == o.FromState
}

// String is the sentence for the log.
func (e Event) String() string {
	name := "snapshot"
	if e.FromState {
		name = "kept snapshot"
	}
	if e.Sequence != 0 {
		name = fmt.Sprintf("%s %d", name, e.Sequence)
	}
	var text string
	switch e.Result {
	case Accepted:
		text = name + " is in service"
		if e.Expired {
			text += ", although it has expired"
		}
	case Unchanged:
		text = name + " is in service already"
	case Stale:
		text = name + " has expired and goes on serving"
	case Unreadable:
		text = fmt.Sprintf("weight file cannot be read: %v", e.Err)
		if e.FromState {
			text = "kept " + text
		}
	case Unwatched:
		text = fmt.Sprintf("no file events, only polling: %v", e.Err)
	default:
		text = fmt.Sprint(e.Err)
		if e.FromState {
			text = "kept " + text
		}
	}
	if e.StateErr != nil {
		text += fmt.Sprintf("; not kept for a restart: %v", e.StateErr)
	}
	return text
}
