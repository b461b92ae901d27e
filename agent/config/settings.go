package config

// required marks a setting without a default.
const required = "required"

// Setting is one row of the table of settings: the parser, its messages and
// the table for readers are all made from it.
type Setting struct {
	Key     string   // "timeouts.connect"; those of "listener" are per [[listener]]
	Min     string   // smallest value, in the setting's own spelling; "" none
	Max     string   // largest value
	OneOf   []string // the allowed values of a string; nil: any
	Default string   // in the setting's own spelling; "" empty, or required
	Reload  bool     // taken over on SIGHUP
	Meaning string

	field field
}

// field returns the place of a setting: the pointer's type is its kind. The
// listener is nil for settings that are not per listener.
type field func(*Config, *Listener) any

// Settings returns every setting of agent.toml in the order of the table.
func Settings() []Setting {
	groups := [][]Setting{
		policySettings(), addressSettings(), listenerSettings(), routingSettings(),
		timeoutSettings(), limitSettings(), guardSettings(), engineSettings(), logSettings(),
	}
	var all []Setting
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

func policySettings() []Setting {
	return []Setting{
		{Key: "fleet", Default: required, Meaning: "fleet whose snapshots this agent takes",
			field: func(c *Config, _ *Listener) any { return &c.Fleet }},
		{Key: "cluster", Default: required, Meaning: "gateway cluster this agent belongs to",
			field: func(c *Config, _ *Listener) any { return &c.Cluster }},
		{Key: "weights", Default: required, Meaning: "the weight file (signed snapshot) to follow",
			field: func(c *Config, _ *Listener) any { return &c.Weights }},
		{Key: "trusted_keys", Reload: true, Meaning: "minisign public keys, one of which must have signed a snapshot to be accepted from then on",
			field: func(c *Config, _ *Listener) any { return &c.TrustedKeys }},
		{Key: "trusted_key_files", Reload: true, Meaning: "files of minisign public keys, trusted likewise; read again on SIGHUP",
			field: func(c *Config, _ *Listener) any { return &c.TrustedKeyFiles }},
		{Key: "state_dir", Meaning: "folder for the highest accepted sequence and the last accepted snapshot; empty: neither is kept over a restart",
			field: func(c *Config, _ *Listener) any { return &c.StateDir }},
		{Key: "require_fresh", Default: "false", Meaning: "refuse to start from an expired snapshot",
			field: func(c *Config, _ *Listener) any { return &c.RequireFresh }},
		{Key: "poll_interval", Min: "100ms", Max: "1h", Default: "2s", Meaning: "how often the weight file is read even without a file event",
			field: func(c *Config, _ *Listener) any { return &c.PollInterval }},
	}
}

func addressSettings() []Setting {
	return []Setting{
		{Key: "status_listen", Default: "127.0.0.1:9464", Meaning: "address of /metrics, /healthz and /readyz",
			field: func(c *Config, _ *Listener) any { return &c.StatusListen }},
		{Key: "debug_listen", Meaning: "loopback address, or unix:PATH, of /debug and pprof; empty: off",
			field: func(c *Config, _ *Listener) any { return &c.DebugListen }},
	}
}

func listenerSettings() []Setting {
	return []Setting{
		{Key: "listener.address", Default: required, Meaning: "host:port to take requests on",
			field: func(_ *Config, l *Listener) any { return &l.Address }},
		{Key: "listener.identity", Meaning: "trusted identity of callers that nothing else identifies",
			field: func(_ *Config, l *Listener) any { return &l.Identity }},
		{Key: "listener.tls_cert_file", Meaning: "certificate chain (PEM); read again when it changes",
			field: func(_ *Config, l *Listener) any { return &l.TLSCertFile }},
		{Key: "listener.tls_key_file", Meaning: "private key of that certificate (PEM)",
			field: func(_ *Config, l *Listener) any { return &l.TLSKeyFile }},
		{Key: "listener.client_ca_file", Meaning: "CA of client certificates (PEM), which become mandatory; their first URI, DNS or common name is the identity; read again when it changes",
			field: func(_ *Config, l *Listener) any { return &l.ClientCAFile }},
		{Key: "listener.trusted_proxies", Meaning: "networks whose identity_header and X-Forwarded-For are believed",
			field: func(_ *Config, l *Listener) any { return &l.TrustedProxies }},
		{Key: "listener.identity_header", Meaning: "header in which a trusted proxy names the caller; removed from everybody else",
			field: func(_ *Config, l *Listener) any { return &l.IdentityHeader }},
	}
}

func routingSettings() []Setting {
	return []Setting{
		{Key: "allow_engine_networks", Default: required, Reload: true, Meaning: "networks in which engines may be, checked at dial after DNS; loopback and link-local only if named as such; when it changes, open connections serve no further request",
			field: func(c *Config, _ *Listener) any { return &c.AllowEngineNetworks }},
		{Key: "affinity_header", Reload: true, Meaning: "request header that is the affinity key where present; empty: none",
			field: func(c *Config, _ *Listener) any { return &c.AffinityHeader }},
		{Key: "trusted_headers", Reload: true, Meaning: "request headers that class rules may use, believed of trusted proxies and callers with a client certificate",
			field: func(c *Config, _ *Listener) any { return &c.TrustedHeaders }},
		{Key: "agents", Min: "0", Max: "100000", Default: "0", Reload: true, Meaning: "agents of this cluster, which share its planned rate; 0: unknown",
			field: func(c *Config, _ *Listener) any { return &c.Agents }},
		{Key: "agents_name", Reload: true, Meaning: "DNS name that has an address for each agent of this cluster, a headless service for one: they are counted whenever names of endpoints are resolved, and agents counts until then; empty: none",
			field: func(c *Config, _ *Listener) any { return &c.AgentsName }},
		{Key: "drain", Reload: true, Meaning: "engines that get nothing new; requests that depend on a previous response still go there",
			field: func(c *Config, _ *Listener) any { return &c.Drain }},
		{Key: "hold", Reload: true, Meaning: "engines that get nothing at all",
			field: func(c *Config, _ *Listener) any { return &c.Hold }},
		{Key: "stream_failure", OneOf: []string{StreamReset, StreamEvent}, Default: StreamReset, Reload: true, Meaning: "how a stream ends whose engine failed midway: connection reset, or an SSE error event",
			field: func(c *Config, _ *Listener) any { return &c.StreamFailure }},
	}
}

func timeoutSettings() []Setting {
	return []Setting{
		{Key: "timeouts.connect", Min: "1ms", Max: "1m", Default: "1s", Reload: true, Meaning: "DNS, TCP and TLS to an engine",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.Connect }},
		{Key: "timeouts.ttft", Min: "10ms", Max: "1h", Default: "2m", Reload: true, Meaning: "first content of a stream, per attempt",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.TTFT }},
		{Key: "timeouts.idle_stream", Min: "10ms", Max: "1h", Default: "1m", Reload: true, Meaning: "silence of an engine within a response",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.IdleStream }},
		{Key: "timeouts.total", Min: "10ms", Max: "24h", Default: "10m", Reload: true, Meaning: "the deadline of a request up to the first byte of its answer, all attempts together",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.Total }},
		{Key: "timeouts.client_read", Min: "10ms", Max: "1h", Default: "30s", Reload: true, Meaning: "silence of a client within its request body (acts up to a quarter later)",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.ClientRead }},
		{Key: "timeouts.client_write", Min: "10ms", Max: "1h", Default: "30s", Reload: true, Meaning: "one write to a client that does not read (acts up to a half later)",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.ClientWrite }},
		{Key: "timeouts.client_idle", Min: "1s", Max: "1h", Default: "2m", Meaning: "an idle client connection is closed after this (up to a quarter later)",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.ClientIdle }},
		{Key: "timeouts.engine_idle", Min: "10ms", Max: "4900ms", Default: "4s", Meaning: "an idle connection to an engine is closed after this; engines close theirs at 5 s",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.EngineIdle }},
		{Key: "timeouts.drain_delay", Min: "0s", Max: "10m", Default: "5s", Reload: true, Meaning: "after SIGTERM, how long requests are still taken while /readyz already fails",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.DrainDelay }},
		{Key: "timeouts.drain", Min: "0s", Max: "24h", Default: "2m", Reload: true, Meaning: "after that, how long requests in flight may take to finish",
			field: func(c *Config, _ *Listener) any { return &c.Timeouts.Drain }},
	}
}

