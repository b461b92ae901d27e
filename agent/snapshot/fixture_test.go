package snapshot

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"aead.dev/minisign"
)

// created is the time of the snapshots of tests.
var created = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// testKey returns a key that depends on seed only.
func testKey(t testing.TB, seed uint64) (minisign.PublicKey, minisign.PrivateKey) {
	t.Helper()
	public, private, err := minisign.GenerateKey(rand.NewChaCha8([32]byte{byte(seed)}))
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

// twoRegions is the case of two regions: us-east fills a-1 and spills to c-1.
func twoRegions() *Snapshot {
	flat := Profile{
		Name: "flat", PromptTokens: 1024, OutputTokens: 256,
		TTFTV: []float64{0, 1}, TTFTMs: []float64{80, 80},
		TBOTV: []float64{0}, TBOTMs: []float64{12},
	}
	return &Snapshot{
		Format:   Format,
		Fleet:    "prod",
		Sequence: 42,
		Created:  created,
		Expires:  created.Add(24 * time.Hour),
		Author:   "an engineer",
		Reason:   "a reason with \"quotes\",\na second line and an arrow →",
		Inputs:   []Input{{Role: "demand", File: "demand.toml", SHA256: Digest(nil)}},
		Solver: Solver{
			Method: "network simplex", Work: "single", Objective: 506520, Bound: 506520,
			LatencyMs: 3165.75, OfferedRPS: 160, ServedRPS: 160, Notes: []string{"one pool"},
		},
		Policy: Policy{MaxUtilization: 1, OutputTokenWork: 4, RoundTrips: 1, Shed: "forbid", FailureDomain: "region"},
		Classes: []Class{
			{
				Name: "chat", Model: "chat-large", Priority: 1,
				Residency: map[string][]string{"zone": {"us", "eu"}, "site plan": {"a"}},
				Requires:  []string{"tools"}, MaxContextTokens: 8192,
				Guard: Guard{RetryAttempts: 2, RetryBudgetRatio: new(float64), TTFTTimeoutMs: 1500},
				Match: Match{
					Path: "/v1/", Methods: []string{"POST"}, Models: []string{"chat-*"},
					Identity: []string{"gateway"}, Headers: map[string]string{"x-tier": "gold"},
				},
			},
			{Name: "default"},
		},
		Engines: []Engine{
			engine("a-1", "region-a", 100, 63, flat),
			engine("b-1", "region-b", 10, 0, flat),
			engine("c-1", "region-c", 80, 0, flat),
		},
		Groups: []Group{{Name: "max_share of chat", Cluster: "us-east", Class: "chat", PriceMs: -1.5}},
		Caps:   []Cap{{Name: "cap 1", Price: 0.25}},
		Cuts:   []Cut{{Priority: 1, Sources: []string{"us-east/chat"}, Engines: []string{"a-1"}}},
		Sources: []Source{
			{
				Cluster: "us-east", Class: "chat", OfferedRPS: 120, ServedRPS: 120,
				PromptTokens: 1024, OutputTokens: 256, PriceMs: 3217, LatencyMs: 3164.5, ProfileMs: 3164.5,
				LayoutFrom: []uint32{0, 3579139413}, LayoutTo: []string{"a-1", "c-1"},
				Weights: []Weight{
					{
						Engine: "a-1", Quota: 3579139413, Fraction: 100. / 120, RPS: 100, RTTMs: 2,
						Cost: Cost{Net: 2, Base: 3152, Limit: 63, Total: 3217},
						Code: "at-limit", Text: "a-1 is at its limit (100 of 100 req/s)",
					},
					{
						Engine: "c-1", Quota: QuotaSum - 3579139413, Fraction: 20. / 120, RPS: 20, RTTMs: 65,
						Cost: Cost{Net: 65, Base: 3152, Total: 3217},
						Code: "spill", Text: "takes what a-1 does not",
					},
				},
				Alternatives: []Alternative{{
					Engine: "b-1", LosesByMs: 5, Cost: Cost{Net: 70, Base: 3152, Total: 3222},
					Code: "loses", Text: "farther away",
				}},
				Fallbacks: []Fallback{{Engine: "b-1", AbsorbRPS: 10, Text: "next by cost"}},
			},
			{
				Cluster: "us-west", Class: "chat", OfferedRPS: 40, ServedRPS: 40,
				PromptTokens: 1024, OutputTokens: 256, PriceMs: 3154, LatencyMs: 3154, ProfileMs: 3154,
				LayoutFrom: []uint32{0}, LayoutTo: []string{"c-1"},
				Weights: []Weight{{
					Engine: "c-1", Quota: QuotaSum, Fraction: 1, RPS: 40, RTTMs: 2,
					Cost: Cost{Net: 2, Base: 3152, Total: 3154}, Code: "cheapest", Text: "nearest",
				}},
			},
		},
	}
}

func engine(name, region string, capacity, limitPrice float64, p Profile) Engine {
	return Engine{
		Name: name, Region: region, Domain: region,
		Endpoints: []string{"http://10.0.0.1:8000", "https://" + name + ".example/base"},
		Models:    []string{"chat-large"}, MaxContextTokens: 131072,
		Capabilities: []string{"tools", "vision"},
		Labels:       map[string]string{"zone": "us", "site plan": "a"},
		CapacityRPS:  capacity, LimitRPS: capacity, PlannedRPS: capacity, PlannedRefRPS: capacity,
		Utilization: 1, LatencyMs: 3152, PriceMs: limitPrice, LimitPriceMs: limitPrice, Price: limitPrice / 2048,
		Profile: p,
	}
}

// large is a fleet with as many sources as said, two weights, three
// alternatives and two fallbacks each.
func large(sources int) *Snapshot {
	s := twoRegions()
	s.Groups, s.Caps, s.Cuts, s.Engines, s.Sources = nil, nil, nil, nil, nil
	random := rand.New(rand.NewPCG(1, 2))
	profile := twoRegions().Engines[0].Profile
	for i := range 1000 {
		s.Engines = append(s.Engines, engine(fmt.Sprintf("engine-%04d", i), fmt.Sprintf("region-%d", i%50), 100*random.Float64(), random.Float64(), profile))
	}
	for i := range sources {
		at := func(k int) string { return s.Engines[(i*7+k)%993].Name }
		pick := []string{at(0), at(1), at(2), at(3), at(4)}
		if pick[0] > pick[1] {
			pick[0], pick[1] = pick[1], pick[0]
		}
		quota := 1 + random.Int64N(QuotaSum-1)
		rps := 200 * random.Float64()
		share := float64(quota) / QuotaSum
		cost := func() Cost {
			k := Cost{Net: 50 * random.Float64(), Base: 3152, Delay: 100 * random.Float64(), Externality: random.Float64()}
			k.Total = k.Net + k.Base + k.Delay + k.Externality
			return k
		}
		text := func(engine string) string {
			return fmt.Sprintf("%s is the cheapest at the margin; one more request costs %.1f ms", engine, 1000*random.Float64())
		}
		s.Sources = append(s.Sources, Source{
			Cluster: fmt.Sprintf("cluster-%05d", i), Class: "chat", OfferedRPS: rps, ServedRPS: rps,
			PromptTokens: 900, OutputTokens: 250, PriceMs: 3200 * random.Float64(), LatencyMs: 3100, ProfileMs: 3100,
			LayoutFrom: []uint32{0, uint32(quota)}, LayoutTo: []string{pick[0], pick[1]},
			Weights: []Weight{
				{Engine: pick[0], Quota: quota, Fraction: share, RPS: rps * share, RTTMs: 2, Cost: cost(), Code: "at-limit", Text: text(pick[0])},
				{Engine: pick[1], Quota: QuotaSum - quota, Fraction: 1 - share, RPS: rps * (1 - share), RTTMs: 65, Cost: cost(), Code: "spill", Text: text(pick[1])},
			},
			Alternatives: []Alternative{
				{Engine: pick[2], LosesByMs: 1, Cost: cost(), Code: "loses", Text: text(pick[2])},
				{Engine: pick[3], LosesByMs: 2, Cost: cost(), Code: "loses", Text: text(pick[3])},
				{Engine: pick[4], LosesByMs: 3, Cost: cost(), Code: "loses", Text: text(pick[4])},
			},
			Fallbacks: []Fallback{
				{Engine: pick[2], AbsorbRPS: 10 * random.Float64(), Text: "next by cost, other domain"},
				{Engine: pick[3], AbsorbRPS: 10 * random.Float64(), Text: "next by cost, other domain"},
			},
		})
	}
	return s
}

func encode(t testing.TB, s *Snapshot) []byte {
	t.Helper()
	body, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func signed(t testing.TB, s *Snapshot, keys ...minisign.PrivateKey) []byte {
	t.Helper()
	file, err := Sign(encode(t, s), keys...)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
