package simulate

// kind is what an event of the simulation is.
type kind uint8

const (
	arriveEngine kind = iota // a request reaches its endpoint
	firstToken               // the first token reaches the gateway
	lastToken                // so does the last
	pushback                 // so does a 503
	fault                    // so does the end of a broken connection
	refused                  // so does the refusal of a connection
	tick                     // of the policy
	begin                    // of a scripted event
	end
)

// event is due at a time; of equal times the one made first is first.
type event struct {
	at    float64
	order uint64
	id    int32 // of a flight, or of a scripted event
	kind  kind
}

// agenda is a 4-ary heap of events: half as deep as a binary one, and the
// children of a node share cache lines.
type agenda struct {
	list  []event
	order uint64
}

func (a *agenda) add(at float64, k kind, id int32) {
	a.order++
	e := event{at: at, order: a.order, id: id, kind: k}
	a.list = append(a.list, e)
	i := len(a.list) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !before(&e, &a.list[parent]) {
			break
		}
		a.list[i] = a.list[parent]
		i = parent
	}
	a.list[i] = e
}

func (a *agenda) next() event {
	top := a.list[0]
	last := len(a.list) - 1
	e := a.list[last]
	a.list = a.list[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= last {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, last); c++ {
			if before(&a.list[c], &a.list[least]) {
				least = c
			}
		}
		if !before(&a.list[least], &e) {
			break
		}
		a.list[i] = a.list[least]
		i = least
	}
	a.list[i] = e
	return top
}

func before(a, b *event) bool { return a.at < b.at || a.at == b.at && a.order < b.order }

// dues is a heap of endpoints by when their next event is due, the place of
// each known, so that a change moves it.
type dues struct {
	at    []float64 // by endpoint
	heap  []int32   // endpoints
	place []int32   // in heap, by endpoint
}

func newDues(n int, never float64) *dues {
	d := &dues{}
	for i := range n {
		d.at = append(d.at, never)
		d.heap = append(d.heap, int32(i))
		d.place = append(d.place, int32(i))
	}
	return d
}

// next returns the endpoint whose event is due first, and when.
func (d *dues) next() (endpoint int32, at float64) { return d.heap[0], d.at[d.heap[0]] }

func (d *dues) set(endpoint int32, at float64) {
	d.at[endpoint] = at
	i := d.place[endpoint]
	for i > 0 {
		parent := (i - 1) / 2
		if !d.before(endpoint, d.heap[parent]) {
			break
		}
		d.put(i, d.heap[parent])
		i = parent
	}
	n := int32(len(d.heap))
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && d.before(d.heap[child+1], d.heap[child]) {
			child++
		}
		if !d.before(d.heap[child], endpoint) {
			break
		}
		d.put(i, d.heap[child])
		i = child
	}
	d.put(i, endpoint)
}

func (d *dues) put(i, endpoint int32) {
	d.heap[i] = endpoint
	d.place[endpoint] = i
}

func (d *dues) before(a, b int32) bool {
	return d.at[a] < d.at[b] || d.at[a] == d.at[b] && a < b
}
