package traffic

import (
	"strings"
	"testing"
)

func TestReadTrace(t *testing.T) {
	type row struct {
		at, prompt, output float64
		turn               int32
	}
	tests := []struct {
		name, text string
		want       []row
		blocks     int
		skipped    int
	}{
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:04.2500000,3180,8\n2023-11-16 18:17:03.0000000,4808,10\n",
			[]row{{0, 4808, 10, 0}, {1.25, 3180, 8, 0}}, 0, 0},
		{"mooncake", `{"timestamp": 3000, "input_length": 1100, "output_length": 50, "hash_ids": [0, 1, 2]}
{"timestamp": 6000, "input_length": 1700, "output_length": 60, "hash_ids": [0, 1, 2, 3]}

{"timestamp": 6000, "input_length": 600, "output_length": 70, "hash_ids": [0, 4]}`,
			[]row{{0, 1100, 50, 0}, {3, 1700, 60, 1}, {3, 600, 70, 0}}, 512, 0},
		{"sessions by the clock", "session_id,span_index,start_time_unix_s,input_tokens,output_tokens\na,0,1776685494.5,100,7\nb,0,1776685495.5,50,1\na,1,1776685500.5,200,9\na,2,1776685501.5,0,0\n",
			[]row{{0, 100, 7, 0}, {1, 50, 1, 0}, {6, 200, 9, 1}}, 0, 1},
		{"sessions by their start", "session,session_id,request_arrival_delta_s,input_tokens,output_tokens\n0,x,0.5,100,7\n1,y,0.25,10,1\n",
			[]row{{0, 10, 1, 0}, {0.25, 100, 7, 0}}, 0, 0},
		{"burstgpt", "\ufeffTimestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n",
			[]row{{0, 472, 18, 0}, {40, 1087, 230, 0}}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadTrace("t", strings.NewReader(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Requests) != len(tt.want) || got.BlockTokens != tt.blocks || got.Skipped != tt.skipped {
				t.Fatalf("%d requests of blocks of %d, %d skipped, want %d, %d, %d", len(got.Requests), got.BlockTokens, got.Skipped, len(tt.want), tt.blocks, tt.skipped)
			}
			for i, want := range tt.want {
				r := got.Requests[i]
				if have := (row{r.AtS, r.PromptTokens, r.OutputTokens, r.Turn}); have != want {
					t.Errorf("request %d is %v, want %v", i, have, want)
				}
			}
		})
	}
}

// An agent that compacts its text begins a new one, under the same key.
func TestCompactedSessionSharesNothing(t *testing.T) {
	got, err := ReadTrace("t", strings.NewReader("session_id,start_time_unix_s,input_tokens,output_tokens\na,0,1000,1\na,1,1100,1\na,2,200,1\na,3,300,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := got.Requests
	if r[0].Prefix.Block(0) != r[1].Prefix.Block(0) || r[2].Prefix.Block(0) != r[3].Prefix.Block(0) {
		t.Error("a turn does not go on from the one before")
	}
	if r[1].Prefix.Block(0) == r[2].Prefix.Block(0) {
		t.Error("the compacted text shares blocks with the one before")
	}
	if r[0].Conversation != r[3].Conversation {
		t.Error("the session has two keys")
	}
}

// Every problem is told, by line.
func TestReadTraceErrors(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{`t:1: has no header`}},
		{"unknown", "a,b\n1,2\n", []string{`t:1: header "a,b" is of no known trace, want Azure's`}},
		{"no rows", "TIMESTAMP,ContextTokens,GeneratedTokens\n", []string{"t: has no request, want at least one"}},
		{"rows", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n2023-11-16 18:17:03,-1,x\n2023-11-16 18:17:03,1\n", []string{
			`t:2: TIMESTAMP is "yesterday", want a time such as`,
			`t:3: ContextTokens is -1, want 0 to 1e+08`, `t:3: GeneratedTokens is "x", want a number`,
			`t:4: is no row: wrong number of fields`}},
		{"lines", "{\"timestamp\": 0}\n{\"timestamp\": -1, \"input_length\": 1, \"output_length\": 2, \"hash_ids\": []}\nnonsense\n", []string{
			"t:1: lacks timestamp, input_length or output_length, want all three",
			"t:2: timestamp is -1, want 0 to 1e+13", "t:3: is no request: invalid character"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ReadTrace("t", strings.NewReader(tt.text))
			if err == nil {
				t.Fatal("no error")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("%d problems, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("line %d is %q, want %q", i, lines[i], want)
				}
			}
		})
	}
}

func TestAssignFollowsWeights(t *testing.T) {
	trace := &Trace{}
	for i := range 30_000 {
		trace.Requests = append(trace.Requests, Request{Conversation: uint64(i/3) + 1})
	}
	trace.Assign([]float64{0, 1, 2}, 7)
	counts := make([]int, 3)
	for i, r := range trace.Requests {
		counts[r.Source]++
		if i%3 > 0 && r.Source != trace.Requests[i-1].Source {
			t.Fatal("a conversation is in two places")
		}
	}
	// A third of 10,000 conversations of 3, four standard deviations.
	if counts[0] != 0 || counts[1] < 10_000-570 || counts[1] > 10_000+570 {
		t.Errorf("%v requests by source, want 0, 10,000 and 20,000", counts)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:04.2500000,3180,8\n")
	f.Add(`{"timestamp": 3000, "input_length": 1100, "output_length": 50, "hash_ids": [0, 1, 2]}`)
	f.Add("session_id,start_time_unix_s,input_tokens,output_tokens\na,0,1000,1\na,1,1100,1\n")
	f.Add("Timestamp,Request tokens,Response tokens\n\"5\n,1,2\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadTrace("t", strings.NewReader(text))
		if err != nil {
			return
		}
		last := 0.0
		for _, r := range trace.Requests {
			if !(r.AtS >= last) || !(r.PromptTokens >= 1) || !(r.OutputTokens >= 0) {
				t.Fatalf("request %+v after %v s", r, last)
			}
			last = r.AtS
		}
	})
}