func limitSettings() []Setting {
	return []Setting{
		{Key: "retry.attempts", Min: "1", Max: "10", Default: "3", Reload: true, Meaning: "attempts of one request, the first included; endpoints that cannot be reached do not count while others are thought to be well",
			field: func(c *Config, _ *Listener) any { return &c.Retry.Attempts }},
		{Key: "retry.budget_ratio", Min: "0", Max: "1", Default: "0.2", Reload: true, Meaning: "retries as a share of requests while engines have room; less the fuller they are, none at saturation",
			field: func(c *Config, _ *Listener) any { return &c.Retry.BudgetRatio }},
		{Key: "retry.budget_floor", Min: "0", Max: "1000", Default: "10", Reload: true, Meaning: "retries per second that are allowed however few the requests, of all agents together if agents is set; only while engines have room",
			field: func(c *Config, _ *Listener) any { return &c.Retry.BudgetFloor }},
		{Key: "body.max_request", Min: "1KiB", Max: "1GiB", Default: "32MiB", Reload: true, Meaning: "largest request body that is read to find its model; over it 413",
			field: func(c *Config, _ *Listener) any { return &c.Body.MaxRequest }},
		{Key: "body.max_agent", Min: "1KiB", Max: "64GiB", Default: "256MiB", Reload: true, Meaning: "memory of all request bodies held at once; over it 413 with Retry-After",
			field: func(c *Config, _ *Listener) any { return &c.Body.MaxAgent }},
		{Key: "body.replay", Min: "0B", Max: "1GiB", Default: "4MiB", Reload: true, Meaning: "largest request body that is kept for a retry",
			field: func(c *Config, _ *Listener) any { return &c.Body.Replay }},
	}
}

