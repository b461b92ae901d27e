package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/irb-project/irb/agent/config"
	"github.com/irb-project/irb/agent/lookup"
	"github.com/irb-project/irb/agent/metrics"
	"github.com/irb-project/irb/agent/pick"
	"github.com/irb-project/irb/agent/proxy"
	"github.com/irb-project/irb/agent/reload"
	"github.com/irb-project/irb/agent/snapshot"
)

// agent is everything that runs, wired together.
type agent struct {
	path     string
	now      func() time.Time
	log      *slog.Logger
	level    *slog.LevelVar
	config   atomic.Pointer[config.Config]
	metrics  *metrics.Set
	proxy    *proxy.Proxy
	reloader *reload.Reloader

	decisions     *proxy.DecisionLog // nil: none
	decisionsFile *appendFile

	traffic  []served[*proxy.Server] // what drains
	status   []served[*http.Server]  // what stays up until the end
	draining atomic.Bool
	failed   chan error // a server that ended by itself
}

// served is a server with its listening socket, open since before any work
// began, so that an address in use is found at once.
type served[S any] struct {
	name   string
	listen net.Listener
	server S
}

// newAgent opens everything and starts nothing. Its error is about settings,
// files they name, or addresses.
func newAgent(path string, stderr io.Writer, now func() time.Time) (*agent, error) {
	c, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	a := &agent{path: path, now: now, level: new(slog.LevelVar), metrics: metrics.New(now)}
	a.failed = make(chan error, len(c.Listeners)+2)
	a.config.Store(c)
	a.log = newLogger(stderr, c.Log, a.level)
	if err := a.open(c); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// open opens what the settings name. After an error a part of it is open.
func (a *agent) open(c *config.Config) error {
	keys, err := trustedKeys(c)
	if err != nil {
		return err
	}
	if err := a.openDecisions(c); err != nil {
		return err
	}
	if err := a.openTraffic(c); err != nil {
		return err
	}
	if err := a.openStatus(c); err != nil {
		return err
	}
	a.reloader, err = reload.New(reload.Options{
		Path: c.Weights, Fleet: c.Fleet, Cluster: c.Cluster, Trusted: keys, StateDir: c.StateDir,
		RequireFresh: c.RequireFresh, PollInterval: c.PollInterval, Now: a.now,
		Build: a.build, Publish: a.publish, Report: a.report,
	})
	return err
}

func newLogger(w io.Writer, c config.Log, level *slog.LevelVar) *slog.Logger {
	_ = level.UnmarshalText([]byte(c.Level)) // the settings allow known levels only
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func (a *agent) openDecisions(c *config.Config) error {
	if c.DecisionLog.Path == "" {
		return nil
	}
	secret, err := decisionSecret(c)
	if err != nil {
		return err
	}
	f := &appendFile{path: c.DecisionLog.Path}
	if err := f.reopen(); err != nil {
		return fmt.Errorf("decision_log.path: %w", err)
	}
	a.decisionsFile = f
	a.decisions = proxy.NewDecisionLog(f, secret, a.metrics.DecisionsDropped, a.log)
	return nil
}

// openTraffic opens the listeners and makes the proxy, which must know their
// addresses to refuse engines that are the agent itself.
func (a *agent) openTraffic(c *config.Config) error {
	var own []net.Addr
	for _, l := range c.Listeners {
		listen, err := net.Listen("tcp", l.Address)
		if err != nil {
			return err
		}
		a.traffic = append(a.traffic, served[*proxy.Server]{name: l.Address, listen: listen})
		own = append(own, listen.Addr())
	}
	var err error
	a.proxy, err = proxy.New(proxy.Options{
		Config: c, Metrics: a.metrics, Log: a.log, Now: a.now, Decisions: a.decisions, Own: own,
	})
	if err != nil {
		return err
	}
	for i, l := range c.Listeners {
		t, err := proxy.ServerTLS(l, a.log)
		if err != nil {
			return err
		}
		a.traffic[i].server = proxy.NewServer(c, a.proxy.Handler(l), t, a.log)
	}
	return nil
}

func (a *agent) openStatus(c *config.Config) error {
	open := func(name, address string, h http.Handler) error {
		network := "tcp"
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			network, address = "unix", path
			if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
				_ = os.Remove(path) // left by an agent that was killed; else Listen says why
			}
		}
		listen, err := net.Listen(network, address)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		a.status = append(a.status, served[*http.Server]{name, listen, &http.Server{
			Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
			ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
		}})
		return nil
	}
	if err := open("status_listen", c.StatusListen, a.statusHandler()); err != nil {
		return err
	}
	if c.DebugListen == "" {
		return nil
	}
	return open("debug_listen", c.DebugListen, a.debugHandler())
}

// close lets go of what newAgent opened.
func (a *agent) close() {
	for _, s := range a.traffic {
		s.listen.Close()
	}
	for _, s := range a.status {
		s.listen.Close()
	}
	if a.decisions != nil {
		a.decisions.Close()
		a.decisionsFile.Close()
	}
}

func (a *agent) build(s *snapshot.Snapshot) (*pick.Table, error) {
	return pick.NewTable(s, a.config.Load().Cluster)
}

func (a *agent) publish(t *pick.Table) {
	s := t.Snapshot()
	a.metrics.Serving(metrics.Snapshot{Sequence: s.Sequence, Created: s.Created, Expires: s.Expires})
	a.proxy.SetTable(t)
	a.warnMisfits(s)
}

