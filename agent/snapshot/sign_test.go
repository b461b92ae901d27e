package snapshot

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"
)

func TestSignAndVerify(t *testing.T) {
	publicA, privateA := testKey(t, 1)
	publicB, privateB := testKey(t, 2)
	publicC, _ := testKey(t, 3)
	body := encode(t, twoRegions())
	file := signed(t, twoRegions(), privateA, privateB)
	if again := signed(t, twoRegions(), privateA, privateB); !bytes.Equal(file, again) {
		t.Error("the same body and keys give other bytes")
	}
	for _, test := range []struct {
		trusted []minisign.PublicKey
		want    []uint64
	}{
		{[]minisign.PublicKey{publicA}, []uint64{publicA.ID()}},
		{[]minisign.PublicKey{publicC, publicB}, []uint64{publicB.ID()}},
		{[]minisign.PublicKey{publicB, publicA}, []uint64{publicA.ID(), publicB.ID()}},
	} {
		got, ids, err := Verify(file, test.trusted)
		if err != nil || !bytes.Equal(got, body) || !slices.Equal(ids, test.want) {
			t.Errorf("Verify gives keys %v, error %v, want %v", ids, err, test.want)
		}
	}
	_, _, err := Verify(file, []minisign.PublicKey{publicC})
	want := "signed by " + KeyID(publicA.ID()) + ", " + KeyID(publicB.ID()) + ", which is not trusted"
	if !errors.Is(err, ErrSignature) || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want %q", err, want)
	}
	if _, _, err := Verify(file, nil); !errors.Is(err, ErrSignature) {
		t.Errorf("with no trusted key the error is %v", err)
	}
}

// A detached signature is a file of the minisign program; here the library
// stands for it, in cmd/irbctl the program itself is run.
func TestDetachAndAttach(t *testing.T) {
	public, private := testKey(t, 1)
	body := encode(t, twoRegions())
	_, signatures, err := Split(signed(t, twoRegions(), private))
	if err != nil {
		t.Fatal(err)
	}
	text, err := signatures[0].MarshalText()
	if err != nil || !minisign.Verify(public, body, text) {
		t.Errorf("the detached signature is not valid, error %v", err)
	}
	// Both algorithms of minisign are taken, with any comment.
	for name, minisig := range map[string][]byte{
		"plain":     minisign.SignWithComments(private, body, "timestamp:1\tfile:body", "signature from minisign secret key"),
		"prehashed": text,
	} {
		file, err := Attach(body, minisig)
		if err != nil {
			t.Fatal(err)
		}
		if _, ids, err := Verify(file, []minisign.PublicKey{public}); err != nil || len(ids) != 1 {
			t.Errorf("%s: Verify gives %v, %v", name, ids, err)
		}
	}
}

// TestAlgorithmIsSigned guards against reading a signature of the hash of the
// body as a plain signature: one bit tells the algorithms apart.
func TestAlgorithmIsSigned(t *testing.T) {
	public, private := testKey(t, 1)
	file := signed(t, twoRegions(), private)
	plain := bytes.Replace(file, []byte("\n# minisign: RU"), []byte("\n# minisign: RW"), 1)
	if bytes.Equal(plain, file) {
		t.Fatal("no prehashed signature found")
	}
	if _, _, err := Verify(plain, []minisign.PublicKey{public}); !errors.Is(err, ErrSignature) {
		t.Errorf("error is %v", err)
	}
}

func TestSignRefuses(t *testing.T) {
	_, private := testKey(t, 1)
	body := encode(t, twoRegions())
	file := signed(t, twoRegions(), private)
	for _, test := range []struct {
		name, want string
		err        error
	}{
		{"no key", "no key", second(Sign(body))},
		{"a signed body", "has signatures already", second(Sign(file, private))},
		{"a body of signatures only", "has signatures already", second(Sign([]byte("# minisign: \n"), private))},
		{"a key twice", "signs twice", second(Sign(body, private, private))},
		{"no line end", "does not end with a line end", second(Sign([]byte("a"), private))},
		{"no signature", "invalid signature", second(Attach(body, []byte("a")))},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: error is %v, want %q", test.name, test.err, test.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestSplitRefuses(t *testing.T) {
	_, private := testKey(t, 1)
	file := string(signed(t, twoRegions(), private))
	body, _, _ := strings.Cut(file, signatureLine)
	lines := strings.SplitAfter(strings.TrimPrefix(file, body), "\n")
	var many strings.Builder
	many.WriteString(body)
	for seed := range uint64(maxSignatures + 1) {
		_, key := testKey(t, 10+seed)
		more, err := Sign([]byte(body), key)
		if err != nil {
			t.Fatal(err)
		}
		many.WriteString(strings.TrimPrefix(string(more), body))
	}
	for name, test := range map[string]struct {
		file string
		want error
	}{
		"empty":                         {"", ErrTruncated},
		"body only":                     {body, ErrTruncated},
		"no last line end":              {strings.TrimSuffix(file, "\n"), ErrTruncated},
		"three lines":                   {body + strings.Join(lines[:3], ""), ErrTruncated},
		"a byte after":                  {file + "a", ErrTruncated},
		"a blank line after":            {file + "\n", ErrSignature},
		"a comment after":               {file + "# a comment\n", ErrSignature},
		"a key after":                   {file + "fleet = \"b\"\n", ErrSignature},
		"a blank line between":          {body + lines[0] + "\n" + strings.Join(lines[1:], ""), ErrSignature},
		"the same signature twice":      {file + strings.Join(lines, ""), ErrSignature},
		"a fifth line":                  {file + lines[0], ErrTruncated},
		"carriage returns":              {strings.ReplaceAll(file, "\n", "\r\n"), ErrSignature},
		"a blank at the end of a line":  {body + strings.ReplaceAll(strings.Join(lines, ""), "\n", " \n"), ErrSignature},
		"another untrusted comment":     {strings.Replace(file, "signature by", "signature from", 1), ErrSignature},
		"no comment":                    {strings.Replace(file, "untrusted comment: ", "", 1), ErrSignature},
		"more signatures than allowed":  {many.String(), ErrSignature},
		"base64 with other spare bits":  {strings.Replace(file, "=\n# minisign: trusted", "X\n# minisign: trusted", 1), ErrSignature},
		"a signature of another length": {strings.Replace(file, "RU", "RURU", 1), ErrSignature},
	} {
		if _, _, err := Split([]byte(test.file)); !errors.Is(err, test.want) {
			t.Errorf("%s: error is %v, want %v", name, err, test.want)
		}
	}
}
