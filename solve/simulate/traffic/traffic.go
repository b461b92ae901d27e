// Package traffic is the requests of a simulation, in order of time: made from
// the demand of a fleet, or read from a trace.
package traffic

import (
	"math"
	"math/rand/v2"

	"github.com/irb-project/irb/solve/simulate/kv"
)

// Request is one request as a client sends it.
type Request struct {
	AtS          float64 // s from the start
	Source       int32   // number of the source (cluster x class)
	Turn         int32   // of its conversation, from 0
	Conversation uint64  // 0: it belongs to none
	PromptTokens float64
	OutputTokens float64
	// HeldTokens is what was said of a conversation that was under way at the
	// start; who gets it first is taken to hold that much in its cache.
	HeldTokens float64
	Prefix     kv.Prefix
}

// Stream gives requests in order of time. What it fills in is the caller's but
// for the names of blocks, which nobody changes.
type Stream interface {
	// Next fills in the next request; false after the last.
	Next(r *Request) bool
}

// Source is what one source offers.
type Source struct {
	RPS          float64 // requests/s
	PromptTokens float64 // mean
	OutputTokens float64 // mean
	Turns        float64 // mean requests of a conversation, at least 1
}

// Shape returns the factor on the demand of a source at a time in s, and is
// never above Peak.
type Shape struct {
	Factor func(source int, atS float64) float64
	Peak   float64
}

// Steady is demand that does not change.
func Steady() Shape { return Shape{Factor: func(int, float64) float64 { return 1 }, Peak: 1} }

// Options are the choices of synthetic traffic.
type Options struct {
	Seed        uint64
	DurationS   float64
	BlockTokens int
	// LengthCV is the coefficient of variation of prompts and answers, which are
	// lognormal; 0: all have the mean.
	LengthCV float64
	// ThinkS is the mean time in s from the end of an answer, given at AnswerS
	// per output token, to the next turn; exponential.
	ThinkS, AnswerS float64
	// SharedTokens is the part of a prompt that all conversations of a source
	// open with, in tokens: a system prompt.
	SharedTokens float64
}

// Synthetic is a Poisson process of conversations per source. A conversation
// has a geometric number of turns; each repeats all that was said before. Turns
// come at times that do not depend on how fast answers are, so that all
// policies meet the same requests.
type Synthetic struct {
	options Options
	shape   Shape
	sources []source
	rng     *rand.Rand
	due     []turn // heap by time
	serial  uint64 // of conversations and turns made so far
}

type source struct {
	Source
	first, growth float64 // tokens of the first prompt, of each turn after
	rate          float64 // conversations/s at the peak
}

// turn is the next request of a conversation, or, with number -1, the next
// conversation of a source.
type turn struct {
	at           float64
	order        uint64 // breaks ties
	source       int32
	number       int32
	conversation uint64
	prompt       float64 // tokens, as it would be without a random length
	scale        float64 // of the conversation's lengths
	held         float64 // tokens said before the start, if the turn before was
}

// userTokens is what a user says in a turn beside the answer before it.
const userTokens = 64

// NewSynthetic returns the traffic of sources. Conversations that began before
// the start are under way in it.
func NewSynthetic(sources []Source, shape Shape, o Options) *Synthetic {
	s := &Synthetic{options: o, shape: shape, rng: rand.New(rand.NewPCG(o.Seed, 0x7261666669636b21))}
	for i, in := range sources {
		in.Turns = max(1, in.Turns)
		src := source{Source: in, first: in.PromptTokens, rate: in.RPS * shape.Peak / in.Turns}
		if more := in.Turns - 1; more > 0 {
			// A geometric conversation of mean K has K - 1 turns before a mean
			// one. A quarter of the mean prompt at least is there at the start.
			src.growth = min(in.OutputTokens+userTokens, 0.75*in.PromptTokens/more)
			src.first = in.PromptTokens - more*src.growth
		}
		s.sources = append(s.sources, src)
		if src.rate > 0 {
			before := 5 * in.Turns * (o.ThinkS + o.AnswerS*in.OutputTokens)
			if in.Turns == 1 {
				before = 0
			}
			s.push(turn{at: -before + s.rng.ExpFloat64()/src.rate, source: int32(i), number: -1})
		}
	}
	return s
}

// Next implements Stream.
func (s *Synthetic) Next(r *Request) bool {
	for len(s.due) > 0 {
		t := s.pop()
		if t.at >= s.options.DurationS {
			continue
		}
		src := &s.sources[t.source]
		if t.number < 0 {
			s.push(turn{at: t.at + s.rng.ExpFloat64()/src.rate, source: t.source, number: -1})
			if s.rng.Float64()*s.shape.Peak >= s.shape.Factor(int(t.source), max(0, t.at)) {
				continue // thinned, so that the rate is that of the time
			}
			s.serial++
			t.number, t.conversation = 0, scramble(s.serial^s.options.Seed<<32)
			t.prompt, t.scale = src.first, s.length(1)
		}
		output := max(1, math.Round(s.length(src.OutputTokens)))
		if s.rng.Float64() < 1-1/src.Turns {
			next := t
			next.number++
			next.prompt += src.growth
			next.at += s.options.AnswerS*output + s.options.ThinkS*s.rng.ExpFloat64()
			next.held = 0
			if t.at < 0 {
				next.held = t.prompt*t.scale + output
			}
			s.push(next)
		}
		if t.at < 0 {
			continue
		}
		s.fill(r, &t, output)
		return true
	}
	return false
}

func (s *Synthetic) fill(r *Request, t *turn, output float64) {
	*r = Request{
		AtS: t.at, Source: t.source, Turn: t.number, Conversation: t.conversation,
		PromptTokens: max(1, math.Round(t.prompt*t.scale)), OutputTokens: output, HeldTokens: t.held,
		Prefix: kv.Prefix{Conversation: t.conversation},
	}
	if s.options.SharedTokens > 0 {
		r.Prefix.Shared = scramble(uint64(t.source) + 1)
		r.Prefix.SharedBlocks = int(s.options.SharedTokens) / s.options.BlockTokens
	}
}

// length returns a lognormal length of this mean.
func (s *Synthetic) length(mean float64) float64 {
	cv := s.options.LengthCV
	if cv == 0 {
		return mean
	}
	sigma2 := math.Log(1 + cv*cv)
	return mean * math.Exp(math.Sqrt(sigma2)*s.rng.NormFloat64()-sigma2/2)
}

// scramble makes a number that looks random, never 0 but for one in 2^64.
func scramble(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func earlier(a, b *turn) bool { return a.at < b.at || a.at == b.at && a.order < b.order }

// push and pop keep due a binary heap.
func (s *Synthetic) push(t turn) {
	s.serial++
	t.order = s.serial
	s.due = append(s.due, t)
	i := len(s.due) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !earlier(&t, &s.due[parent]) {
			break
		}
		s.due[i] = s.due[parent]
		i = parent
	}
	s.due[i] = t
}

func (s *Synthetic) pop() turn {
	top := s.due[0]
	last := len(s.due) - 1
	x := s.due[last]
	s.due = s.due[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && earlier(&s.due[child+1], &s.due[child]) {
			child++
		}
		if !earlier(&s.due[child], &x) {
			break
		}
		s.due[i] = s.due[child]
		i = child
	}
	s.due[i] = x
	return top
}
