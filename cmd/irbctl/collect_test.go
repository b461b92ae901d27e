package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakePrometheus answers queries with one agent's demand of 7 req/s, now, and
// everything else with nothing.
func fakePrometheus(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !strings.HasSuffix(r.URL.Path, "/query_range") {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		return
	}
	if !strings.Contains(r.FormValue("query"), `irb_fleet="two-regions"`) {
		http.Error(w, `{"status":"error","errorType":"bad_data","error":"not the query"}`, http.StatusBadRequest)
		return
	}
	end := testNow.Unix()
	fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"irb_cluster":"us-east","class":"default"},"values":[[%d,"1"],[%d,"7"],[%d,"7"]]}]}}`,
		end-600, end-300, end)
}

func secret(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCollectWritesWhatSolveTakes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(fakePrometheus))
	defer server.Close()
	dir := newKeys(t)
	inputs := filepath.Join(dir, "inputs")
	var r run
	r.expect(t, exitOK, "dry run: nothing written", "collect", twoRegions, "--prometheus", server.URL, "--dry-run")
	r.expect(t, exitOK, "wrote "+inputs, "collect", twoRegions, "-o", inputs, "--prometheus", server.URL)
	for _, want := range []string{
		"us-east/default  8.4    7      x 1    x 1.2", // the first value is of a window that had just begun
		"us-west/default  40     -      -      -",
		"note: us-west/default has no measured demand; it stays at 40 req/s",
		"a-1     1       1      none, as given",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	r.expect(t, exitOK, "us-east/default           8.4", "solve", inputs, "-o", filepath.Join(dir, "weights.toml"), "--key", filepath.Join(dir, "irb.key"))
	r.expect(t, exitOK, "", "collect", twoRegions, "-o", inputs, "--prometheus", server.URL, "--json")
	var result struct {
		Sources []struct {
			Cluster  string
			RPS      float64
			Forecast *struct{ Margin float64 }
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Sources) != 2 || result.Sources[0].RPS != 8.4 || result.Sources[0].Forecast.Margin != 1.2 || result.Sources[1].Forecast != nil {
		t.Errorf("JSON says %+v", result)
	}
}

func TestCollectFaultsLeaveNoFile(t *testing.T) {
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := "vector"
		if strings.HasSuffix(r.URL.Path, "/query_range") {
			kind = "matrix"
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":[]}}`, kind)
	}))
	defer empty.Close()
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>sign in</html>") }))
	defer garbage.Close()
	for _, test := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no source", nil, exitUsage, "give either --prometheus or --agents"},
		{"two sources", []string{"--prometheus", "http://x", "--agents", "http://y"}, exitUsage, "give either"},
		{"no such fleet", []string{"--prometheus", "http://x", "nowhere"}, exitUsage, "accepts 1 arg"},
		{"bad period", []string{"--prometheus", "http://x", "--every", "0s"}, exitUsage, "--every is 0s"},
		{"longer than the shape", []string{"--prometheus", "http://x", "--every", "169h"}, exitUsage, "--every is 169h0m0s, want a duration above 0 and at most 168h"},
		{"no URL", []string{"--prometheus", "prometheus:9090"}, exitUsage, `--prometheus is "prometheus:9090", want a URL such as http://HOST:PORT`},
		{"no URL and no token", []string{"--agents", "gw-1/metrics", "--bearer-token-file", "nowhere"}, exitUsage,
			"--agents is \"gw-1/metrics\", want a URL such as http://HOST:PORT\nirbctl: --bearer-token-file: open nowhere"},
		{"a URL that cannot be read", []string{"--prometheus", "http://me:hush%zz@x"}, exitUsage, "--prometheus is no URL, want one"},
		{"bad quantile", []string{"--prometheus", "http://x", "--quantile", "1"}, exitUsage, "--quantile is 1"},
		{"bad window", []string{"--prometheus", "http://x", "--window", "1ms"}, exitUsage, "--window is 1ms"},
		{"half a password", []string{"--prometheus", "http://x", "--basic-user", "me"}, exitUsage, "belong together"},
		{"half a certificate", []string{"--prometheus", "http://x", "--tls-key", "k"}, exitUsage, "belong together"},
		{"two settings", []string{"--prometheus", "http://x", "--http-config", "c", "--tls-ca", "k"}, exitUsage, "exclude each other"},
		{"no such settings", []string{"--prometheus", "http://x", "--http-config", "nowhere"}, exitUsage, "--http-config nowhere"},
		{"no server", []string{"--prometheus", "http://127.0.0.1:1"}, exitFailure, "connection refused"},
		{"no Prometheus", []string{"--prometheus", garbage.URL}, exitFailure, "Prometheus at " + garbage.URL},
		{"nothing measured", []string{"--prometheus", empty.URL}, exitFailure, `no demand of fleet "two-regions" is measured; nothing written`},
		{"no agents", []string{"--agents", empty.URL, "--apart", "1s"}, exitFailure, "metrics: text format parsing error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			var r run
			r.expect(t, test.code, test.want, append([]string{"collect", twoRegions, "-o", filepath.Join(dir, "inputs")}, test.args...)...)
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("files are left: %v %v", left, err)
			}
		})
	}
	var r run
	r.expect(t, exitUsage, "is FLEET itself", "collect", twoRegions, "-o", twoRegions+"/", "--prometheus", "http://x")
	r.expect(t, exitUsage, "no output", "collect", twoRegions, "--prometheus", "http://x")
}

// The usual ways to a Prometheus server that does not talk to everybody.
func TestCollectAuthentication(t *testing.T) {
	var user, password, bearer string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ = r.BasicAuth()
		bearer = r.Header.Get("Authorization")
		fakePrometheus(w, r)
	}))
	defer server.Close()
	ca := secret(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	collect := func(code int, want string, more ...string) {
		t.Helper()
		var r run
		r.expect(t, code, want, append([]string{"collect", twoRegions, "--dry-run", "--prometheus", server.URL}, more...)...)
	}
	collect(exitFailure, "certificate signed by unknown authority")
	collect(exitOK, "", "--tls-ca", ca, "--bearer-token-file", secret(t, "abc\n"))
	if bearer != "Bearer abc" {
		t.Errorf("Authorization is %q", bearer)
	}
	collect(exitOK, "", "--tls-ca", ca, "--basic-user", "me", "--basic-password-file", secret(t, "hush"))
	if user != "me" || password != "hush" {
		t.Errorf("basic authentication is %q %q", user, password)
	}
	collect(exitOK, "", "--http-config", secret(t, fmt.Sprintf("tls_config: {ca_file: %q}\nauthorization: {credentials: xyz}\n", ca)))
	if bearer != "Bearer xyz" {
		t.Errorf("Authorization is %q", bearer)
	}
}
