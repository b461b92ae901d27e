package main

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

const followTheSun = "../../examples/follow-the-sun"

// solved writes the weight file of a fleet and returns its path.
func solved(t *testing.T, fleet string) string {
	t.Helper()
	dir := newKeys(t)
	weights := filepath.Join(dir, "weights.toml")
	var r run
	r.expect(t, exitOK, "", "solve", fleet, "-o", weights, "--key", filepath.Join(dir, "irb.key"))
	return weights
}

func TestExplainFleet(t *testing.T) {
	var r run
	r.expect(t, exitOK, "a-1 is at its limit (100 of 100 req/s)", "explain", twoRegions)
	r.expect(t, exitOK, "bottleneck: a-1 is full (100 of 100 reference req/s); room for one more request there would save 63 ms", "explain", twoRegions)
	r.expect(t, exitOK, "queues cost most at a-1", "explain", twoRegions+"-queueing")
	r.expect(t, exitOK, "c-1 serves all 40 req/s of us-west", "explain", twoRegions, "--cluster", "us-west")
}

func TestWhatIf(t *testing.T) {
	weights := solved(t, twoRegions)
	var r run
	r.expect(t, exitOK, "what if: down c-1; demand us-west 0", "explain", weights, "--inputs", twoRegions, "--what-if", "down c-1; demand us-west 0")
	r.expect(t, exitOK, "shed, req/s", "explain", twoRegions, "--what-if", "down c-1")
	r.expect(t, exitOK, "", "explain", twoRegions, "--what-if", "capacity a-1 +20", "--format", "json")
	var tree struct {
		WhatIf struct {
			Now, Then struct {
				Objective float64 `json:"objective_ms_rps"`
			}
			Moves []struct {
				Source, Engine string
				Now            float64 `json:"now_rps"`
				Then           float64 `json:"then_rps"`
			}
		} `json:"what_if"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &tree); err != nil {
		t.Fatal(err)
	}
	// All of us-east fits on a-1 now: 20 req/s come home, 63 ms nearer.
	if saved := tree.WhatIf.Now.Objective - tree.WhatIf.Then.Objective; saved < 1260-1e-6 || saved > 1260+1e-6 {
		t.Errorf("20 req/s more at a-1 save %v ms x req/s, want 20 x 63", saved)
	}
	if len(tree.WhatIf.Moves) != 2 || tree.WhatIf.Moves[0].Now+tree.WhatIf.Moves[1].Now != 120 {
		t.Errorf("moves are %+v", tree.WhatIf.Moves)
	}
	r.expect(t, exitUsage, `there is no engine "a-9" (there are: a-1, c-1)`, "explain", twoRegions, "--what-if", "down a-9")
	r.expect(t, exitUsage, `"up" is nothing that can change`, "explain", twoRegions, "--what-if", "up a-1")
	r.expect(t, exitUsage, "name the fleet with --inputs", "explain", weights, "--n-1")
	r.expect(t, exitUsage, `is of fleet "two-regions"`, "explain", weights, "--inputs", followTheSun, "--n-1")
	r.expect(t, exitOK, "was made from another engines.toml", "explain", weights, "--inputs", twoRegions, "--engines", twoRegions+"-queueing/engines.toml", "--value", "+10%")
}

func TestQuestionsAboutAFleet(t *testing.T) {
	var r run
	// a-1 has 63 ms of limit price; 16.7 % of its requests would come home.
	r.expect(t, exitOK, "10 req/s more at a-1 saves at most 630 ms x req/s; re-solved: 630", "explain", twoRegions, "--value", "10")
	r.expect(t, exitOK, "more at c-1 saves nothing: it carries 75.0 % of its limit", "explain", twoRegions, "--value", "+10%")
	r.expect(t, exitUsage, "want more than 0", "explain", twoRegions, "--value", "-5")
	r.expect(t, exitOK, "asia-b200 is at its limit", "explain", followTheSun, "--value", "+10%")
	r.expect(t, exitOK, `residency zone = ["eu"] of class chat-eu`, "explain", followTheSun, "--sensitivity")
	r.expect(t, exitOK, "without eu-h200: 9.54 req/s cannot be served even by a new plan (West Europe/chat-eu 9.09, East US 2/chat-eu 0.45)", "explain", followTheSun, "--n-1")
	r.expect(t, exitOK, "without a-1: 80 req/s cannot be served", "explain", solved(t, twoRegions), "--inputs", twoRegions, "--n-1")
	r.expect(t, exitOK, "if the round trip rose from 161 to 317 ms", "explain", followTheSun, "--break-even", "West Europe/chat asia-b200")
	r.expect(t, exitUsage, "with an engine of the fleet", "explain", followTheSun, "--break-even", "West Europe/chat mars-1")
	r.expect(t, exitUsage, `there is no source "Mars/chat"`, "explain", followTheSun, "--break-even", "Mars/chat us-h100")
	r.expect(t, exitUsage, "may not use us-h100 whatever its price: residency", "explain", followTheSun, "--break-even", "West Europe/chat-eu us-h100")
}

func TestExplainRequest(t *testing.T) {
	weights := solved(t, followTheSun)
	var r run
	r.expect(t, exitOK, "class    chat-eu", "explain", weights, "--request", "--cluster", "West Europe", "--identity", "eu-gateway")
	r.expect(t, exitOK, `chat: the first that matches; passed over: ["chat-eu"]`, "explain", weights, "--request", "--cluster", "West Europe", "--key", "a")
	r.expect(t, exitOK, "passed over: down", "explain", weights, "--request", "--cluster", "West Europe", "--class", "chat-eu", "--ejected", "eu-h200")
	line := `{"request_id":"r","class":"chat","snapshot":1,"tried":[{"engine":"us-h100","rank":1,"endpoint":"http://127.0.0.1:8021"}],"skipped":[{"engine":"eu-h200","rank":0,"reason":"down"}],"outcome":"served"}`
	r.expect(t, exitOK, "passed over: down", "explain", weights, "--cluster", "West Europe", "--decision", line)
	piped := run{stdin: line}
	piped.expect(t, exitOK, "went to http://127.0.0.1:8021", "explain", weights, "--cluster", "West Europe", "--decision", "-")
	r.expect(t, exitUsage, "no decision", "explain", weights, "--cluster", "West Europe", "--decision", "{")
	r.expect(t, exitUsage, "about a weight file, not a fleet", "explain", followTheSun, "--request", "--cluster", "West Europe")
	r.expect(t, exitUsage, `there is no class "gold"`, "explain", weights, "--request", "--cluster", "West Europe", "--class", "gold")
	r.expect(t, exitUsage, `cluster "Mars" has no source`, "explain", weights, "--request", "--cluster", "Mars")
	r.expect(t, exitUsage, "name it with --cluster", "explain", weights, "--request")
	r.expect(t, exitUsage, "--key describes a request; ask where it goes with --request", "explain", weights, "--cluster", "West Europe", "--key", "a")
	r.expect(t, exitUsage, "--html writes a page", "explain", weights, "--html", "-", "--format", "json")
	r.expect(t, exitUsage, `there is no cluster "Mars" (there are: Australia East, East US 2, Southeast Asia, West Europe)`, "explain", weights, "--cluster", "Mars")
	r.expect(t, exitUsage, `there is no class "gold" (there are: chat, chat-eu)`, "explain", weights, "--class", "gold")
	r.expect(t, exitUsage, `cluster "Australia East" has no class "chat-eu" in the snapshot`, "explain", weights, "--cluster", "Australia East", "--class", "chat-eu")
	r.expect(t, exitOK, "", "explain", weights, "--request", "--cluster", "West Europe", "--class", "chat", "--key", "session-42", "--format", "json")
	var placed struct {
		Engine, Goes string
		From, To     uint64
		Position     uint64
		Endpoints    []string
	}
	if err := json.Unmarshal([]byte(r.stdout), &placed); err != nil {
		t.Fatal(err)
	}
	if placed.Goes != placed.Engine || placed.Position < placed.From || placed.Position >= placed.To || len(placed.Endpoints) == 0 {
		t.Errorf("placement is %+v", placed)
	}
}