func guardSettings() []Setting {
	return []Setting{
		{Key: "guard.consecutive_faults", Min: "1", Max: "1000", Default: "5", Reload: true, Meaning: "faults in a row (5xx, no connection, no answer in time) that eject an endpoint",
			field: func(c *Config, _ *Listener) any { return &c.Guard.ConsecutiveFaults }},
		{Key: "guard.ejection_max", Min: "3s", Max: "10m", Default: "30s", Reload: true, Meaning: "the longest ejection; the first lasts 3s, each further one twice as long; then one probe at a time",
			field: func(c *Config, _ *Listener) any { return &c.Guard.EjectionMax }},
		{Key: "guard.max_ejected_share", Min: "0", Max: "1", Default: "0.5", Reload: true, Meaning: "share of the capacity that a source reaches which ejections and penalties may take away; one endpoint always may, the last never",
			field: func(c *Config, _ *Listener) any { return &c.Guard.MaxEjectedShare }},
		{Key: "guard.outlier_factor", Min: "1.2", Max: "100", Default: "2", Reload: true, Meaning: "how many times slower than its peers, each beside its own profile, an endpoint must be to get less",
			field: func(c *Config, _ *Listener) any { return &c.Guard.OutlierFactor }},
		{Key: "guard.queue_limit", Min: "1", Max: "10000", Default: "5", Reload: true, Meaning: "waiting requests at which an endpoint is saturated; requests are refused only when all of a class are",
			field: func(c *Config, _ *Listener) any { return &c.Guard.QueueLimit }},
		{Key: "guard.concurrency_slack", Min: "1.1", Max: "100", Default: "2", Reload: true, Meaning: "how many times its planned concurrency an endpoint may have before others are preferred; needs agents",
			field: func(c *Config, _ *Listener) any { return &c.Guard.ConcurrencySlack }},
		{Key: "guard.poll_interval", Min: "100ms", Max: "1m", Default: "1s", Meaning: "how often the metrics of each endpoint are read; they are believed for three times as long, 3s at least",
			field: func(c *Config, _ *Listener) any { return &c.Guard.PollInterval }},
	}
}

