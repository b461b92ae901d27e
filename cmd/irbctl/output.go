package main

import (
	"os"
	"path/filepath"
)

// checkOutput says of a file that is written at the end, maybe after minutes,
// whether it can be, as far as one can know before.
func checkOutput(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return usageError("%s %s is not a regular file, want one or a new name", flag, path)
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return usageError("%s %s: there is no folder %s", flag, path, folder)
	}
	return nil
}
