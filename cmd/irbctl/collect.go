package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/irb-project/irb/solve/collect"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
)

// collectFlags are the flags of irbctl collect.
type collectFlags struct {
	paths       input.Paths
	output      string
	prometheus  string
	agents      []string
	every       time.Duration
	quantile    float64
	window      time.Duration
	apart       time.Duration
	healthQuery string
	dryRun      bool
	json        bool

	httpConfig        string
	bearerTokenFile   string
	basicUser         string
	basicPasswordFile string
	tlsCA             string
	tlsCert           string
	tlsKey            string
	timeout           time.Duration
}

func (a *app) collectCommand() *cobra.Command {
	var f collectFlags
	cmd := &cobra.Command{
		Use:   "collect FLEET",
		Short: "Make the inputs of a solve from what agents and engines tell of themselves",
		Long: `collect reads, from a Prometheus server or from the agents' own metrics, the
demand of every source, its token means, cached fraction and requests per key,
the round trips from clusters to engines, and which engine replicas are up. It
writes a fleet for irbctl solve into the folder -o, all files or none; the last
one is kept as FOLDER.previous.

FLEET is the operator's own: its names are the only ones that get into the
inputs, its engines, policy and addresses stay as they are, and it is never
written to. What is not measured is taken from it, and said.

Demand is forecast until the next run: the level of the last hour (of the last
15 minutes after a step), times last week's shape, times a margin that covers
the given quantile of this method's own errors of the last day.

Exit codes: 0 written, 1 failure, 2 usage or bad input.`,
		Example: `  irbctl collect fleet/ -o inputs/ --prometheus http://prometheus:9090 --every 15m
  irbctl collect fleet/ -o inputs/ --agents http://gw-1:9464/metrics --agents http://gw-2:9464/metrics
  irbctl collect fleet/ --prometheus https://prometheus --bearer-token-file token --dry-run`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.paths.Folder = args[0]
			return a.collect(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "folder to write; all of it is replaced (required, unless --dry-run)")
	flags.StringVar(&f.prometheus, "prometheus", "", "URL of a Prometheus server")
	flags.StringSliceVar(&f.agents, "agents", nil, "URLs of all agents' metrics, to scrape them instead (repeatable)")
	flags.DurationVar(&f.every, "every", 15*time.Minute, "time until the next run: how far demand is forecast")
	flags.Float64Var(&f.quantile, "quantile", 0.9, "of the forecast's own errors, which part the margin covers; 0.5: no margin for them")
	flags.DurationVar(&f.window, "window", 5*time.Minute, "with --prometheus: range of rates, at least four scrape intervals")
	flags.DurationVar(&f.apart, "apart", 30*time.Second, "with --agents: time between the two scrapes")
	flags.StringVar(&f.healthQuery, "health-query", "", `with --prometheus: PromQL for replicas up over configured by label "engine", where scrapes and connects do not tell`)
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing")
	flags.BoolVar(&f.json, "json", false, "print what was found as JSON")
	f.registerHTTP(flags)
	return cmd
}

// registerHTTP adds the flags for how to talk to the source.
func (f *collectFlags) registerHTTP(flags *pflag.FlagSet) {
	flags.StringVar(&f.httpConfig, "http-config", "", "Prometheus http_config file (YAML) for anything that the flags below lack")
	flags.StringVar(&f.bearerTokenFile, "bearer-token-file", "", "file with a bearer token")
	flags.StringVar(&f.basicUser, "basic-user", "", "user name for basic authentication")
	flags.StringVar(&f.basicPasswordFile, "basic-password-file", "", "file with its password")
	flags.StringVar(&f.tlsCA, "tls-ca", "", "file with the CA certificates to trust")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "file with the client certificate")
	flags.StringVar(&f.tlsKey, "tls-key", "", "file with its key")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "for each HTTP request")
}

const week = 7 * 24 * time.Hour

func (f collectFlags) check() error {
	switch {
	case f.output == "" && !f.dryRun:
		return usageError("no output; name the folder with -o, or ask for a --dry-run")
	case (f.prometheus == "") == (len(f.agents) == 0):
		return usageError("give either --prometheus or --agents")
	case f.every <= 0 || f.every > week:
		return usageError("--every is %v, want a duration above 0 and at most %v: the forecast is by last week's shape", f.every, week)
	case !(f.quantile > 0 && f.quantile < 1):
		return usageError("--quantile is %v, want a number above 0 and below 1", f.quantile)
	case f.window < time.Second || f.window > time.Hour:
		return usageError("--window is %v, want 1s to 1h", f.window)
	case f.apart < time.Second:
		return usageError("--apart is %v, want at least 1s", f.apart)
	case f.healthQuery != "" && f.prometheus == "":
		return usageError("--health-query needs --prometheus")
	case f.timeout <= 0:
		return usageError("--timeout is %v, want a duration above 0", f.timeout)
	case f.httpConfig != "" && f.bearerTokenFile+f.basicUser+f.basicPasswordFile+f.tlsCA+f.tlsCert+f.tlsKey != "":
		return usageError("--http-config and flags for tokens, passwords or TLS exclude each other")
	case (f.basicUser == "") != (f.basicPasswordFile == ""):
		return usageError("--basic-user and --basic-password-file belong together")
	case (f.tlsCert == "") != (f.tlsKey == ""):
		return usageError("--tls-cert and --tls-key belong together")
	}
	return f.checkSource()
}

