package input

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/irb-project/irb/solve/model"
	"github.com/irb-project/irb/solve/profile"
)

const fixtures = "../../fixtures/input"

func ptr(v float64) *float64 { return &v }

// digestOf returns what Read must say of the bytes of a file.
func digestOf(t *testing.T, role, path string) model.InputDigest {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return model.InputDigest{Role: role, File: filepath.Base(path), SHA256: hex.EncodeToString(sum[:])}
}

func TestReadEveryKey(t *testing.T) {
	folder := filepath.Join(fixtures, "matrix")
	got, err := Read(Paths{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	h100 := profile.Spec{
		Name: "h100-70b", PromptTokens: 1024, OutputTokens: 256,
		Utilization: []float64{0, 0.25, 0.5, 0.75, 0.9, 1},
		TTFTMs:      []float64{80, 85, 100, 140, 220, 400},
		TBOTMs:      []float64{12, 13, 15, 18, 22, 30},
	}
	a100 := profile.Spec{
		Name: "a100 ps", PromptTokens: 1024, OutputTokens: 256, // the policy's reference
		TTFTMs: []float64{140}, TBOTMs: []float64{21}, Queueing: "ps",
	}
	want := &model.Fleet{
		Policy: model.Policy{
			Fleet: "prod", MaxUtilization: 0.9, OutputTokenWork: 4, RoundTrips: 2,
			Reference: &model.Tokens{Prompt: 1024, Output: 256},
			Work:      model.WorkSplit, Shed: true, FailureDomain: "zone",
			TTFTLimitMs: 3000, CachePenaltyMs: ptr(150),
			Classes: []model.Class{{
				Name: "chat", Model: "chat-large", Priority: 1,
				Residency: map[string][]string{"zone": {"eu", "us"}}, Requires: []string{"tools"},
				ContextTokens: 16384, MaxShare: 0.9,
				Match: model.Match{
					Path: "/v1/", Methods: []string{"POST"}, Models: []string{"chat-large", "chat-l*"},
					Identity: []string{"eu-gateway"}, Headers: map[string]string{"x-tier": "gold"},
				},
			}, {Name: "batch", MaxDomainShare: 0.8, CachePenaltyMs: ptr(0)}},
			Rules: []model.Rule{
				{Name: "rule 1 (policy.toml:32)", Cluster: "us-east", Engine: "c-1", MaxShare: ptr(0.5)},
				{Name: "rule 2 (policy.toml:37)", Class: "batch", Region: "region-a", Forbid: true},
			},
			Caps: []model.Cap{{Name: "cap 1 (policy.toml:42)", Region: "region-a", MaxRPS: 110}},
		},
		Profiles: []profile.Spec{a100, h100},
		Engines: []model.Engine{{
			Name: "a-1", Region: "region-a", Endpoints: []string{"http://10.0.0.1:8000", "http://10.0.0.2:8000"},
			Models: []string{"chat-large", "batch/small"}, MaxContextTokens: 131072, Capabilities: []string{"tools"},
			Profile: "h100-70b", CapacityRPS: 100, Health: 1, Labels: map[string]string{"zone": "us", "rack": "r1"},
		}, {
			Name: "c-1", Region: "region-c", Endpoints: []string{"https://[2001:db8::1]:8443"}, Capabilities: []string{"tools"},
			Profile: "a100 ps", CapacityRPS: 80, Health: 1, MaxUtilization: 0.85, TTFTLimitMs: 2000, Labels: map[string]string{"zone": "eu"},
		}, {
			Name: "east-1", Region: "region-a", Endpoints: []string{"http://pool.east.example:8000"}, InternalAffinity: true,
			Profile: "h100-70b", CapacityRPS: 20, Health: 1, Labels: map[string]string{"zone": "us"},
		}},
		Demand: []model.Demand{
			{Cluster: "us-east", Class: "chat", RPS: 120, PromptTokens: 900, OutputTokens: 250, RequestsPerKey: 1, Origin: "demand.toml:2"},
			{Cluster: "eu-west", Class: "chat", RPS: 40, PromptTokens: 900, OutputTokens: 250, CachedFraction: 0.4, RequestsPerKey: 6, Origin: "demand.toml:9"},
			{Cluster: "eu-west", Class: "batch", RPS: 3.5, PromptTokens: 1024, OutputTokens: 256, RequestsPerKey: 1, Origin: "demand.toml:18"},
		},
		Latency: model.Latency{
			From: []string{"us-east", "eu-west"}, To: []string{"region-a", "region-c", "east-1"},
			RTTMs: []float32{2, 65, 1.25, 75, 18.5, float32(math.NaN())},
		},
		Inputs: []model.InputDigest{
			digestOf(t, "demand", filepath.Join(folder, "demand.toml")),
			digestOf(t, "latency", filepath.Join(folder, "latency.csv")),
			digestOf(t, "engines", filepath.Join(folder, "engines.toml")),
			digestOf(t, "policy", filepath.Join(folder, "policy.toml")),
		},
		Warnings: []string{},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("fleet (-want +got):\n%s", diff)
	}
}

func TestReadDefaults(t *testing.T) {
	got, err := Read(Paths{Folder: filepath.Join(fixtures, "pairs")})
	if err != nil {
		t.Fatal(err)
	}
	wantPolicy := model.Policy{
		Fleet: "default", MaxUtilization: 0.9, OutputTokenWork: 4, RoundTrips: 1,
		Work: model.WorkAuto, FailureDomain: "region", Classes: []model.Class{{Name: "default"}},
	}
	if diff := cmp.Diff(wantPolicy, got.Policy); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	wantDemand := []model.Demand{ // tokens of the first row: the profile's reference request
		{Cluster: "us-east", Class: "default", RPS: 120, PromptTokens: 1024, OutputTokens: 256, CachedFraction: 0.25, RequestsPerKey: 4, Origin: "demand.csv:2"},
		{Cluster: "East US 2", Class: "default", RPS: 40, PromptTokens: 1024, OutputTokens: 256, RequestsPerKey: 1, Origin: "demand.csv:3"},
	}
	if diff := cmp.Diff(wantDemand, got.Demand); diff != "" {
		t.Errorf("demand (-want +got):\n%s", diff)
	}
	wantLatency := model.Latency{
		From: []string{"us-east", "East US 2"}, To: []string{"region-a", "region-c"},
		RTTMs: []float32{2, 65, float32(math.NaN()), 3.75},
	}
	if diff := cmp.Diff(wantLatency, got.Latency, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("latency (-want +got):\n%s", diff)
	}
	if len(got.Inputs) != 3 {
		t.Errorf("digests of %d files, want 3: there is no policy", len(got.Inputs))
	}
}

// fleetFiles returns the files of a fixture by name.
func fleetFiles(t testing.TB, fixture string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	entries, err := os.ReadDir(filepath.Join(fixtures, fixture))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(fixtures, fixture, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

// folderOf writes files into a new folder.
func folderOf(t testing.TB, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// The values of a fleet do not depend on byte order marks or line ends.
func TestReadByteOrderMarkAndCRLF(t *testing.T) {
	for _, fixture := range []string{"matrix", "pairs"} {
		plain, err := Read(Paths{Folder: filepath.Join(fixtures, fixture)})
		if err != nil {
			t.Fatal(err)
		}
		files := fleetFiles(t, fixture)
		for name, text := range files {
			files[name] = "\xef\xbb\xbf" + strings.ReplaceAll(text, "\n", "\r\n")
		}
		got, err := Read(Paths{Folder: folderOf(t, files)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plain, got, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(model.InputDigest{}, "SHA256")); diff != "" {
			t.Errorf("%s: fleet (-LF +BOM and CRLF):\n%s", fixture, diff)
		}
		if plain.Inputs[0].SHA256 == got.Inputs[0].SHA256 {
			t.Errorf("%s: the digest leaves out the byte order mark", fixture)
		}
	}
}

func TestReadFileByFile(t *testing.T) {
	matrix := func(name string) string { return filepath.Join(fixtures, "matrix", name) }
	whole, err := Read(Paths{Folder: filepath.Join(fixtures, "matrix")})
	if err != nil {
		t.Fatal(err)
	}
	single, err := Read(Paths{Demand: matrix("demand.toml"), Latency: matrix("latency.csv"), Engines: matrix("engines.toml"), Policy: matrix("policy.toml")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, single, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("fleet (-folder +file by file):\n%s", diff)
	}
	over := filepath.Join(folderOf(t, map[string]string{"rtt.csv": "x,region-a,region-c\nus-east,7,8\neu-west,9,10\n"}), "rtt.csv")
	got, err := Read(Paths{Folder: filepath.Join(fixtures, "matrix"), Latency: over})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{7, 8, 9, 10}; !cmp.Equal(got.Latency.RTTMs, want) {
		t.Errorf("latency is %v, want %v of the file that was named", got.Latency.RTTMs, want)
	}
	if want := digestOf(t, "latency", over); got.Inputs[1] != want {
		t.Errorf("digest is %v, want %v", got.Inputs[1], want)
	}
}

func TestReadBadFiles(t *testing.T) {
	good := fleetFiles(t, "pairs")
	with := func(name, text string) func(t *testing.T) Paths {
		return func(t *testing.T) Paths {
			files := fleetFiles(t, "pairs")
			files[name] = text
			return Paths{Folder: folderOf(t, files)}
		}
	}
	for _, test := range []struct {
		name  string
		paths func(t *testing.T) Paths
		want  string // FOLDER stands for the folder
	}{
		{"no folder", func(t *testing.T) Paths { return Paths{Folder: filepath.Join(t.TempDir(), "nowhere")} },
			"FOLDER: the folder does not exist"},
		{"folder is a file", func(t *testing.T) Paths { return Paths{Folder: filepath.Join(folderOf(t, good), "latency.csv")} },
			"FOLDER: is a file, want a folder"},
		{"empty folder", func(t *testing.T) Paths { return Paths{Folder: t.TempDir()} },
			"FOLDER: has no demand.toml or demand.csv\nFOLDER: has no latency.csv\nFOLDER: has no engines.toml"},
		{"nothing named", func(t *testing.T) Paths { return Paths{} },
			"fleet: there is no folder and no path of demand.toml or demand.csv\nfleet: there is no folder and no path of latency.csv\nfleet: there is no folder and no path of engines.toml"},
		{"two demands", with("demand.toml", "x"),
			"FOLDER: has demand.toml and demand.csv, want one of them"},
		{"named file is missing", func(t *testing.T) Paths { return Paths{Folder: folderOf(t, good), Policy: "nowhere/p.toml"} },
			"p.toml: nowhere/p.toml does not exist"},
		{"named file is a folder", func(t *testing.T) Paths {
			folder := folderOf(t, good)
			return Paths{Folder: folder, Policy: folder}
		}, "FOLDERBASE: FOLDER is a folder, want a file"},
		{"policy is a dangling link", func(t *testing.T) Paths {
			folder := folderOf(t, good)
			if err := os.Symlink("nowhere", filepath.Join(folder, "policy.toml")); err != nil {
				t.Skip(err)
			}
			return Paths{Folder: folder}
		}, "policy.toml: FOLDER/policy.toml does not exist"},
		{"unreadable", func(t *testing.T) Paths {
			folder := folderOf(t, good)
			path := filepath.Join(folder, "engines.toml")
			if err := os.Chmod(path, 0); err != nil {
				t.Skip(err)
			}
			if f, err := os.Open(path); err == nil {
				f.Close()
				t.Skip("this user may read everything")
			}
			return Paths{Folder: folder}
		}, "engines.toml: FOLDER/engines.toml cannot be read: permission denied"},
		{"empty", with("latency.csv", ""), "latency.csv: is empty"},
		{"blank", with("latency.csv", "\xef\xbb\xbf\r\n \n"), "latency.csv: is empty"},
		{"UTF-16", with("engines.toml", "\xff\xfe[\x00"), "engines.toml:1: is UTF-16, want UTF-8"},
		{"NUL in TOML", with("engines.toml", "a = 1\nb = \"\x00\"\n"), "engines.toml:2: is not TOML: TOML files cannot contain control characters: '0x00'"},
		{"invalid UTF-8 in TOML", with("engines.toml", "a = 1\nb = \"\xc3\x28\"\n"), "engines.toml:2: is not TOML: invalid UTF-8 byte: 0xc3"},
		{"NUL in CSV", with("latency.csv", "x,region-a,region-c\nus-east,1,2\nEast US 2,\x00,4\n"),
			`latency.csv:3: round trip from "East US 2" to "region-a" is "\x00", want a finite number >= 0 or blank`},
		{"invalid UTF-8 in CSV", with("latency.csv", "x,region-a,region-c\nus-east,1,2\nEast US 2,3,4\n\xc3\x28,3,4\n"),
			`latency.csv:4: row is "\xc3(", want a name: ` + wantName},
		{"demand without rows", with("demand.csv", "cluster,rps\n"), "demand.csv: has no demand"},
		{"latency without rows", with("latency.csv", "x,region-a,region-c\n"), "latency.csv: has no rows, want one per cluster"},
		{"long form without rows", with("latency.csv", "from,to,rtt_ms\n"), "latency.csv: has no rows, want one per pair"},
		{"engines without engines", with("engines.toml", "# none\n"), "engines.toml: has no engines"},
		{"quote that never ends", with("latency.csv", "x,region-a,region-c\nus-east,1,\"2\nEast US 2,3,4\n"),
			`latency.csv:2: is not CSV: extraneous or missing " in quoted-field`},
	} {
		t.Run(test.name, func(t *testing.T) {
			paths := test.paths(t)
			fleet, err := Read(paths)
			if fleet != nil {
				t.Error("there is a fleet beside the error")
			}
			if _, ok := errors.AsType[*Problems](err); !ok {
				t.Fatalf("error is %T (%v), want *Problems", err, err)
			}
			want := strings.ReplaceAll(test.want, "FOLDERBASE", filepath.Base(paths.Folder))
			want = strings.ReplaceAll(want, "FOLDER", paths.Folder)
			if got := err.Error(); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// A file that says its size is refused without being read: these are sparse.
func TestReadHugeFiles(t *testing.T) {
	for name, limit := range map[string]int64{"latency.csv": 1 << 30, "engines.toml": 64 << 20, "demand.csv": 64 << 20} {
		path := filepath.Join(folderOf(t, fleetFiles(t, "pairs")), name)
		if err := os.Truncate(path, limit+1); err != nil {
			t.Skip(err)
		}
		_, err := Read(Paths{Folder: filepath.Dir(path)})
		want := fmt.Sprintf("%s: %s has %d bytes, want at most %d", name, path, limit+1, limit)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A pipe does not say its size.
func TestReadAtMostOfPipe(t *testing.T) {
	for _, test := range []struct {
		size int
		want string
	}{
		{1000, ""},
		{1001, "/dev/fd/%d has more than 1000 bytes, want at most that"},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprintf("/dev/fd/%d", r.Fd())
		if _, err := os.Stat(path); err != nil {
			t.Skip("no /dev/fd")
		}
		if _, err := w.Write(make([]byte, test.size)); err != nil {
			t.Fatal(err)
		}
		w.Close()
		data, err := readAtMost(path, 1000)
		r.Close()
		switch {
		case test.want == "" && (err != nil || len(data) != test.size):
			t.Errorf("%d bytes: got %d, %v", test.size, len(data), err)
		case test.want != "" && (err == nil || err.Error() != strings.ReplaceAll(test.want, "%d", filepath.Base(path))):
			t.Errorf("%d bytes: got %v, want %s", test.size, err, test.want)
		}
	}
}
