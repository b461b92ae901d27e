package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"aead.dev/minisign"
	"github.com/spf13/cobra"

	"github.com/irb-project/irb/agent/snapshot"
)

// verifyFlags are the flags of irbctl verify.
type verifyFlags struct {
	pubs   []string
	proof  proofFlags
	detach bool
	output string
	json   bool
}

func (a *app) verifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify WEIGHTS",
		Short: "Check signature, format, meaning and expiry of a weight file",
		Long: `verify checks a weight file as an agent does that has served nothing yet: a
trusted key signed it, its format is known, its meaning is sound, it has not
expired. WEIGHTS is a file, - for standard input.

With --detach it writes the signed bytes to WEIGHTS.body and the signature to
WEIGHTS.body.minisig, for the standard program: minisign -Vm WEIGHTS.body -P KEY

With --inputs it also rechecks the proof that travels in the file, in linear
time and without a solver: that it was made from exactly these inputs, that
every weight and fallback keeps residency and rules, that every limit holds,
and that no plan has less latency.

Exit codes: 0 verified, 1 failure, 2 usage or bad input, 4 verification failed.`,
		Example: `  irbctl verify weights.toml --pub irb.pub
  irbctl verify weights.toml --pub RWQHNEbO6JcQ+k1BgN2Fg6TGCfV2Ahz0tNUZq9dLCx3uPvRg3O8xzD5I --json
  irbctl verify weights.toml --pub irb.pub --inputs fleet/
  irbctl verify weights.toml --pub irb.pub --detach -o /tmp`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.verify(args[0], f) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.pubs, "pub", nil, "trusted public key, or a file with one (repeatable)")
	f.proof.register(flags)
	flags.BoolVar(&f.detach, "detach", false, "write the signed bytes and the .minisig file")
	flags.StringVarP(&f.output, "output", "o", "", "folder for --detach (default: the folder of WEIGHTS)")
	flags.BoolVar(&f.json, "json", false, "print the verdict as JSON")
	return cmd
}

func (a *app) verify(path string, f verifyFlags) error {
	trusted, err := parsePublicKeys(f.pubs)
	if err != nil {
		return err
	}
	if len(trusted) == 0 {
		return usageError("no trusted key; name one with --pub")
	}
	if f.output != "" && !f.detach {
		return usageError("-o is the folder of --detach, which is not given")
	}
	file, err := a.readFile(path)
	if err != nil {
		return err
	}
	v := newVerdict(path)
	if body := v.signature(file, trusted); body != nil {
		if s := v.format(body); s != nil {
			v.meaning(s)
			v.expiry(s, a.now())
			v.sequence(s, a.now())
			if err := a.prove(v, s, f.proof, trusted); err != nil {
				return err
			}
		}
		if f.detach {
			if err := v.detach(path, f.output, file); err != nil {
				return err
			}
		}
	}
	if err := a.printVerdict(v, f.json); err != nil {
		return err
	}
	return v.err()
}

// verdict is what irbctl verify found, check by check. A check that needs an
// earlier one that failed is not made.
type verdict struct {
	File     string    `json:"file"`
	Valid    bool      `json:"valid"`
	Fleet    string    `json:"fleet,omitempty"`
	Sequence int64     `json:"sequence,omitempty"`
	Keys     []string  `json:"keys,omitempty"` // trusted ones that signed
	SHA256   string    `json:"body_sha256,omitempty"`
	Checks   []check   `json:"checks"`
	Detached []string  `json:"detached,omitempty"` // files that were written
	Expires  time.Time `json:"expires,omitzero"`

	keyIDs []uint64
}

