package input

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// limits are the largest sizes of a file in bytes.
type limits struct{ latency, other int64 }

// defaultLimits leave room for 10,000 x 10,000 round trips of nine characters,
// and for hundreds of thousands of sources or engines.
var defaultLimits = limits{latency: 1 << 30, other: 64 << 20}

// file is one input file in memory.
type file struct {
	report
	path   string
	data   []byte // exact bytes
	text   []byte // data without a byte order mark
	digest string // SHA-256 of data in hex
}

// load reads a whole file of at most limit bytes. What is wrong with it goes
// to its report; text is nil then.
func (f *file) load(limit int64) {
	data, err := readAtMost(f.path, limit)
	if err != nil {
		f.problemf(0, "%s", err)
		return
	}
	f.data, f.text = data, bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		f.problemf(1, "is UTF-16, want UTF-8")
		f.text = nil
	case len(bytes.TrimLeft(f.text, " \t\r\n")) == 0:
		f.problemf(0, "is empty")
		f.text = nil
	}
}

// readAtMost reads a file. Its errors name the path and what was wanted.
func readAtMost(path string, limit int64) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, pathError(path, err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, want a file", path)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, want at most %d", path, info.Size(), limit)
	}
	// One byte of room beyond the size lets the read that meets the end do so
	// without growing the buffer. The size of a pipe is 0.
	data := make([]byte, 0, info.Size()+1)
	for {
		n, err := in.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, pathError(path, err)
		}
		if int64(len(data)) > limit {
			return nil, fmt.Errorf("%s has more than %d bytes, want at most that", path, limit)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
	}
}

// pathError says why a path could not be read, without the system call.
func pathError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist", path)
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return fmt.Errorf("%s cannot be read: %w", path, err)
}

// hash sets the digest.
func (f *file) hash() {
	sum := sha256.Sum256(f.data)
	f.digest = hex.EncodeToString(sum[:])
}
