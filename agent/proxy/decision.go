package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	randv2 "math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// DecisionLog writes a sample of routing decisions as JSON lines. It never
// makes a request wait: what the writer is too slow for is dropped and counted.
// There is no prompt in it, and keys appear only as hashes under a secret.
type DecisionLog struct {
	secret  []byte
	dropped prometheus.Counter
	log     *slog.Logger
	lines   chan decision
	done    chan struct{}
}

// decision is one line of the log.
type decision struct {
	Time      time.Time      `json:"time"`
	RequestID string         `json:"request_id"`
	Class     string         `json:"class,omitempty"`
	Identity  string         `json:"identity,omitempty"`
	Key       string         `json:"key,omitempty"`
	KeySource string         `json:"key_source,omitempty"`
	Snapshot  int64          `json:"snapshot"`
	Tried     []decisionTry  `json:"tried,omitempty"`
	Skipped   []decisionSkip `json:"skipped,omitempty"`
	Outcome   string         `json:"outcome"`
	Status    int            `json:"status,omitempty"`
	TookMs    float64        `json:"took_ms"`
	TTFTMs    float64        `json:"ttft_ms,omitempty"`
	InTokens  int            `json:"prompt_tokens,omitempty"`
	OutTokens int            `json:"output_tokens,omitempty"`
}

type decisionTry struct {
	Engine   string `json:"engine"`
	Endpoint string `json:"endpoint"`
	Rank     int    `json:"rank"`
	Failed   string `json:"failed,omitempty"`
}

// decisionSkip is an engine that was passed over, or one of its endpoints.
type decisionSkip struct {
	Engine   string `json:"engine"`
	Endpoint string `json:"endpoint,omitempty"` // "": all of them
	Rank     int    `json:"rank"`
	Reason   string `json:"reason"`
}

// NewDecisionLog writes to w until Close. Secret keys the hashes; nil: a new
// one, so that they cannot be compared with those of other runs.
func NewDecisionLog(w io.Writer, secret []byte, dropped prometheus.Counter, log *slog.Logger) *DecisionLog {
	if secret == nil {
		secret = make([]byte, 32)
		_, _ = rand.Read(secret) // never fails
	}
	d := &DecisionLog{secret: secret, dropped: dropped, log: log, lines: make(chan decision, 1024), done: make(chan struct{})}
	go d.run(w)
	return d
}

func (d *DecisionLog) run(w io.Writer) {
	defer close(d.done)
	encoder := json.NewEncoder(w)
	failing := false
	for line := range d.lines {
		err := encoder.Encode(line)
		if err != nil {
			d.dropped.Inc()
		}
		if (err != nil) != failing { // once per change, not per line
			failing = err != nil
			d.log.Warn("decision log", "failing", failing, "err", err)
		}
	}
}

// Close writes what is waiting and ends. No request may be under way.
func (d *DecisionLog) Close() {
	close(d.lines)
	<-d.done
}

func (d *DecisionLog) sampled(share float64) bool {
	return share >= 1 || share > 0 && randv2.Float64() < share
}

func (d *DecisionLog) write(x *exchange, now time.Time) {
	line := decision{
		Time: now, RequestID: x.requestIDValue[0], Identity: x.identity[0],
		Snapshot: x.plan.table.Snapshot().Sequence, Outcome: x.outcome.String(), Status: x.status,
		TookMs: ms(now.Sub(x.start)), TTFTMs: ms(x.ttft),
		InTokens: x.sse.InTokens, OutTokens: x.sse.OutTokens,
	}
	if x.class != nil {
		line.Class = x.class.Spec.Name
		line.Key, line.KeySource = d.hash(x.key), x.keySource
	}
	for _, a := range x.tried {
		t := decisionTry{Engine: x.plan.engineName(a.engine), Endpoint: a.endpoint.id, Rank: a.rank}
		if !a.ok {
			t.Failed = a.failed.String()
		}
		line.Tried = append(line.Tried, t)
	}
	for _, s := range x.candidates.walk.Skipped() {
		line.Skipped = append(line.Skipped, decisionSkip{x.plan.engineName(int(s.Engine)), "", int(s.Rank), s.Reason.String()})
	}
	for _, s := range x.candidates.skipped[:x.candidates.skips] {
		id := x.plan.pools[s.engine].endpoints[s.index].id
		line.Skipped = append(line.Skipped, decisionSkip{x.plan.engineName(s.engine), id, s.rank, s.reason})
	}
	d.send(line)
}

func (d *DecisionLog) send(line decision) {
	select {
	case d.lines <- line:
	default:
		d.dropped.Inc()
	}
}

// hash hides a key: it is the same for the same key and secret, and the key
// cannot be guessed from it.
func (d *DecisionLog) hash(key uint64) string {
	mac := hmac.New(sha256.New, d.secret)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], key)
	mac.Write(b[:])
	return hex.EncodeToString(mac.Sum(nil)[:12])
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
