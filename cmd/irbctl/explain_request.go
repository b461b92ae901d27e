package main

import (
	"github.com/spf13/pflag"

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
}

func (f *requestFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "request", false, "where one request goes: by --cluster, --class or what it matches, --key")
	flags.StringVar(&f.key, "key", "", "with --request: its affinity value (session header, prompt_cache_key); none: it follows the weights")
	flags.StringVar(&f.tenant, "tenant", "", "with --request: the trusted tenant that scopes its key")
	flags.StringVar(&f.path, "request-path", "", "with --request: URL path, to find the class")
	flags.StringVar(&f.method, "request-method", "POST", "with --request: HTTP method, to find the class")
	flags.StringVar(&f.model, "model", "", "with --request: model, to find the class and engines that serve it")
	flags.StringArrayVar(&f.identity, "identity", nil, "with --request: a proven identity, to find the class (repeatable)")
	flags.StringToStringVar(&f.headers, "header", nil, "with --request: a trusted header NAME=VALUE, to find the class (repeatable)")
	flags.StringArrayVar(&f.down, "ejected", nil, "with --request: an engine that this agent has out of service (repeatable)")
}

// explainRequest replays the agents' picking for one request.
func (a *app) explainRequest(path string, f explainFlags) error {
	if path == "" {
		return usageError("--request is about a weight file, not a fleet")
	}
	s, err := a.readSnapshot(path)
	if err != nil {
		return err
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
