package pick

import (
	"fmt"
	"strings"
	"testing"

	"github.com/irb-project/irb/agent/snapshot"
)

func TestMixIsSplitMix64(t *testing.T) {
	// The first outputs of SplitMix64 from seed 0, as in Vigna's splitmix64.c:
	// the generator adds golden, then mixes.
	state := uint64(0)
	for _, want := range []uint64{0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F} {
		state += golden
		if got := mix(state); got != want {
			t.Errorf("got %#x, want %#x", got, want)
		}
	}
}

// TestGolden pins every number that agents must agree on. If it fails, agents
// of the old and the new version send the same conversation to different
// engines during a roll-out: change it only with a new snapshot format.
func TestGolden(t *testing.T) {
	s := testSnapshot([]uint64{1 << 31, 1 << 30, 1 << 29, 1 << 29}, 2)
	c := mustTable(t, s).Class("k")
	endpoints := NewEndpoints(endpointIDs(4))
	half := make([]uint64, 6)
	for i := range half {
		half[i] = 1 << 63
	}
	var got strings.Builder
	for _, tt := range []struct{ class, tenant, material string }{
		{"chat", "", ""}, {"chat", "", "session-1"}, {"chat", "acme", "session-1"}, {"k", "", "session-1"}, {"k", "", "ключ"},
	} {
		key := Key(tt.class, tt.tenant, Material(tt.material))
		fmt.Fprintf(&got, "%016x %08x order", key, Position(key))
		for _, step := range steps(c, Request{Key: key}) {
			fmt.Fprint(&got, " ", s.Engines[step.Engine].Name)
		}
		fmt.Fprint(&got, " half")
		for _, step := range steps(c, Request{Key: key, Stay: half}) {
			fmt.Fprint(&got, " ", s.Engines[step.Engine].Name)
		}
		fmt.Fprint(&got, " endpoints")
		w := endpoints.Walk(key)
		for i, ok := w.Next(); ok; i, ok = w.Next() {
			fmt.Fprint(&got, " ", i)
		}
		fmt.Fprintln(&got)
	}
	if got.String() != goldenWalks {
		t.Errorf("got\n%swant\n%s", got.String(), goldenWalks)
	}
	spread := NewSpread(0)
	if a, b := spread.Next(), spread.Next(); a != 0x9E3779B97F4A7C15 || b != 0x3C6EF372FE94F82A {
		t.Errorf("spread gives %#x, %#x", a, b)
	}
	if n := uint64(snapshot.QuotaSum); n != 1<<32 {
		t.Errorf("hash space is %d", n)
	}
}

// goldenWalks is one line per key: key, position, order of engines, the same
// when every engine keeps half of its keys, order of endpoints.
const goldenWalks = `7c4f4262df499bf1 7c4f4262 order e0 e1 e3 e2 f0 f1 half e0 e1 e3 f0 f1 e2 endpoints 1 3 0 2
396cd1a9f72dc2e4 396cd1a9 order e0 e1 e3 e2 f0 f1 half e1 e3 e2 e0 f0 f1 endpoints 2 3 1 0
82970495da07f207 82970495 order e1 e3 e0 e2 f0 f1 half e1 e0 e2 f1 e3 f0 endpoints 1 3 2 0
98c0ef82944d66c2 98c0ef82 order e1 e0 e3 e2 f0 f1 half e1 e2 f0 e0 e3 f1 endpoints 0 1 2 3
a966e1796f886eea a966e179 order e1 e0 e3 e2 f0 f1 half e0 f1 e1 e3 e2 f0 endpoints 2 0 1 3
`
