// Package signal reads what engines say about how full they are: ORCA load
// reports in the headers of their answers, and their Prometheus metrics.
package signal

import "math"

// Report is how full an engine says it is. What it did not say, or said in a
// way that cannot be believed, is Unknown: neither empty nor full.
type Report struct {
	Running float64 // requests in service, over all data-parallel ranks
	Waiting float64 // requests in the queue, over all ranks
	KVUsage float64 // of the KV cache, 0 to 1; the mean of the ranks
}

// Unknown is the value of what is not known. It is a NaN: every comparison with
// it is false.
func Unknown() float64 { return math.NaN() }

// Known says whether a value of a Report is one.
func Known(x float64) bool { return x == x }

// Nothing is the Report in which all is Unknown.
func Nothing() Report { return Report{Unknown(), Unknown(), Unknown()} }

// Empty says whether nothing is known.
func (r Report) Empty() bool {
	return !Known(r.Running) && !Known(r.Waiting) && !Known(r.KVUsage)
}

// believable says whether x can be a value of q: engines have reported -1 for
// "not measured", and a cache that is 4000 % full.
func believable(q Quantity, x float64) bool {
	limit := 1e9 // requests
	if q == KVUsage {
		limit = 1
	}
	return x >= 0 && x <= limit
}

// Quantity is one value of a Report.
type Quantity uint8

// The quantities.
const (
	Running Quantity = iota
	Waiting
	KVUsage
	quantities
)

var quantityNames = [quantities]string{"running", "waiting", "kv_usage"}

// String returns the label value.
func (q Quantity) String() string { return quantityNames[q] }

// set stores the value of q, Unknown if it is not believable.
func (r *Report) set(q Quantity, x float64) {
	if !believable(q, x) {
		x = Unknown()
	}
	switch q {
	case Running:
		r.Running = x
	case Waiting:
		r.Waiting = x
	case KVUsage:
		r.KVUsage = x
	}
}
