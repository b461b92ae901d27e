package main

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/irb-project/irb/agent/snapshot"
	"github.com/irb-project/irb/explain"
)

// requestFlags describe the request of irbctl explain --request.
type requestFlags struct {
	on       bool
	key      string
	tenant   string
	path     string
	method   string
	model    string
	identity []string
	headers  map[string]string
	down     []string
	decision string
}

func (f *requestFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "request", false, "where one request goes: by --cluster, --class or what it matches, --key")
	flags.StringVar(&f.decision, "decision", "", "a line of the decision log of an agent of --cluster, - for standard input: what it did and why")
	flags.StringVar(&f.key, "key", "", "with --request: its affinity value (session header, prompt_cache_key); none: it follows the weights")
	flags.StringVar(&f.tenant, "tenant", "", "with --request: the trusted tenant that scopes its key")
	flags.StringVar(&f.path, "request-path", "", "with --request: URL path, to find the class")
	flags.StringVar(&f.method, "request-method", "POST", "with --request: HTTP method, to find the class")
	flags.StringVar(&f.model, "model", "", "with --request: model, to find the class and engines that serve it")
	flags.StringArrayVar(&f.identity, "identity", nil, "with --request: a proven identity, to find the class (repeatable)")
	flags.StringToStringVar(&f.headers, "header", nil, "with --request: a trusted header NAME=VALUE, to find the class (repeatable)")
	flags.StringArrayVar(&f.down, "ejected", nil, "with --request: an engine that this agent has out of service (repeatable)")
}

// stray refuses what describes a request where none is asked about: without
// --request it would do nothing.
func (f *requestFlags) stray(flags *pflag.FlagSet) error {
	if f.on {
		return nil
	}
	for _, name := range []string{"key", "tenant", "request-path", "request-method", "model", "identity", "header", "ejected"} {
		if flags.Changed(name) {
			return usageError("--%s describes a request; ask where it goes with --request", name)
		}
	}
	return nil
}

// explainRequest replays the agents' picking for one request.
func (a *app) explainRequest(path string, f explainFlags) error {
	s, err := a.readSnapshot(path)
	if err != nil {
		return err
	}
	if f.request.decision != "" {
		return a.explainDecision(s, f)
	}
	r := explain.Request{
		Cluster: f.filter.Cluster, Class: f.filter.Class, Key: f.request.key, Tenant: f.request.tenant,
		Path: f.request.path, Method: f.request.method, Model: f.request.model,
		Identities: f.request.identity, Headers: f.request.headers, Ejected: f.request.down,
	}
	placement, err := explain.PlaceRequest(s, r)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	return a.print(placement, f.format)
}

// explainDecision explains a line of a decision log.
func (a *app) explainDecision(s *snapshot.Snapshot, f explainFlags) error {
	line := []byte(f.request.decision)
	if f.request.decision == "-" {
		var err error
		if line, err = io.ReadAll(io.LimitReader(a.stdin, 1<<20)); err != nil {
			return err
		}
	}
	decision, err := explain.ReadDecision(line, s, f.filter.Cluster)
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	return a.print(decision, f.format)
}
