package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/proxy"
	"github.com/irb-project/irb/agent/snapshot"
)

// checkAll tells every problem of the settings and of the files they name,
// without listening anywhere.
func checkAll(path string, stdout, stderr io.Writer, now time.Time) int {
	c, err := config.Load(path)
	if err != nil {
		complain(stderr, err)
		return exitUsage
	}
	log := slog.New(slog.DiscardHandler)
	keys, err := trustedKeys(c)
	errs := []error{err}
	for _, l := range c.Listeners {
		_, err := proxy.ServerTLS(l, log)
		errs = append(errs, err)
	}
	_, err = proxy.New(proxy.Options{Config: c, Metrics: metrics.New(time.Now), Log: log, Now: time.Now})
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
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
	fmt.Fprintf(stdout, "%s: in order; %s: snapshot %d would be accepted\n", path, c.Weights, accepted.Snapshot.Sequence)
	return exitOK
}