func engineSettings() []Setting {
	return []Setting{
		{Key: "engine.http2", Default: "false", Meaning: "HTTP/2 to engines: by prior knowledge (h2c) on http, by ALPN on https",
			field: func(c *Config, _ *Listener) any { return &c.Engine.HTTP2 }},
		{Key: "engine.ca_file", Meaning: "CA of the engines' certificates (PEM), read again when it changes; empty: the system's",
			field: func(c *Config, _ *Listener) any { return &c.Engine.CAFile }},
		{Key: "engine.client_cert_file", Meaning: "certificate shown to engines (PEM); read again when it changes",
			field: func(c *Config, _ *Listener) any { return &c.Engine.ClientCertFile }},
		{Key: "engine.client_key_file", Meaning: "private key of that certificate (PEM)",
			field: func(c *Config, _ *Listener) any { return &c.Engine.ClientKeyFile }},
		{Key: "engine.server_name", Meaning: "name expected in the engines' certificates and sent as SNI; empty: the endpoint's host",
			field: func(c *Config, _ *Listener) any { return &c.Engine.ServerName }},
		{Key: "engine.token_file", Meaning: "file with the bearer token that engines want; read again when it changes",
			field: func(c *Config, _ *Listener) any { return &c.Engine.TokenFile }},
		{Key: "engine.client_authorization", OneOf: []string{AuthorizationDrop, AuthorizationForward}, Default: AuthorizationForward, Reload: true, Meaning: "what becomes of the client's Authorization; a token_file replaces it",
			field: func(c *Config, _ *Listener) any { return &c.Engine.ClientAuthorization }},
		{Key: "engine.resolve_interval", Min: "1s", Max: "1h", Default: "10s", Meaning: "the longest time until the DNS names of endpoints are resolved again; sooner, but not within 1s, when their time to live is over",
			field: func(c *Config, _ *Listener) any { return &c.Engine.ResolveInterval }},
	}
}

func logSettings() []Setting {
	return []Setting{
		{Key: "decision_log.path", Meaning: "file of routing decisions, JSON lines, appended to and opened again on SIGHUP; empty: none",
			field: func(c *Config, _ *Listener) any { return &c.DecisionLog.Path }},
		{Key: "decision_log.sample", Min: "0", Max: "1", Default: "0.01", Reload: true, Meaning: "share of requests whose decision is logged",
			field: func(c *Config, _ *Listener) any { return &c.DecisionLog.Sample }},
		{Key: "decision_log.secret_file", Meaning: "file of at least 16 bytes that keys the hashes of affinity keys, so that they agree between restarts and agents; empty: a new random key at each start",
			field: func(c *Config, _ *Listener) any { return &c.DecisionLog.SecretFile }},
		{Key: "log.level", OneOf: []string{"debug", "info", "warn", "error"}, Default: "info", Reload: true, Meaning: "lowest level that is logged",
			field: func(c *Config, _ *Listener) any { return &c.Log.Level }},
		{Key: "log.format", OneOf: []string{"text", "json"}, Default: "text", Meaning: "form of the log on standard error",
			field: func(c *Config, _ *Listener) any { return &c.Log.Format }},
	}
}
