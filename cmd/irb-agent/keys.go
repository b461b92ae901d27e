package main

import (
	"errors"
	"fmt"
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
