package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/irb-project/irb/solve/certify"
	"github.com/irb-project/irb/solve/model"
)

// compare runs ours and the peers on the same instances.
func (b *bench) compare(ctx context.Context) error {
	if len(b.peers) == 0 || len(b.against) == 0 || len(b.sizes) == 0 {
		return nil
	}
	folder, err := os.MkdirTemp("", "irb-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := unpackPrograms(folder); err != nil {
		return err
	}
	columns := []string{"sources x engines", "load", "ours"}
	var peers []*peer
	for _, name := range b.peers {
		p, err := preparePeer(ctx, folder, name)
		if err != nil {
			fmt.Fprintf(b.out, "%s: skipped: %v\n\n", name, err)
			continue
		}
		peers = append(peers, p)
		columns = append(columns, name)
	}
	columns = append(columns, "fastest / ours", "by", "memory ours", "memory fastest")
	var tables []*table
	for _, g := range givens() {
		tables = append(tables, newTable(fmt.Sprintf("Peers given %s, to a gap of %.0e", g, certify.GapTol), columns...))
	}
	late := overdue{}
	for _, s := range b.sizes {
		for _, l := range b.against {
			if err := b.side(ctx, fleet{Size: s, Load: l, Seed: b.seed}, peers, late, tables); err != nil {
				return err
			}
		}
	}
	for _, t := range tables {
		if err := t.write(b.out); err != nil {
			return err
		}
	}
	return nil
}

// side adds one instance's row to every table.
func (b *bench) side(ctx context.Context, f fleet, peers []*peer, late overdue, tables []*table) error {
	ours, err := b.time(ctx, f)
	if err != nil {
		return b.failed(ctx, err)
	}
	in, err := newInstance(ctx, f)
	if err != nil {
		return b.failed(ctx, err)
	}
	for i, g := range givens() {
		row := []any{f.Size, f.Load, duration(ours.Seconds)}
		var fastest *attempt
		for _, p := range peers {
			a := b.best(ctx, p, in, g, late)
			if err := ctx.Err(); err != nil {
				return err
			}
			row = append(row, a)
			if a.answered() && (fastest == nil || a.Seconds < fastest.Seconds) {
				fastest = a
			}
		}
		tables[i].row(append(row, b.verdict(ours, fastest)...)...)
	}
	return nil
}

// verdict is the end of a row: ratio, whose, our memory, theirs.
func (b *bench) verdict(ours reply, fastest *attempt) []any {
	if fastest == nil {
		return []any{"> " + ratio(b.limit.Seconds()/ours.Seconds), "nobody in time", memory(ours.PeakBytes), ""}
	}
	return []any{ratio(fastest.Seconds / ours.Seconds), fastest.how, memory(ours.PeakBytes), memory(fastest.PeakBytes)}
}

// best has a peer answer with every setting, and returns the fastest. A later
// setting is given up once it takes longer than the best so far.
func (b *bench) best(ctx context.Context, p *peer, in *instance, g given, late overdue) *attempt {
	var best *attempt
	for _, setting := range p.settings {
		limit := b.limit
		if best != nil && best.answered() {
			limit = min(limit, time.Duration(best.Seconds*float64(time.Second))+time.Second)
		}
		a := &attempt{how: p.name + " " + setting, over: b.limit, guess: true}
		key := a.how + " given " + string(g)
		if !late.hopeless(key, shapeOf(in.problem)) {
			*a = b.attempt(ctx, p, setting, in, g, limit)
			if a.over == b.limit {
				late[key] = shapeOf(in.problem)
			}
		}
		fmt.Fprintf(b.log, "%s: %s: %s\n", in.fleet, key, a.sentence())
		if best == nil || a.before(best) {
			best = a
		}
	}
	return best
}

// overdue remembers who took too long for what, to spare larger fleets of it.
type overdue map[string]fleetShape

type fleetShape struct{ sources, engines, pairs int }

func shapeOf(p *model.Problem) fleetShape {
	return fleetShape{len(p.Sources), len(p.Engines), p.Pairs()}
}

// hopeless says whether a fleet is about as large as one that took too long.
func (o overdue) hopeless(how string, s fleetShape) bool {
	was, ok := o[how]
	return ok && s.sources >= was.sources && s.engines >= was.engines && 2*s.pairs >= was.pairs
}
