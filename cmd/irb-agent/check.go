package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"aead.dev/minisign"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/proxy"
	"github.com/irb-project/irb/agent/reload"
	"github.com/irb-project/irb/agent/snapshot"
)

// checkAll tells every problem of the settings and of the files they name,
// without listening anywhere.
func checkAll(path string, stdout, stderr io.Writer, now time.Time) int {
	c, err := config.Load(path)
	if c == nil {
		complain(stderr, err)
		return exitUsage
	}
	keys, fileErr := checkFiles(c)
	if err == nil { // a proxy wants settings that are in order
		_, err = proxy.New(proxy.Options{Config: c, Metrics: metrics.New(time.Now), Log: slog.New(slog.DiscardHandler), Now: time.Now})
	}
	if err := errors.Join(err, fileErr); err != nil {
		complain(stderr, err)
		return exitUsage
	}
	file, err := os.ReadFile(c.Weights)
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(stdout, "%s: in order; %s is not there yet\n", path, c.Weights)
		return exitOK
	}
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	accepted, err := snapshot.Accept(file, snapshot.Rules{Fleet: c.Fleet, Cluster: c.Cluster, Trusted: keys, Now: now})
	if err == nil {
		_, err = pick.NewTable(accepted.Snapshot, c.Cluster)
	}
	if err != nil {
		complain(stderr, fmt.Errorf("%s: %w", c.Weights, err))
		return exitVerify
	}
	for _, text := range misfits(accepted.Snapshot, c) {
		complain(stderr, fmt.Errorf("warning: %s: %s", c.Weights, text))
	}
	fmt.Fprintf(stdout, "%s: in order; %s: snapshot %d would be accepted\n", path, c.Weights, accepted.Snapshot.Sequence)
	return exitOK
}

// checkFiles reads what the settings name, as far as they could be read.
func checkFiles(c *config.Config) (keys []minisign.PublicKey, err error) {
	keys, err = trustedKeys(c)
	_, secretErr := decisionSecret(c)
	errs := []error{err, secretErr, reload.CheckState(c.StateDir, c.Fleet), checkAppend(c.DecisionLog.Path)}
	for _, l := range c.Listeners {
		_, err := proxy.ServerTLS(l, slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	return keys, errors.Join(errs...)
}

// checkAppend says whether the decision log can be appended to. It makes none.
func checkAppend(path string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, os.ErrNotExist): // it is made where its folder is
		_, err = os.Stat(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("decision_log.path: %w", err)
	}
	return nil
}
