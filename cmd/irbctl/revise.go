package main

import (
	"fmt"
	"time"

	"aead.dev/minisign"
	"github.com/spf13/cobra"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/solve"
)

// reviseFlags are the flags of the commands that put weights in service
// without a solve.
type reviseFlags struct {
	key       keyFlags
	pubs      []string
	current   string
	output    string
	expiresIn time.Duration
	author    string
	reason    string
}

func (f *reviseFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "weight file to write; - for standard output (required)")
	flags.StringVar(&f.current, "current", "", "weight file in service (default: the one that -o replaces)")
	f.key.register(flags)
	flags.StringArrayVar(&f.pubs, "pub", nil, "public key, or a file with one, that may have signed the files read, beside the signing key's own (repeatable)")
	flags.DurationVar(&f.expiresIn, "expires-in", 24*time.Hour, "how long agents may take the file into service")
	flags.StringVar(&f.author, "author", "", "who did it, free text")
	flags.StringVar(&f.reason, "reason", "", "why, free text")
}

func (a *app) rollbackCommand() *cobra.Command {
	var f reviseFlags
	cmd := &cobra.Command{
		Use:   "rollback OLD",
		Short: "Put the weights of an older file in service again",
		Long: `rollback signs the weights and the layout of an older weight file under a new
sequence and expiry, so that agents take it after what they serve now.`,
		Example: `  irbctl rollback weights-monday.toml -o weights.toml --key irb.key --reason "the new plan was wrong"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			release, err := lockOutput(f.output, a.now())
			if err != nil {
				return err
			}
			defer release()
			keys, trusted, head, err := a.reviseHead(f)
			if err != nil {
				return err
			}
			old, err := a.readTrusted(args[0], trusted)
			if err != nil {
				return err
			}
			if old.Fleet != head.Previous.Fleet {
				return usageError("%s is of fleet %q, the file in service of fleet %q", args[0], old.Fleet, head.Previous.Fleet)
			}
			return a.writeRevised(f, solve.Rollback(old, head), keys)
		},
	}
	f.register(cmd)
	return cmd
}

func (a *app) drainCommand() *cobra.Command {
	var f reviseFlags
	cmd := &cobra.Command{
		Use:   "drain ENGINE",
		Short: "Take an engine out of the weights in service, without a solve",
		Long: `drain gives what an engine serves to the other engines of each source, or to
its fallbacks, and signs the result under a new sequence. Only the keys of the
drained engine move. Requests in flight end where they are.

It does not look at capacity; solve again with the engine's health at 0 for a
plan that does.`,
		Example: `  irbctl drain a-1 -o weights.toml --key irb.key --reason "kernel update"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			release, err := lockOutput(f.output, a.now())
			if err != nil {
				return err
			}
			defer release()
			keys, _, head, err := a.reviseHead(f)
			if err != nil {
				return err
			}
			drained, err := solve.Drain(args[0], head)
			if err != nil {
				return &exitError{code: exitUsage, err: err}
			}
			return a.writeRevised(f, drained, keys)
		},
	}
	f.register(cmd)
	return cmd
}

// reviseHead loads the keys and the snapshot in service.
func (a *app) reviseHead(f reviseFlags) (keys []secretKey, trusted []minisign.PublicKey, head solve.Head, err error) {
	if f.output == "" {
		return nil, nil, head, usageError("no output; name the weight file with -o (- for standard output)")
	}
	if f.current == "" {
		f.current = f.output
	}
	if f.current == "-" {
		return nil, nil, head, usageError("name the weight file in service with --current")
	}
	if f.expiresIn <= 0 {
		return nil, nil, head, usageError("--expires-in is %v, want a duration above 0", f.expiresIn)
	}
	if keys, err = a.loadSecretKeys(f.key); err != nil {
		return nil, nil, head, err
	}
	if trusted, err = parsePublicKeys(f.pubs); err != nil {
		return nil, nil, head, err
	}
	for _, key := range keys {
		trusted = append(trusted, publicKey(key))
	}
	head = solve.Head{Now: a.now(), ExpiresIn: f.expiresIn, Author: f.author, Reason: f.reason}
	head.Previous, err = a.readTrusted(f.current, trusted)
	return keys, trusted, head, err
}

// readTrusted reads a weight file that one of the keys at hand signed.
func (a *app) readTrusted(path string, trusted []minisign.PublicKey) (*snapshot.Snapshot, error) {
	data, err := a.readFile(path)
	if err != nil {
		return nil, err
	}
	s, err := verifiedSnapshot(data, trusted)
	if err != nil {
		return nil, &exitError{code: exitVerify, err: fmt.Errorf("%s: %w", path, err),
			hints: []string{"name the public key that signed it with --pub"}}
	}
	return s, nil
}

func (a *app) writeRevised(f reviseFlags, s *snapshot.Snapshot, keys []secretKey) error {
	if err := a.writeSnapshot(f.output, s, keys); err != nil {
		return err
	}
	if f.output != "-" {
		fmt.Fprintf(a.stdout, "wrote %s: snapshot %d, expires %s\n", f.output, s.Sequence, s.Expires.Format(time.RFC3339))
	}
	return nil
}
