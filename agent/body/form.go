package body

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"

	"github.com/cespare/xxhash/v2"
)

// ScanForm reads a multipart/form-data body: audio and images. boundary is the
// parameter of the content type.
//
// The key of a form is made of its model, its prompt and the head of its first
// file: there are no turns to keep together, but repeats.
func ScanForm(b []byte, boundary string) (Request, error) {
	rest := bytes.NewReader(b)
	offset := func() int { return len(b) - rest.Len() } // rounded up to what is read ahead
	if boundary == "" {
		return Request{}, &SyntaxError{Offset: 0, Problem: "the content type names no boundary"}
	}
	if !bytes.Contains(b, []byte("--"+boundary+"--")) {
		// The reader below takes a form cut inside a part's header for complete.
		return Request{}, &SyntaxError{Offset: len(b), Problem: "form: the closing boundary is missing"}
	}
	f := formBody{}
	f.file.reset(maxItemBytes)
	reader := multipart.NewReader(rest, boundary)
	for {
		// NextPart would undo quoted-printable, which engines do not.
		part, err := reader.NextRawPart()
		if err == io.EOF { // not errors.Is: a form that is cut short wraps it
			break
		}
		if err == nil {
			err = f.part(part)
		}
		if errors.Is(err, ErrDuplicateModel) {
			return Request{}, err
		}
		if err != nil {
			return Request{}, &SyntaxError{Offset: offset(), Problem: "form: " + err.Error()}
		}
	}
	return f.request(), nil
}

// formBody gathers a Request on the way through a form.
type formBody struct {
	Request
	hasModel bool
	hasFile  bool
	prompt   uint64
	file     limited
}

// part reads one part. A file called model is a second model to some parsers.
func (f *formBody) part(p *multipart.Part) error {
	switch name := p.FormName(); {
	case name == "model":
		if f.hasModel {
			return ErrDuplicateModel
		}
		f.hasModel = true
		value, err := io.ReadAll(io.LimitReader(p, maxNameBytes+1))
		if err == nil && len(value) > maxNameBytes {
			err = fmt.Errorf("model is longer than %d bytes", maxNameBytes)
		}
		f.Model = string(value)
		return err
	case name == "stream":
		value, err := io.ReadAll(io.LimitReader(p, maxNameBytes))
		f.Stream = string(value) == "true" || string(value) == "True" || string(value) == "1"
		return err
	case name == "prompt":
		d := xxhash.New()
		n, err := io.Copy(d, p)
		f.prompt = d.Sum64()
		f.PromptTokens += n / 4
		return err
	case p.FileName() != "" && !f.hasFile:
		f.hasFile = true
		head, err := io.ReadAll(io.LimitReader(p, maxItemBytes))
		f.file.write(head)
		return err
	}
	return nil // the reader goes past what is left
}

func (f *formBody) request() Request {
	if f.hasFile || f.prompt != 0 {
		f.Affinity = Affinity{SourceForm, combine(xxhash.Sum64String(f.Model), f.prompt, f.file.digest.Sum64())}
	}
	return f.Request
}
