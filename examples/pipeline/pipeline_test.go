// Package pipeline tests the pipeline from measurements to weights in service:
// the script and the files that run it.
package pipeline

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/irb-project/irb/examples/standin"
	"github.com/irb-project/irb/solve/collect/collecttest"
	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
)

const enginesTOML = `[profile.quick]
prompt_tokens = 100
output_tokens = 10
utilization = [0.0, 0.5, 1.0]
ttft_ms = [8, 10, 40]
tbot_ms = [1.2, 1.5, 3.0]

[[engine]]
name = "a-1"
region = "region-a"
endpoints = [%q, %q]
profile = "quick"
capacity_rps = 200

[[engine]]
name = "c-1"
region = "region-c"
endpoints = [%q]
profile = "quick"
capacity_rps = 200
`

// rig is a fleet on this machine: engines, two real agents, a real Prometheus,
// and traffic.
type rig struct {
	t       *testing.T
	dir     string // bin, fleet, state, keys
	engines []*standin.Server
	agents  []string // URLs of status and traffic, by turns
	sent    [2]atomic.Int64
	env     map[string]string
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) write(name, text string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.path(name)), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) irbctl(args ...string) string {
	r.t.Helper()
	cmd := exec.Command(r.path("bin/irbctl"), args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("irbctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// plan runs plan.sh as cron does.
func (r *rig) plan(code int, want string, more ...string) {
	r.t.Helper()
	got, out := r.startPlan(more...)()
	if got != code || !strings.Contains(out, want) {
		r.t.Errorf("plan.sh %v: exit %d, want %d and %q in\n%s", more, got, code, want, out)
	}
}

func (r *rig) startPlan(more ...string) (wait func() (int, string)) {
	var env strings.Builder
	for key, value := range r.env {
		fmt.Fprintf(&env, "%s='%s'\n", key, value)
	}
	file := filepath.Join(r.t.TempDir(), "plan.env")
	if err := os.WriteFile(file, []byte(env.String()+strings.Join(more, "\n")+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", strings.Replace(cronCommand(r.t), "/etc/irb/plan.env", file, 1))
	cmd.Env = []string{"PATH=" + r.path("bin") + ":/usr/local/bin:/usr/bin:/bin"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	return func() (int, string) {
		if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
			r.t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out.String()
	}
}

// cronCommand returns the command of the crontab.
func cronCommand(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("cron")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\*/15 \* \* \* \* irb (.*)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the crontab has no line for every 15 minutes as user irb")
	}
	return string(line[1])
}

// sequence is that of the weight file in service.
func (r *rig) sequence() int64 {
	r.t.Helper()
	text, err := os.ReadFile(r.path("state/weights.toml"))
	if err != nil {
		r.t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^sequence = (\d+)$`).FindSubmatch(text)
	if m == nil {
		r.t.Fatal("the weight file has no sequence")
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r *rig) inputs() *model.Fleet {
	r.t.Helper()
	fleet, err := input.Read(input.Paths{Folder: r.path("state/inputs")})
	if err != nil {
		r.t.Fatal(err)
	}
	return fleet
}

func addresses(t *testing.T, n int) []string {
	t.Helper()
	var list []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all are held until the end, so that they differ
		list = append(list, l.Addr().String())
	}
	return list
}

// start brings everything up, in the order in which an operator would.
func start(t *testing.T) *rig {
	r := &rig{t: t, dir: t.TempDir()}
	for _, program := range []string{"irbctl", "irb-agent"} {
		if out, err := exec.Command("go", "build", "-o", r.path("bin/"+program), "../../cmd/"+program).CombinedOutput(); err != nil {
			t.Fatalf("go build %s: %v\n%s", program, err, out)
		}
	}
	script, err := filepath.Abs("plan.sh")
	if err == nil {
		err = os.Symlink(script, r.path("bin/plan.sh"))
	}
	if err != nil {
		t.Fatal(err)
	}
	at := addresses(t, 7)
	r.write("fleet/engines.toml", fmt.Sprintf(enginesTOML, "http://"+at[0], "http://"+at[1], "http://"+at[2]))
	r.write("fleet/demand.csv", "cluster,class,rps\nus-east,chat,5\nus-west,chat,5\n")
	r.write("fleet/latency.csv", "rtt_ms,region-a,region-c\nus-east,2,65\nus-west,65,2\n")
	r.write("fleet/policy.toml", "fleet = \"prod\"\n[[class]]\nname = \"chat\"\n")
	if err := os.Mkdir(r.path("state"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.irbctl("keygen", "-o", "irb")
	r.irbctl("solve", "fleet", "-o", "state/weights.toml", "--key", "irb.key")

	fleet, err := input.Read(input.Paths{Folder: r.path("fleet")})
	if err != nil {
		t.Fatal(err)
	}
	if r.engines, err = standin.StartFleet(fleet, 1); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.engines {
		t.Cleanup(e.Close)
	}
	for i, cluster := range []string{"us-east", "us-west"} {
		status, traffic := at[3+2*i], at[4+2*i]
		r.agents = append(r.agents, status, traffic)
		r.startAgent(cluster, status, traffic)
		go r.traffic(t, "http://"+traffic, 40*time.Millisecond<<i, &r.sent[i])
	}
	targets := []string{at[0], at[1], at[2]}
	r.env = map[string]string{
		"FLEET": r.path("fleet"), "STATE": r.path("state"), "IRB_KEY_FILE": r.path("irb.key"), "IRB_PUB": r.path("irb.pub"),
		"PROMETHEUS":    collecttest.Prometheus(t, collecttest.Config(collecttest.Job("irb", at[3], at[5]), collecttest.Job("vllm", targets...)), ""),
		"COLLECT_FLAGS": "--window 4s", "MAX_MOVE": "100%",
	}
	return r
}

func (r *rig) startAgent(cluster, status, traffic string) {
	r.write(cluster+".toml", fmt.Sprintf(`fleet = "prod"
cluster = %q
weights = "state/weights.toml"
trusted_key_files = ["irb.pub"]
state_dir = "%s.state"
status_listen = %q
agents = 1
allow_engine_networks = ["127.0.0.1/32"]
[[listener]]
address = %q
[timeouts]
drain_delay = "10ms"
`, cluster, cluster, status, traffic))
	cmd := exec.Command(r.path("bin/irb-agent"), "--config", r.path(cluster+".toml"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if r.t.Failed() {
			r.t.Logf("agent of %s:\n%s", cluster, log.String())
		}
	})
	r.eventually("ready agent of "+cluster, func() bool {
		resp, err := http.Get("http://" + status + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// traffic sends a request every so often until the test ends: every other one
// a stream, each conversation three requests. A prompt of 400 bytes is 100
// tokens to the engines, and 20 are answered.
func (r *rig) traffic(t *testing.T, url string, every time.Duration, sent *atomic.Int64) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	client := &http.Client{Timeout: 10 * time.Second}
	for n := 0; ; n++ {
		select {
		case <-t.Context().Done():
			return
		case <-ticker.C:
		}
		body := fmt.Sprintf(`{"model":"m","max_tokens":20,"stream":%v,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"%-400d"}]}`, n%2 == 0, n/3)
		sent.Add(1)
		go func() {
			if resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body)); err == nil {
				var b bytes.Buffer
				_, _ = b.ReadFrom(resp.Body)
				resp.Body.Close()
			}
		}()
	}
}

func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for range 600 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.t.Fatalf("never came: %s", what)
}

// measured asks Prometheus for a number; false if it has none.
func (r *rig) measured(query string) (string, bool) {
	resp, err := http.Get(r.env["PROMETHEUS"] + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, _ = b.ReadFrom(resp.Body)
	m := regexp.MustCompile(`"value":\[[^,]*,"([^"]*)"\]`).FindSubmatch(b.Bytes())
	if m == nil {
		return "", false
	}
	return string(m[1]), true
}

// A newcomer's way, with everything real: agents measure, Prometheus scrapes,
// the script plans; then an engine loses a replica, and the measurements go.
func TestPipeline(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some 30 s")
	}
	r := start(t)
	began, first := time.Now(), r.sent[0].Load()
	enough := `min(sum by (irb_cluster) (increase(irb_token_reports_total{kind="prompt"}[1h]))) > 40 and on() min(count_over_time(irb_requests_offered_total{attempt="first"}[1h])) > 12`
	r.eventually("enough requests in Prometheus", func() bool { _, ok := r.measured(enough); return ok })
	r.eventually("round trips to both engines", func() bool {
		n, ok := r.measured("count(irb_engine_rtt_seconds)")
		return ok && n == "4"
	})
	rate := float64(r.sent[0].Load()-first) / time.Since(began).Seconds()
	bootstrap := r.sequence()
	r.flagsExist()

	r.plan(0, "traffic moves")
	fleet := r.inputs()
	east := fleet.Demand[0]
	// The default margin of 1.2 is in it; the machine may be busy.
	if got := east.RPS / 1.2; got < 0.7*rate || got > 1.3*rate {
		t.Errorf("demand of us-east is %.1f req/s, %.1f were sent", got, rate)
	}
	if east.OutputTokens != 20 || east.PromptTokens < 95 || east.PromptTokens > 110 {
		t.Errorf("%+v, want 20 output tokens and some 100 of the prompt", east)
	}
	for j, to := range fleet.Latency.To {
		if ms := fleet.Latency.RTTMs[j]; !(ms > 0 && ms < 2) { // loopback; the fleet says 2 and 65
			t.Errorf("round trip of us-east to %s is %v ms, want that of loopback", to, ms)
		}
	}
	second := r.sequence()
	if second <= bootstrap {
		t.Errorf("sequence %d after %d", second, bootstrap)
	}
	r.eventually("both agents take the plan", func() bool {
		n, ok := r.measured("min(irb_snapshot_sequence)")
		got, err := strconv.ParseFloat(n, 64)
		return ok && err == nil && int64(got) == second
	})

	direct := r.irbctl("collect", "fleet", "-o", "direct", "--agents", "http://"+r.agents[0]+"/metrics", "--agents", "http://"+r.agents[2]+"/metrics", "--apart", "2s")
	if strings.Contains(direct, "no measured demand") || !strings.Contains(direct, "connects of agents: 2 of 2 endpoints up") {
		t.Errorf("collect from the agents themselves:\n%s", direct)
	}

	t.Log("a-1 loses one of two replicas")
	r.engines[0].Close()
	r.eventually("the loss in Prometheus", func() bool {
		n, ok := r.measured(`sum(max_over_time(up{job="vllm"}[4s]))`)
		return ok && n == "2"
	})
	r.plan(1, "the plan in service stays", "MAX_MOVE=0%")
	if r.sequence() != second {
		t.Error("a plan that moves too much is in service")
	}
	if health := r.inputs().Engines[0].Health; health != 0.5 {
		t.Errorf("health of a-1 is %v, want 0.5", health)
	}

	if _, err := os.Stat(r.path("state/rejected.toml")); err != nil {
		t.Errorf("the plan that moves too much is not kept: %v", err)
	}
	if err := os.Remove(r.path("state/rejected.toml")); err != nil {
		t.Error(err)
	}
	r.plan(2, "--max-move is", "MAX_MOVE=most")
	if _, err := os.Stat(r.path("state/rejected.toml")); err == nil {
		t.Error("a wrong flag leaves a rejected plan")
	}
	r.plan(1, "the plan in service stays", "MAX_MOVE=0%")

	t.Log("two at once")
	one, two := r.startPlan(), r.startPlan()
	codeOne, outOne := one()
	codeTwo, outTwo := two()
	for _, run := range []struct {
		code int
		out  string
	}{{codeOne, outOne}, {codeTwo, outTwo}} {
		if run.code != 0 && !(run.code == 1 && strings.Contains(run.out, "another run holds")) {
			t.Errorf("exit %d: %s", run.code, run.out)
		}
	}
	if codeOne != 0 && codeTwo != 0 || r.sequence() <= second {
		t.Errorf("nobody wrote: %d %d", codeOne, codeTwo)
	}
	if _, err := os.Stat(r.path("state/rejected.toml")); err == nil {
		t.Error("a rejected plan is kept that is older than the one in service")
	}

	t.Log("the measurements go")
	third := r.sequence()
	r.plan(1, "connection refused", "PROMETHEUS=http://127.0.0.1:1")
	r.plan(1, `no demand of fleet "prod" is measured`, "PROMETHEUS="+collecttest.Prometheus(t, "", ""))
	if r.sequence() != third {
		t.Error("the plan in service changed though nothing was measured")
	}
	r.irbctl("verify", "state/weights.toml", "--pub", "irb.pub", "--inputs", "state/inputs", "--previous", "state/previous.toml")
}

// flagsExist checks every flag of irbctl that the script and the workflow use.
func (r *rig) flagsExist() {
	r.t.Helper()
	used := map[string][]string{}
	for _, line := range regexp.MustCompile(`(?m)^\s*irbctl (\w+) (.*)$`).FindAllStringSubmatch(commands(r.t), -1) {
		used[line[1]] = append(used[line[1]], regexp.MustCompile(`--[a-z-]+`).FindAllString(line[2], -1)...)
	}
	if len(used) != 4 {
		r.t.Fatalf("commands %v, want collect, solve, verify and diff", used)
	}
	for command, flags := range used {
		help := r.irbctl(command, "--help")
		for _, flag := range flags {
			if !strings.Contains(help, flag+" ") {
				r.t.Errorf("irbctl %s has no flag %s", command, flag)
			}
		}
	}
}
