package main

import (
	"errors"
	"fmt"

	"aead.dev/minisign"
	"github.com/spf13/pflag"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/proof"
)

// proofFlags name what the proof of a snapshot is rechecked against.
type proofFlags struct {
	paths    input.Paths
	previous string
}

func (f *proofFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.paths.Folder, "inputs", "", "fleet that the file was made from: recheck its proof")
	registerPaths(flags, &f.paths)
	flags.StringVar(&f.previous, "previous", "", "with --inputs: the weight file that this one followed")
}

// prove rechecks the proof in a snapshot if inputs are given.
func (a *app) prove(v *verdict, s *snapshot.Snapshot, f proofFlags, trusted []minisign.PublicKey) error {
	if f.paths == (input.Paths{}) {
		if f.previous != "" {
			return usageError("--previous is for --inputs, which is not given")
		}
		return nil
	}
	fleet, err := input.Read(f.paths)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	var previous *snapshot.Snapshot
	if f.previous != "" {
		data, err := a.readFile(f.previous)
		if err != nil {
			return err
		}
		if previous, err = verifiedSnapshot(data, trusted); err != nil {
			return &exitError{code: exitVerify, err: fmt.Errorf("--previous %s: %w", f.previous, err)}
		}
		if err := followed(s, data); err != nil {
			return &exitError{code: exitVerify, err: fmt.Errorf("--previous %s: %w", f.previous, err)}
		}
	}
	result, err := proof.Check(fleet, s, previous)
	v.add("proof", fmt.Sprintf("objective %.10g ms x req/s, no plan below %.10g (gap %.1e); every limit holds",
		result.ObjectiveMsRPS, result.BoundMsRPS, max(0, result.Gap)), err)
	return nil
}

// followed says whether data is the file that a snapshot was solved from.
func followed(s *snapshot.Snapshot, data []byte) error {
	for _, in := range s.Inputs {
		if in.Role == "previous" {
			if got := snapshot.Digest(data); got != in.SHA256 {
				return fmt.Errorf("its digest begins with %.12s, that of the file followed with %.12s", got, in.SHA256)
			}
			return nil
		}
	}
	return errors.New("no file precedes the snapshot")
}

// verifiedSnapshot reads a weight file that a trusted key signed.
func verifiedSnapshot(data []byte, trusted []minisign.PublicKey) (*snapshot.Snapshot, error) {
	body, _, err := snapshot.Verify(data, trusted)
	if err != nil {
		return nil, err
	}
	s, err := snapshot.Decode(body)
	if err != nil {
		return nil, err
	}
	return s, snapshot.Check(s)
}
