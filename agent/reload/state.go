package reload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/irb-project/irb/agent/snapshot"
)

// state is the folder that outlives the agent:
//
//	accepted.toml  the file accepted last, byte for byte
//	highest        its sequence, the digest of its body, the fleet
//
// The second repeats the first so that no older snapshot is accepted even when
// the first can no longer be read, by new keys or a new format.
type state struct {
	dir   string // "": nothing is kept
	fleet string
}

// mark is a sequence and the digest of the body that had it.
type mark struct {
	sequence int64
	digest   string
}

func (s state) acceptedPath() string { return filepath.Join(s.dir, "accepted.toml") }
func (s state) highestPath() string  { return filepath.Join(s.dir, "highest") }

// open makes the folder and reads the highest mark; that of another fleet does
// not count.
func (s state) open() (mark, error) {
	if s.dir == "" {
		return mark{}, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return mark{}, fmt.Errorf("state folder: %w", err)
	}
	return s.readHighest()
}

// CheckState says what New would say of a state folder, without making it.
func CheckState(dir, fleet string) error {
	if dir == "" {
		return nil
	}
	_, err := state{dir: dir, fleet: fleet}.readHighest()
	return err
}

func (s state) readHighest() (mark, error) {
	data, err := os.ReadFile(s.highestPath())
	if errors.Is(err, os.ErrNotExist) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, fmt.Errorf("state folder: %w", err)
	}
	var m mark
	var fleet string
	if n, err := fmt.Sscanf(string(data), "%d %64s %q\n", &m.sequence, &m.digest, &fleet); n != 3 {
		return mark{}, fmt.Errorf("%s: %q is no sequence, digest and fleet: %w; remove the file to forget the highest sequence accepted", s.highestPath(), data, err)
	}
	if fleet != s.fleet {
		return mark{}, nil
	}
	return m, nil
}

// readAccepted returns the file accepted last.
func (s state) readAccepted() ([]byte, error) {
	if s.dir == "" {
		return nil, os.ErrNotExist
	}
	return os.ReadFile(s.acceptedPath())
}

// keep writes both files, each as one atomic unit. After a crash in between the
// snapshot is newer than the mark, which harms nothing; the other way round it
// would be refused.
func (s state) keep(file []byte, m mark) error {
	if s.dir == "" {
		return nil
	}
	if err := snapshot.WriteFile(s.acceptedPath(), file); err != nil {
		return err
	}
	return snapshot.WriteFile(s.highestPath(), fmt.Appendf(nil, "%d %s %q\n", m.sequence, m.digest, s.fleet))
}