// check is the verdict of one check: what was found, or else the problems.
type check struct {
	Name     string   `json:"check"`
	OK       bool     `json:"ok"`
	Found    string   `json:"found,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

func newVerdict(file string) *verdict { return &verdict{File: file, Valid: true} }

func (v *verdict) add(name, found string, err error) {
	c := check{Name: name, OK: err == nil}
	if err != nil {
		v.Valid = false
		c.Problems = strings.Split(err.Error(), "\n")
	} else {
		c.Found = found
	}
	v.Checks = append(v.Checks, c)
}

// signature returns the signed bytes, nil if no trusted key signed them.
func (v *verdict) signature(file []byte, trusted []minisign.PublicKey) []byte {
	if len(file) > snapshot.MaxBytes {
		v.add("signature", "", fmt.Errorf("file has more than %d bytes", snapshot.MaxBytes))
		return nil
	}
	body, ids, err := snapshot.Verify(file, trusted)
	if err != nil {
		v.add("signature", "", err)
		return nil
	}
	v.keyIDs = ids
	for _, id := range ids {
		v.Keys = append(v.Keys, snapshot.KeyID(id))
	}
	v.SHA256 = snapshot.Digest(body)
	v.add("signature", "by key "+strings.Join(v.Keys, ", "), nil)
	return body
}

// format returns the snapshot, nil if the body is none.
func (v *verdict) format(body []byte) *snapshot.Snapshot {
	s, err := snapshot.Decode(body)
	if err != nil {
		v.add("format", "", err)
		return nil
	}
	v.Fleet, v.Sequence, v.Expires = s.Fleet, s.Sequence, s.Expires
	v.add("format", fmt.Sprintf("%d", s.Format), nil)
	return s
}

func (v *verdict) meaning(s *snapshot.Snapshot) {
	weights := 0
	for i := range s.Sources {
		weights += len(s.Sources[i].Weights)
	}
	v.add("meaning", count(len(s.Sources), "source")+", "+count(weights, "weight")+", "+count(len(s.Engines), "engine"),
		snapshot.Check(s))
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func (v *verdict) expiry(s *snapshot.Snapshot, now time.Time) {
	at := s.Expires.UTC().Format(time.RFC3339)
	left := s.Expires.Sub(now).Round(time.Second)
	var err error
	if !now.Before(s.Expires) {
		err = fmt.Errorf("expired at %s, %s ago", at, -left)
	}
	v.add("expiry", fmt.Sprintf("%s, in %s", at, left), err)
}

// sequence refuses, as agents do, what claims to be from the future.
func (v *verdict) sequence(s *snapshot.Snapshot, now time.Time) {
	v.add("sequence", fmt.Sprintf("%d", s.Sequence), fromFuture(s, now))
}

// fromFuture says whether a sequence is further ahead of the clock than agents
// accept.
func fromFuture(s *snapshot.Snapshot, now time.Time) error {
	if ahead := time.UnixMilli(s.Sequence).Sub(now); ahead > snapshot.MaxAhead {
		return fmt.Errorf("%d is %s ahead of the clock; agents take at most %s", s.Sequence, ahead.Round(time.Minute), snapshot.MaxAhead)
	}
	return nil
}

// detach writes the signed bytes and, for each trusted key that signed them,
// the signature file of the minisign program.
func (v *verdict) detach(path, folder string, file []byte) error {
	body, signatures, err := snapshot.Split(file)
	if err != nil {
		return err
	}
	if path == "-" {
		path = "snapshot"
	}
	if folder != "" {
		path = filepath.Join(folder, filepath.Base(path))
	}
	path += ".body"
	write := func(path string, data []byte) error {
		v.Detached = append(v.Detached, path)
		return snapshot.WriteFile(path, data)
	}
	if err := write(path, body); err != nil {
		return err
	}
	for _, id := range v.keyIDs {
		for _, s := range signatures {
			if s.KeyID != id {
				continue
			}
			text, err := s.MarshalText()
			if err != nil {
				return err
			}
			name := path + ".minisig"
			if id != v.keyIDs[0] { // the program looks for the first one by itself
				name = path + "." + snapshot.KeyID(id) + ".minisig"
			}
			if err := write(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// err is nil for a valid file, else tells the checks that failed.
func (v *verdict) err() error {
	var errs []error
	for _, c := range v.Checks {
		for _, problem := range c.Problems {
			errs = append(errs, fmt.Errorf("%s: %s: %s", v.File, c.Name, problem))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &exitError{code: exitVerify, err: errors.Join(errs...)}
}

func (a *app) printVerdict(v *verdict, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(v)
	}
	if v.Sequence != 0 {
		fmt.Fprintf(a.stdout, "%s: snapshot %d of fleet %s\n", v.File, v.Sequence, v.Fleet)
	}
	for _, c := range v.Checks {
		if c.OK {
			fmt.Fprintf(a.stdout, "ok      %-9s  %s\n", c.Name, c.Found)
			continue
		}
		fmt.Fprintf(a.stdout, "FAILED  %s\n", c.Name)
	}
	for _, path := range v.Detached {
		fmt.Fprintf(a.stdout, "wrote   %s\n", path)
	}
	return nil
}
