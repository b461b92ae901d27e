package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"aead.dev/minisign"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// Environment variables of secret keys, for CI and cron.
const (
	envKey      = "IRB_KEY"
	envPassword = "IRB_KEY_PASSWORD"
)

// maxKeyBytes bounds key and password files; a key is two lines.
const maxKeyBytes = 64 << 10

type secretKey = minisign.PrivateKey

// keyFlags say where the secret keys of a command are.
type keyFlags struct {
	files        []string
	passwordFile string
}

func (f *keyFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.files, "key", nil, "secret key file to sign with (repeatable; default: the key in "+envKey+")")
	flags.StringVar(&f.passwordFile, "password-file", "", "file with the password of the secret keys (default: "+envPassword+", else asked for)")
}

// loadSecretKeys returns the keys of the --key files, or else the one whose
// text is in IRB_KEY, decrypted if they have a password.
func (a *app) loadSecretKeys(f keyFlags) ([]secretKey, error) {
	if len(f.files) == 0 {
		text := a.getenv(envKey)
		if text == "" {
			return nil, &exitError{code: exitUsage, err: errors.New("no secret key; name one with --key or set " + envKey),
				hints: []string{"make a key pair with irbctl keygen"}}
		}
		key, err := a.parseSecretKey(envKey, []byte(text), f)
		if err != nil {
			return nil, err
		}
		return []secretKey{key}, nil
	}
	var keys []secretKey
	for _, path := range f.files {
		text, err := readSecretFile(path)
		if err != nil {
			return nil, err
		}
		key, err := a.parseSecretKey(path, text, f)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(keys, func(k secretKey) bool { return k.Equal(key) }) {
			return nil, usageError("--key %s: this key is given twice", path)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// readSecretFile refuses, as ssh does, a secret that other users can read.
func readSecretFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usageError("%w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, usageError("%w", err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyBytes))
	if err != nil {
		return nil, usageError("%w", err)
	}
	var public minisign.PublicKey
	if public.UnmarshalText(bytes.TrimSpace(text)) == nil {
		return nil, usageError("%s: a public key, want a secret key", path)
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 {
		return nil, &exitError{code: exitUsage,
			err:   fmt.Errorf("%s: mode is %04o, want no access for group and others: it holds a secret", path, mode.Perm()),
			hints: []string{"chmod 600 " + path}}
	}
	return text, nil
}

// parseSecretKey reads the text of a minisign secret key; where names it.
func (a *app) parseSecretKey(where string, text []byte, f keyFlags) (secretKey, error) {
	var key secretKey
	if minisign.IsEncrypted(text) {
		password, err := a.password(f.passwordFile, "password of "+where+": ")
		if err != nil {
			return key, err
		}
		if key, err = minisign.DecryptKey(password, text); err != nil {
			return key, usageError("%s: wrong password, or a damaged key", where)
		}
	} else if err := key.UnmarshalText(text); err != nil {
		return key, usageError("%s: no minisign secret key: %w", where, err)
	}
	// The file of a key without a password has no checksum; a damaged one would
	// sign what nobody can verify.
	probe := []byte("irb")
	if !minisign.Verify(publicKey(key), probe, minisign.Sign(key, probe)) {
		return key, usageError("%s: a damaged secret key: it does not fit its own public key", where)
	}
	return key, nil
}

func publicKey(key secretKey) minisign.PublicKey { return key.Public().(minisign.PublicKey) }

// password returns a password from a file, from IRB_KEY_PASSWORD or, on a
// terminal, by asking.
func (a *app) password(file, prompt string) (string, error) {
	if file != "" {
		text, err := readSecretFile(file)
		if err != nil {
			return "", err
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return strings.TrimSuffix(line, "\r"), nil
	}
	if password := a.getenv(envPassword); password != "" {
		return password, nil
	}
	return a.ask(prompt)
}

// ask reads a line from the terminal without showing it.
func (a *app) ask(prompt string) (string, error) {
	terminal, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return "", &exitError{code: exitUsage, err: errors.New("a password is needed and standard input is no terminal"),
			hints: []string{"give it with --password-file or " + envPassword}}
	}
	fmt.Fprint(a.stderr, prompt)
	password, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(a.stderr)
	return string(password), err
}

// parsePublicKeys reads the values of --pub flags: each is the text of a
// minisign public key or the path of a file with one.
func parsePublicKeys(values []string) ([]minisign.PublicKey, error) {
	var keys []minisign.PublicKey
	for _, value := range values {
		var key minisign.PublicKey
		if key.UnmarshalText([]byte(value)) == nil {
			keys = append(keys, key)
			continue
		}
		text, err := os.ReadFile(value)
		if err != nil {
			return nil, usageError("--pub %q is neither a minisign public key nor a readable file: %w", value, err)
		}
		var secret minisign.PrivateKey
		if minisign.IsEncrypted(text) || secret.UnmarshalText(text) == nil {
			return nil, usageError("%s: a secret key, want a public key", value)
		}
		if err := key.UnmarshalText(bytes.TrimSpace(text)); err != nil {
			return nil, usageError("%s: no minisign public key: %w", value, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
