package main

import (
	"errors"
	"fmt"
	"os"

	"aead.dev/minisign"
	"github.com/spf13/cobra"
)

// keygenFlags are the flags of irbctl keygen.
type keygenFlags struct {
	output       string
	askPassword  bool
	passwordFile string
}

func (a *app) keygenCommand() *cobra.Command {
	var f keygenFlags
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "Make a key pair that signs weight files",
		Long: `keygen makes an Ed25519 key pair in the files of the minisign program: NAME.key,
the secret key, and NAME.pub, which agents and irbctl verify trust. It does not
overwrite files. The public key goes to standard output too.

The secret key has a password if --password or --password-file is given or
` + envPassword + ` is set; else it is protected by the mode of its file alone,
like one of minisign -G -W.`,
		Example: `  irbctl keygen -o prod
  irbctl keygen -o prod --password`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.keygen(f) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "irb", "NAME of the files NAME.key and NAME.pub")
	flags.BoolVar(&f.askPassword, "password", false, "ask for a password for the secret key")
	flags.StringVar(&f.passwordFile, "password-file", "", "file with the password for the secret key")
	return cmd
}

func (a *app) keygen(f keygenFlags) error {
	keyPath, pubPath := f.output+".key", f.output+".pub"
	for _, path := range []string{keyPath, pubPath} {
		if _, err := os.Lstat(path); err == nil {
			return usageError("%s exists, and keygen overwrites nothing", path)
		}
	}
	password, err := a.newPassword(f)
	if err != nil {
		return err
	}
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		return err
	}
	keyText, err := private.MarshalText()
	if password != "" {
		keyText, err = minisign.EncryptKey(password, private)
	}
	if err != nil {
		return err
	}
	pubText, err := public.MarshalText()
	if err != nil {
		return err
	}
	if err := createFile(keyPath, append(keyText, '\n'), 0o600); err != nil {
		return err
	}
	if err := createFile(pubPath, append(pubText, '\n'), 0o644); err != nil {
		return errors.Join(err, os.Remove(keyPath))
	}
	protection := "no password"
	if password != "" {
		protection = "with a password"
	}
	fmt.Fprintf(a.stderr, "wrote %s (secret, %s) and %s\n", keyPath, protection, pubPath)
	_, err = fmt.Fprintln(a.stdout, public)
	return err
}

// newPassword returns the password for a new key, "" for none.
func (a *app) newPassword(f keygenFlags) (string, error) {
	if !f.askPassword || f.passwordFile != "" {
		if f.passwordFile == "" && a.getenv(envPassword) == "" {
			return "", nil
		}
		password, err := a.password(f.passwordFile, "")
		if err == nil && password == "" {
			err = usageError("%s: the password is empty", f.passwordFile)
		}
		return password, err
	}
	password, err := a.ask("password for the new key: ")
	if err != nil {
		return "", err
	}
	again, err := a.ask("again: ")
	if err != nil {
		return "", err
	}
	if password == "" || password != again {
		return "", usageError("the passwords differ or are empty")
	}
	return password, nil
}

// createFile writes a new file, on disk when it returns; it fails if there is
// one.
func createFile(path string, data []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