// checkSource reports all addresses that are none, and all secrets that are not
// there: the client reads those only when it first asks.
func (f collectFlags) checkSource() error {
	var problems []string
	check := func(flag, address string) {
		u, err := url.Parse(address)
		switch {
		case err != nil: // which may quote a password
			problems = append(problems, flag+" is no URL, want one such as http://HOST:PORT")
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			problems = append(problems, fmt.Sprintf("%s is %q, want a URL such as http://HOST:PORT", flag, u.Redacted()))
		}
	}
	if f.prometheus != "" {
		check("--prometheus", f.prometheus)
	}
	for _, address := range f.agents {
		check("--agents", address)
	}
	for _, x := range []struct{ flag, path string }{
		{"--bearer-token-file", f.bearerTokenFile}, {"--basic-password-file", f.basicPasswordFile},
	} {
		if x.path == "" {
			continue
		}
		if _, err := os.ReadFile(x.path); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", x.flag, err))
		}
	}
	if len(problems) > 0 {
		return usageError("%s", strings.Join(problems, "\n"))
	}
	return nil
}

func (a *app) collect(ctx context.Context, f collectFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	fleet, err := input.Read(f.paths)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	if f.output != "" && samePlace(f.output, f.paths.Folder) {
		return usageError("-o %s is FLEET itself, want another folder: what the operator wrote is never replaced", f.output)
	}
	if !f.dryRun {
		release, err := lockOutput(f.output, a.now())
		if err != nil {
			return err
		}
		defer release()
	}
	source, err := f.source(a.now)
	if err != nil {
		return err
	}
	result, err := collect.Run(ctx, source, fleet, collect.Options{Now: a.now(), Every: f.every, Quantile: f.quantile})
	if errors.Is(err, collect.ErrNothing) {
		return &exitError{code: exitFailure, err: fmt.Errorf("%s: no demand of fleet %q is measured; nothing written", source, fleet.Policy.Fleet),
			hints: []string{`agents export irb_requests_offered_total{irb_fleet="` + fleet.Policy.Fleet + `"} on status_listen; is it scraped, and --window at least four scrape intervals?`}}
	}
	if err != nil {
		return err
	}
	if !f.dryRun {
		if err := result.Write(f.output, enginesAndPolicy(fleet, f.paths.Folder)); err != nil {
			return err
		}
	}
	return a.reportCollect(f, result)
}

func (a *app) reportCollect(f collectFlags, result *collect.Result) error {
	if f.json {
		return a.printJSON(result)
	}
	result.Text(a.stdout)
	if f.dryRun {
		fmt.Fprintln(a.stdout, "dry run: nothing written")
		return nil
	}
	fmt.Fprintf(a.stdout, "wrote %s\n", f.output)
	return nil
}

// samePlace says whether two paths are the same folder.
func samePlace(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// enginesAndPolicy are the files of a fleet that stay as they are.
func enginesAndPolicy(fleet *model.Fleet, folder string) input.Paths {
	var paths input.Paths
	for _, in := range fleet.Inputs {
		switch in.Role {
		case "engines":
			paths.Engines = filepath.Join(folder, in.File)
		case "policy":
			paths.Policy = filepath.Join(folder, in.File)
		}
	}
	return paths
}

func (f collectFlags) source(now func() time.Time) (collect.Source, error) {
	client, err := f.client()
	if err != nil {
		return nil, err
	}
	if f.prometheus != "" {
		return &collect.Prometheus{URL: f.prometheus, Client: client, Window: f.window, HealthQuery: f.healthQuery}, nil
	}
	return &collect.Scrape{URLs: f.agents, Client: client, Apart: f.apart, Sleep: sleep, Clock: now}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// client makes the HTTP client that the flags describe.
func (f collectFlags) client() (*http.Client, error) {
	c := &config.DefaultHTTPClientConfig
	if f.httpConfig != "" {
		loaded, _, err := config.LoadHTTPConfigFile(f.httpConfig)
		if err != nil {
			return nil, usageError("--http-config %s: %w", f.httpConfig, err)
		}
		c = loaded
	} else {
		own := config.DefaultHTTPClientConfig
		if f.bearerTokenFile != "" {
			own.Authorization = &config.Authorization{Type: "Bearer", CredentialsFile: f.bearerTokenFile}
		}
		if f.basicUser != "" {
			own.BasicAuth = &config.BasicAuth{Username: f.basicUser, PasswordFile: f.basicPasswordFile}
		}
		own.TLSConfig = config.TLSConfig{CAFile: f.tlsCA, CertFile: f.tlsCert, KeyFile: f.tlsKey}
		c = &own
	}
	if err := c.Validate(); err != nil {
		return nil, usageError("HTTP settings: %w", err)
	}
	client, err := config.NewClientFromConfig(*c, "irbctl")
	if err != nil {
		return nil, usageError("HTTP settings: %w", err)
	}
	client.Timeout = f.timeout
	return client, nil
}
