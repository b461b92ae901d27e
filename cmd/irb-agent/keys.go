package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"aead.dev/minisign"

	"github.com/irb-project/irb/agent/config"
)

// trustedKeys reads the keys that the settings name, all problems in one error.
func trustedKeys(c *config.Config) ([]minisign.PublicKey, error) {
	var keys []minisign.PublicKey
	var errs []error
	for _, text := range c.TrustedKeys {
		var k minisign.PublicKey
		if err := k.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
			errs = append(errs, fmt.Errorf("trusted_keys: %.20q is no minisign public key: %w", text, err))
			continue
		}
		keys = append(keys, k)
	}
	for _, path := range c.TrustedKeyFiles {
		k, err := minisign.PublicKeyFromFile(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("trusted_key_files: %s: %w", path, err))
			continue
		}
		keys = append(keys, k)
	}
	return keys, errors.Join(errs...)
}

// minSecretBytes of a secret cannot be guessed if they are random.
const minSecretBytes = 16

// decisionSecret reads what keys the hashes of the decision log; nil if the
// settings name no file.
func decisionSecret(c *config.Config) ([]byte, error) {
	path := c.DecisionLog.SecretFile
	if path == "" {
		return nil, nil
	}
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("decision_log.secret_file: %w", err)
	}
	if len(secret) < minSecretBytes {
		return nil, fmt.Errorf("decision_log.secret_file: %s holds %d bytes, want at least %d", path, len(secret), minSecretBytes)
	}
	return secret, nil
}
