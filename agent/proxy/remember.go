package proxy

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/irb-project/irb/agent/body"
	"github.com/irb-project/irb/agent/pick"
)

// served says who made a response.
type served struct {
	engine   string
	endpoint string // id
}

// responseMemory knows which endpoint made which response, for requests that
// go on from a response and can be served nowhere else. It is bounded: what is
// forgotten goes where its key goes. Two generations, of which the older is
// dropped when the younger is full; readers take no lock.
type responseMemory struct {
	generations atomic.Pointer[generations]
	turn        sync.Mutex // taken once per rememberedResponses
}

type generations struct {
	young, old *sync.Map // digest of a response id -> served
	count      atomic.Int64
}

// rememberedResponses is what a generation holds, some 10 MB.
const rememberedResponses = 1 << 16

func (m *responseMemory) init() {
	m.generations.Store(&generations{young: new(sync.Map), old: new(sync.Map)})
}

func (m *responseMemory) store(id uint64, by served) {
	g := m.generations.Load()
	g.young.Store(id, by)
	if g.count.Add(1) < rememberedResponses {
		return
	}
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.generations.Load() == g {
		m.generations.Store(&generations{young: new(sync.Map), old: g.young})
	}
}

func (m *responseMemory) load(id uint64) (by served, ok bool) {
	g := m.generations.Load()
	v, ok := g.young.Load(id)
	if !ok {
		v, ok = g.old.Load(id)
	}
	if ok {
		by = v.(served)
	}
	return by, ok
}

// remember notes who made the response that begins with head.
func (x *exchange) remember(at attempt, head []byte) {
	if !strings.HasSuffix(x.request.URL.Path, "/responses") {
		return
	}
	if id := responseID(head); len(id) > 0 {
		x.proxy.responses.store(pick.Material(string(id)), served{x.plan.engineName(at.engine), at.endpoint.id})
	}
}

// nameResponse makes a request whose path names a response (to read, cancel or
// delete it) one that only the engine that made the response can answer.
func (x *exchange) nameResponse() {
	_, rest, found := strings.Cut(x.request.URL.Path, "/responses/")
	if !found || x.facts.Stateful {
		return
	}
	if id, _, _ := strings.Cut(rest, "/"); strings.HasPrefix(id, "resp") {
		x.facts.Stateful, x.facts.Previous = true, pick.Material(id)
		if x.facts.Affinity.Source == body.SourceNone {
			x.facts.Affinity = body.Affinity{Source: body.SourceResponse, Material: x.facts.Previous}
		}
	}
}

// responseID returns the id of the response object at the beginning of an
// answer, plain or in its first event.
func responseID(head []byte) []byte {
	const key = `"id":`
	for {
		i := bytes.Index(head, []byte(key))
		if i < 0 {
			return nil
		}
		head = bytes.TrimLeft(head[i+len(key):], " ")
		if !bytes.HasPrefix(head, []byte(`"resp`)) {
			continue
		}
		id, _, whole := bytes.Cut(head[1:], []byte(`"`))
		if !whole || len(id) > 256 || bytes.IndexByte(id, '\\') >= 0 {
			return nil
		}
		return id
	}
}

// pin restricts the candidates of a stateful request to the endpoint that holds
// its state, if that is known. It returns false if that endpoint is known and
// may not be used: such a request never moves.
//
// What another agent's engine answered is not known here. Such a request goes
// where its key goes, which is the right place if all turns of the conversation
// have the same prompt_cache_key or affinity header, on every agent; without
// one an engine that does not know the response answers so itself.
func (x *exchange) pin() bool {
	if !x.facts.Stateful {
		return true
	}
	by, known := x.proxy.responses.load(x.facts.Previous)
	if !known {
		return true
	}
	n, ok := x.plan.table.EngineNumber(by.engine)
	if !ok {
		return false
	}
	// Only engines that the snapshot gives this class, and none on hold.
	anyOf := x.candidates.request
	anyOf.Hard = false
	walk := x.class.Walk(anyOf)
	for step, more := walk.Next(); more; step, more = walk.Next() {
		if step.Engine != n {
			continue
		}
		for i, e := range x.plan.pools[n].endpoints {
			if e.id == by.endpoint {
				x.candidates.pinned = attempt{engine: n, index: i, rank: step.Rank, endpoint: e}
				return true
			}
		}
	}
	return false
}
