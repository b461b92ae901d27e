package reload

import (
	"io"
	"os"
	"slices"
	"time"

	"github.com/irb-project/irb/agent/snapshot"
)

// lastRead is what the weight file was when it was read last.
type lastRead struct {
	info  os.FileInfo // nil: it could not be read
	since time.Time   // when it was first found so
	at    time.Time
}

// timeGrain is the coarsest unit in which file systems keep the time of a
// change: what is written later than that gets another time.
const timeGrain = 2 * time.Second

// pieceBytes is what is read or hashed at a time.
const pieceBytes = 256 << 10

// readFile returns the weight file, cut off above the size that is accepted. The
// next call uses the memory again.
func (r *Reloader) readFile() ([]byte, error) {
	last := r.read
	r.read = lastRead{}
	f, err := os.Open(r.options.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if !sameFile(info, last.info) {
		last.since = now
	}
	file := r.buffer[:0]
	for err == nil && len(file) <= snapshot.MaxBytes {
		file = slices.Grow(file, pieceBytes)
		var n int
		n, err = f.Read(file[len(file) : len(file)+pieceBytes])
		file = file[:len(file)+n]
		r.pacer.Pause()
	}
	r.buffer = file
	if err != nil && err != io.EOF {
		return nil, err
	}
	r.read = lastRead{info: info, since: last.since, at: now}
	return file, nil
}

// untouched says whether the weight file is the one that was read last, which a
// poll need not read again. It is opened, because a network file system asks its
// server then, and not for each look.
func (r *Reloader) untouched() bool {
	if r.read.info == nil || r.read.at.Sub(r.read.since) < timeGrain {
		return false
	}
	f, err := os.Open(r.options.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && sameFile(info, r.read.info)
}

func sameFile(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
