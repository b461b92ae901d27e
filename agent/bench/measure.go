package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/irb-project/irb/agent/bench/rig"
)

// bench is what every measurement shares.
type bench struct {
	agent, caddy string // programs
	folder       string // settings and logs of the peers
	engines      []*engine
	began        time.Time // the zero of the engines' clocks
	duration     time.Duration
	streams      int
	share        *share // of what others took
}

func newBench(o options, folder string) (*bench, error) {
	b := &bench{agent: o.agent, caddy: o.caddy, folder: folder, began: time.Now(), duration: o.duration, streams: o.streams, share: newShare(nil)}
	for range enginesBehind {
		e, err := startEngine(b.began)
		if err != nil {
			b.close()
			return nil, err
		}
		b.engines = append(b.engines, e)
	}
	return b, nil
}

func (b *bench) close() {
	for _, e := range b.engines {
		e.listen.Close()
	}
}

// enginesBehind is how many engines the proxies choose from.
const enginesBehind = 4

// result is what one round saw of one proxy, or of no proxy at all.
type result struct {
	openP50, openP99   time.Duration // latency of a request at openRPS
	closedRPS          float64       // requests per second at saturation
	cpuPerRequest      time.Duration // of the proxy, at saturation
	tokenP50, tokenP99 time.Duration // from the engine's write to the client's read
	cpuPerChunk        time.Duration // of the proxy, with all streams open
	peakBytes          int64         // highest resident memory of the proxy
}

// minus returns what a proxy adds to the latencies without one.
func (r result) minus(direct result) result {
	r.openP50 -= direct.openP50
	r.openP99 -= direct.openP99
	r.tokenP50 -= direct.tokenP50
	r.tokenP99 -= direct.tokenP99
	return r
}

const warmUp = time.Second

// errMissing means that a peer is not installed.
var errMissing = errors.New("not installed")

// proxied starts a peer, measures it and stops it.
func (b *bench) proxied(ctx context.Context, p peer) (result, error) {
	process, address, err := p.start(ctx, b)
	if err != nil {
		return result{}, err
	}
	defer process.Kill()
	r, err := b.measure(ctx, address, process)
	if err != nil {
		return r, fmt.Errorf("%s: %w\n%s", p.name, err, process.LastLines())
	}
	return r, nil
}

// measure runs the three loads against an address; process is nil where there
// is no proxy.
func (b *bench) measure(ctx context.Context, address string, process *rig.Process) (r result, err error) {
	b.share.process = process
	b.share.start()
	m := meter{process: process}
	if _, err = openLoop(address, warmUp); err != nil {
		return r, err
	}
	latencies, err := openLoop(address, b.duration)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return r, fmt.Errorf("open loop: %w", err)
	}
	r.openP50, r.openP99 = quantile(latencies, 0.5), quantile(latencies, 0.99)

	n, took, err := closedLoop(address, warmUp, b.duration, m.start, m.stop)
	if err = errors.Join(err, m.err, ctx.Err()); err != nil {
		return r, fmt.Errorf("closed loop: %w", err)
	}
	r.closedRPS = float64(n) / took.Seconds()
	r.cpuPerRequest = m.used() / time.Duration(max(1, n))

	tokens, err := streamLoad(address, b.streams, b.duration, b.began, m.start, m.stop)
	if err = errors.Join(err, m.err, ctx.Err()); err != nil {
		return r, fmt.Errorf("streams: %w", err)
	}
	r.tokenP50, r.tokenP99 = quantile(tokens, 0.5), quantile(tokens, 0.99)
	r.cpuPerChunk = m.used() / time.Duration(len(tokens))
	r.peakBytes = m.after.PeakBytes
	b.share.stop()
	return r, nil
}

// meter takes what a process uses between start and stop.
type meter struct {
	process       *rig.Process // nil: nothing is used
	before, after rig.Usage
	err           error
}

func (m *meter) start() { m.before = m.read() }
func (m *meter) stop()  { m.after = m.read() }

func (m *meter) read() (u rig.Usage) {
	if m.process == nil || m.err != nil {
		return u
	}
	u, m.err = m.process.Usage()
	return u
}

func (m *meter) used() time.Duration { return m.after.CPU - m.before.CPU }
