package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"aead.dev/minisign"
)

// signatureLine starts each of the four lines of a signature. What follows it
// is a line of a minisign signature file.
const signatureLine = "# minisign: "

// maxSignatures bounds the signatures of a file; a rotation needs two.
const maxSignatures = 8

// trustedComment is what Sign has minisign sign beside the body. It is fixed so
// that the same body and key give the same file.
const trustedComment = "irb snapshot"

var (
	// ErrTruncated is returned for a file that ends before its signatures do.
	ErrTruncated = errors.New("no whole signature at the end: cut short, or never signed")
	// ErrSignature is wrapped by errors about signatures that are there.
	ErrSignature = errors.New("bad signature")
)

// untrustedComment is the one that a signature has in a weight file. No
// signature covers it, so it must follow from what is covered: there is no bit
// in a file that can change unseen.
func untrustedComment(keyID uint64) string { return "signature by key " + KeyID(keyID) }

// KeyID writes the id of a key as the minisign program does.
func KeyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// Digest returns the SHA-256 of data in hex.
func Digest(data []byte) string { return digest(data, func() {}) }

// digest is Digest with pauses.
func digest(data []byte, pause func()) string {
	sum := sha256.New()
	for piece := range slices.Chunk(data, pieceBytes) {
		sum.Write(piece)
		pause()
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// pieceBytes is what is hashed between two pauses, some 100 us. The runtime
// cannot stop a hash function to let another goroutine run, or to begin a
// garbage collection, for which all of them wait.
const pieceBytes = 64 << 10

// Sign returns a file: the body and one signature of each key, prehashed as the
// minisign program signs by default. The same body and keys give the same
// bytes.
func Sign(body []byte, keys ...minisign.PrivateKey) ([]byte, error) {
	if len(keys) == 0 {
		return nil, errors.New("no key to sign with")
	}
	if signaturesFrom(body) >= 0 {
		return nil, errors.New("the body has signatures already")
	}
	hash := prehash(body, func() {})
	file := body
	for _, key := range keys {
		var err error
		file, err = Attach(file, hash.SignWithComments(key, trustedComment, untrustedComment(key.ID())))
		if err != nil {
			return nil, err
		}
	}
	return file, nil
}

// Attach returns the file, a body or one with signatures, with a further
// signature: the text of a minisign signature of its body, prehashed or not.
// It does not verify it. The untrusted comment becomes ours.
func Attach(file, minisig []byte) ([]byte, error) {
	if !bytes.HasSuffix(file, []byte("\n")) {
		return nil, errors.New("the body does not end with a line end")
	}
	var s minisign.Signature
	if err := s.UnmarshalText(minisig); err != nil {
		return nil, err
	}
	s.UntrustedComment = untrustedComment(s.KeyID)
	text, err := s.MarshalText()
	if err != nil {
		return nil, err
	}
	file = slices.Clip(file)
	for line := range bytes.Lines(text) {
		file = append(file, signatureLine...)
		file = append(file, line...)
	}
	if _, _, err := Split(file); err != nil {
		return nil, err
	}
	return file, nil
}

// signaturesFrom returns where the first signature line starts, -1 if nowhere.
func signaturesFrom(file []byte) int {
	if bytes.HasPrefix(file, []byte(signatureLine)) {
		return 0
	}
	i := bytes.Index(file, []byte("\n"+signatureLine))
	if i < 0 {
		return -1
	}
	return i + 1
}

// Split takes a file apart into the signed bytes and the signatures. Each
// signature must be in the one form that Attach writes and nothing else may
// follow the body. Split does not verify them; MarshalText of a signature gives
// the .minisig file.
//
// The error is ErrTruncated or wraps ErrSignature.
func Split(file []byte) (body []byte, signatures []minisign.Signature, err error) {
	from := signaturesFrom(file)
	if from < 0 {
		return nil, nil, ErrTruncated
	}
	body, rest := file[:from:from], file[from:]
	for len(rest) > 0 {
		var s minisign.Signature
		if s, rest, err = nextSignature(rest); err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(signatures, func(t minisign.Signature) bool { return t.KeyID == s.KeyID }) {
			return nil, nil, fmt.Errorf("%w: key %s signs twice", ErrSignature, KeyID(s.KeyID))
		}
		if len(signatures) == maxSignatures {
			return nil, nil, fmt.Errorf("%w: more than %d", ErrSignature, maxSignatures)
		}
		signatures = append(signatures, s)
	}
	return body, signatures, nil
}

// nextSignature reads four signature lines.
func nextSignature(text []byte) (s minisign.Signature, rest []byte, err error) {
	var minisig []byte
	rest = text
	for range 4 {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if !whole {
			return s, nil, ErrTruncated
		}
		line, ours := bytes.CutPrefix(line, []byte(signatureLine))
		if !ours {
			return s, nil, fmt.Errorf("%w: found %.40q, want a line that starts with %q", ErrSignature, line, signatureLine)
		}
		minisig = append(append(minisig, line...), '\n')
		rest = after
	}
	if err := s.UnmarshalText(minisig); err != nil {
		return s, nil, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	s.UntrustedComment = untrustedComment(s.KeyID)
	if text, err := s.MarshalText(); err != nil || !bytes.Equal(text, minisig) {
		return s, nil, fmt.Errorf("%w: signature by key %s is not written as irbctl writes it", ErrSignature, KeyID(s.KeyID))
	}
	return s, rest, nil
}

// Verify takes a file apart and verifies its signatures: at least one must be
// by a trusted key, and every one by a trusted key must be right. Signatures by
// other keys are let be, for the agents that trust those. It returns the signed
// bytes and the ids of the trusted keys that signed them.
//
// The error is ErrTruncated or wraps ErrSignature.
func Verify(file []byte, trusted []minisign.PublicKey) (body []byte, keyIDs []uint64, err error) {
	return verify(file, trusted, func() {})
}

// verify is Verify with pauses.
func verify(file []byte, trusted []minisign.PublicKey, pause func()) (body []byte, keyIDs []uint64, err error) {
	body, signatures, err := Split(file)
	if err != nil {
		return nil, nil, err
	}
	pause()
	hashed := sync.OnceValue(func() *minisign.Reader { return prehash(body, pause) })
	var foreign []string
	for _, s := range signatures {
		known, valid := verifyOne(body, hashed, s, trusted)
		switch {
		case !known:
			foreign = append(foreign, KeyID(s.KeyID))
		case !valid:
			return nil, nil, fmt.Errorf("%w: the signature by key %s is not one of these bytes", ErrSignature, KeyID(s.KeyID))
		default:
			keyIDs = append(keyIDs, s.KeyID)
		}
	}
	if len(keyIDs) == 0 {
		return nil, nil, fmt.Errorf("%w: signed by %s, which is not trusted", ErrSignature, strings.Join(foreign, ", "))
	}
	return body, keyIDs, nil
}

// prehash returns a reader that has hashed all of the body.
func prehash(body []byte, pause func()) *minisign.Reader {
	hash := minisign.NewReader(bytes.NewReader(body))
	piece := make([]byte, pieceBytes)
	for {
		if _, err := hash.Read(piece); err != nil {
			return hash // at the end: memory is read without an error
		}
		pause()
	}
}

// verifyOne says whether a signature is by the id of a trusted key, and right.
func verifyOne(body []byte, hashed func() *minisign.Reader, s minisign.Signature, trusted []minisign.PublicKey) (known, valid bool) {
	text, err := s.MarshalText()
	if err != nil {
		return false, false
	}
	for _, key := range trusted {
		if key.ID() != s.KeyID {
			continue
		}
		known = true
		if s.Algorithm == minisign.HashEdDSA {
			valid = valid || hashed().Verify(key, text)
			continue
		}
		// Not minisign.Reader, which takes a plain signature of the hash for a
		// signature of the body, so that the algorithm byte of a signature could
		// change unseen.
		valid = valid || minisign.Verify(key, body, text)
	}
	return known, valid
}