// warnMisfits tells of what the file plans for and the settings do not.
func (a *agent) warnMisfits(s *snapshot.Snapshot) {
	for _, text := range misfits(s, a.config.Load()) {
		a.log.Warn(text, "sequence", s.Sequence)
	}
}

func (a *agent) report(e reload.Event) {
	a.metrics.Reload(e.Result)
	level := slog.LevelWarn
	if e.Result == reload.Accepted && !e.Expired && e.StateErr == nil || e.Result == reload.Unchanged {
		level = slog.LevelInfo
	}
	a.log.Log(context.Background(), level, e.String(), "result", e.Result, "sequence", e.Sequence)
}

// run serves until a signal says to end, or a server fails.
func (a *agent) run(ctx context.Context, signals <-chan os.Signal) error {
	ctx, stop := context.WithCancel(ctx)
	defer a.close()
	a.reloader.Start()
	var background sync.WaitGroup
	background.Go(func() { a.reloader.Run(ctx) })
	background.Go(func() { a.proxy.Run(ctx, new(lookup.Resolver).Addresses) })
	background.Go(func() { a.proxy.RunGuards(ctx) })
	background.Go(func() { a.proxy.RunProbes(ctx) })
	for _, s := range a.traffic {
		go a.serve(s.listen, s.name, s.server.Serve)
	}
	for _, s := range a.status {
		go a.serve(s.listen, s.name, s.server.Serve)
	}
	err := a.wait(signals)
	if drainErr := a.drain(signals); err == nil {
		err = drainErr
	}
	stop()
	background.Wait()
	for _, s := range a.status {
		s.server.Close()
	}
	return err
}

func (a *agent) serve(l net.Listener, name string, serve func(net.Listener) error) {
	a.log.Info("listening", "address", l.Addr().String())
	err := serve(l)
	if !errors.Is(err, http.ErrServerClosed) && !a.draining.Load() {
		a.failed <- fmt.Errorf("%s: %w", name, err)
	}
}

// wait returns when the agent is to end.
func (a *agent) wait(signals <-chan os.Signal) error {
	for {
		select {
		case err := <-a.failed:
			return err
		case s := <-signals:
			if s != syscall.SIGHUP {
				a.log.Info("draining", "signal", s.String())
				return nil
			}
			a.reloadConfig()
			a.reloader.Trigger()
		}
	}
}

// reloadConfig takes over agent.toml, all of it or nothing. The decision log is
// opened again either way: those who rotate it send the same signal.
func (a *agent) reloadConfig() {
	if f := a.decisionsFile; f != nil {
		if err := f.reopen(); err != nil {
			a.log.Warn("decision log not opened again, the old file stays in use", "err", err)
		}
	}
	err := a.takeConfig()
	a.metrics.ConfigReload(err == nil)
	if err != nil {
		a.log.Error("agent.toml refused, the old settings stay", "err", err)
		return
	}
	a.log.Info("agent.toml taken over")
}

func (a *agent) takeConfig() error {
	next, err := config.Load(a.path)
	if err != nil {
		return err
	}
	old := a.config.Load()
	if keys := config.NeedsRestart(old, next); len(keys) > 0 {
		return fmt.Errorf("a restart is needed for: %s", strings.Join(keys, ", "))
	}
	trusted, err := trustedKeys(next)
	if err != nil {
		return err
	}
	// Everything that can fail is above this line.
	a.reloader.Trust(trusted)
	_ = a.level.UnmarshalText([]byte(next.Log.Level))
	a.config.Store(next)
	a.proxy.SetConfig(next)
	if serving := a.reloader.Serving(); serving != nil {
		a.warnMisfits(serving.Snapshot)
	}
	return nil
}

// awaitSignal waits for a signal to end, or until it is over. One to reload must
// not cut the requests that are still answered.
func awaitSignal(signals <-chan os.Signal, over <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGHUP {
				return
			}
		case <-over:
			return
		}
	}
}

// drain ends without losing a request: first only /readyz fails, and answers
// close their connections, so that those who send requests here stop doing so;
// then no connection is accepted, and what is in flight may finish. A second
// signal ends the waiting.
func (a *agent) drain(signals <-chan os.Signal) error {
	timeouts := a.config.Load().Timeouts
	a.draining.Store(true)
	a.proxy.StartDrain()
	delay, cancelDelay := context.WithTimeout(context.Background(), timeouts.DrainDelay)
	defer cancelDelay()
	awaitSignal(signals, delay.Done())
	ctx, cancel := context.WithTimeout(context.Background(), timeouts.Drain)
	defer cancel()
	go func() {
		awaitSignal(signals, ctx.Done())
		cancel()
	}()
	var down sync.WaitGroup
	cut := atomic.Int32{}
	for _, s := range a.traffic {
		down.Go(func() {
			if s.server.Drain(ctx, s.listen) != nil {
				s.server.Close()
				cut.Add(1)
			}
		})
	}
	down.Wait()
	a.proxy.WaitUpgrades(ctx)
	a.proxy.Close()
	if cut.Load() > 0 {
		return errors.New("drain: requests were still in flight at the end of timeouts.drain and have been cut")
	}
	a.log.Info("drained")
	return nil
}
