// Package config reads agent.toml: a strict file whose every setting is a row
// of one table (Settings), which holds its unit, range, default and meaning.
package config

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// maxFileBytes bounds agent.toml: a broken mount must not fill the memory.
const maxFileBytes = 1 << 20

// Config is a checked agent.toml with its defaults filled in; paths are
// absolute or relative to the working folder. It is never changed once made.
type Config struct {
	Fleet, Cluster  string
	Weights         string
	TrustedKeys     []string
	TrustedKeyFiles []string
	StateDir        string
	RequireFresh    bool
	PollInterval    time.Duration

	Listeners    []Listener
	StatusListen string
	DebugListen  string

	AllowEngineNetworks []netip.Prefix
	AffinityHeader      string
	TrustedHeaders      []string
	Agents              int
	AgentsName          string
	Hold, Drain         []string
	StreamFailure       string // StreamReset or StreamEvent

	Timeouts    Timeouts
	Retry       Retry
	Body        Body
	Guard       Guard
	Engine      Engine
	DecisionLog DecisionLog
	Log         Log
}

// What a client sees when an engine fails in the middle of a stream.
const (
	StreamReset = "reset"
	StreamEvent = "event"
)

// Listener is one address on which the agent takes requests.
type Listener struct {
	Address     string
	Identity    string
	TLSCertFile string
	TLSKeyFile  string
	// ClientCAFile makes client certificates mandatory; they name the caller.
	ClientCAFile   string
	TrustedProxies []netip.Prefix
	IdentityHeader string
}

// Timeouts of a request and of the agent's end.
type Timeouts struct {
	Connect     time.Duration
	TTFT        time.Duration
	IdleStream  time.Duration
	Total       time.Duration
	ClientRead  time.Duration
	ClientWrite time.Duration
	ClientIdle  time.Duration
	EngineIdle  time.Duration
	DrainDelay  time.Duration
	Drain       time.Duration
}

// Retry bounds the attempts of one request and of all.
type Retry struct {
	Attempts    int
	BudgetRatio float64
	BudgetFloor float64 // retries per second that are allowed at any rate
}

// Body bounds the memory that request bodies take, in bytes.
type Body struct {
	MaxRequest Bytes
	MaxAgent   Bytes
	Replay     Bytes
}

// Guard is how the agent judges endpoints; see package guard.
type Guard struct {
	ConsecutiveFaults int
	EjectionMax       time.Duration
	MaxEjectedShare   float64
	OutlierFactor     float64
	QueueLimit        float64
	ConcurrencySlack  float64
	PollInterval      time.Duration
}

// Engine is how the agent speaks to engines.
type Engine struct {
	HTTP2               bool
	CAFile              string
	ClientCertFile      string
	ClientKeyFile       string
	ServerName          string
	TokenFile           string
	ClientAuthorization string // AuthorizationDrop or AuthorizationForward
	ResolveInterval     time.Duration
}

// What becomes of the client's Authorization header.
const (
	AuthorizationDrop    = "drop"
	AuthorizationForward = "forward"
)

// DecisionLog says where a sample of routing decisions is written.
type DecisionLog struct {
	Path       string
	Sample     float64
	SecretFile string
}

// Log is the agent's own log on standard error.
type Log struct {
	Level  string
	Format string
}

// Load reads and checks the file at path. Its error holds every problem of the
// file, one per line, each with file and line. With an error the config is what
// could be read, for further problems to be found, or nil.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s: over %d bytes", path, maxFileBytes)
	}
	c, err := Parse(filepath.Base(path), data)
	if c != nil {
		c.resolvePaths(filepath.Dir(path))
	}
	return c, err
}

// Parse checks the text of an agent.toml as Load does; name is used in messages.
// It does no I/O.
func Parse(name string, data []byte) (*Config, error) {
	p := &parser{name: name}
	p.parse(data)
	if len(p.problems) > 0 {
		return p.config, errors.Join(p.sorted()...)
	}
	return p.config, nil
}

// resolvePaths makes relative paths relative to the folder of agent.toml, so
// that the agent may be started from anywhere.
func (c *Config) resolvePaths(dir string) {
	paths := []*string{
		&c.Weights, &c.StateDir, &c.DecisionLog.Path, &c.DecisionLog.SecretFile, &c.Engine.CAFile,
		&c.Engine.ClientCertFile, &c.Engine.ClientKeyFile, &c.Engine.TokenFile,
	}
	for i := range c.TrustedKeyFiles {
		paths = append(paths, &c.TrustedKeyFiles[i])
	}
	for i := range c.Listeners {
		l := &c.Listeners[i]
		paths = append(paths, &l.TLSCertFile, &l.TLSKeyFile, &l.ClientCAFile)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}
