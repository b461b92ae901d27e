package pipeline

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v2"
)

// object is as much of a Kubernetes object as can break without notice: what
// refers to what.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name, Namespace string }
	Subjects   []struct{ Kind, Name, Namespace string }
	RoleRef    struct{ Kind, Name string } `yaml:"roleRef"`
	Spec       struct {
		Schedule          string
		ConcurrencyPolicy string `yaml:"concurrencyPolicy"`
		JobTemplate       struct {
			Spec struct{ Template struct{ Spec pod } }
		} `yaml:"jobTemplate"`
	}
}

type pod struct {
	ServiceAccountName string `yaml:"serviceAccountName"`
	Containers         []container
	Init               []container `yaml:"initContainers"`
	Volumes            []struct {
		Name                  string
		PersistentVolumeClaim struct {
			ClaimName string `yaml:"claimName"`
		} `yaml:"persistentVolumeClaim"`
	}
}

type container struct {
	Name, Image string
	Command     []string
	Env         []struct{ Name, Value string }
	Mounts      []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

func TestKubernetes(t *testing.T) {
	text, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	var objects []object
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.APIVersion == "" || o.Metadata.Name == "" || o.Metadata.Namespace != "irb" {
			t.Errorf("%s: no apiVersion or name, or not in namespace irb", o.Kind)
		}
		names[o.Kind+"/"+o.Metadata.Name] = true
		objects = append(objects, o)
	}
	job := objects[len(objects)-1]
	if job.Kind != "CronJob" || job.Spec.Schedule == "" || job.Spec.ConcurrencyPolicy != "Forbid" {
		t.Fatalf("%+v, want a CronJob that never runs twice at once", job)
	}
	spec := job.Spec.JobTemplate.Spec.Template.Spec
	var volumes []string
	for _, v := range spec.Volumes {
		volumes = append(volumes, v.Name)
		if claim := v.PersistentVolumeClaim.ClaimName; claim != "" && !names["PersistentVolumeClaim/"+claim] {
			t.Errorf("volume %s: no claim %s", v.Name, claim)
		}
	}
	if len(spec.Init) != 1 || len(spec.Containers) != 1 {
		t.Fatalf("%+v, want a container that plans, then one that publishes", spec)
	}
	var mounted []string
	for _, c := range append(spec.Init, spec.Containers...) {
		for _, m := range c.Mounts {
			if !slices.Contains(volumes, m.Name) {
				t.Errorf("%s mounts %s, which is no volume", c.Name, m.Name)
			}
			mounted = append(mounted, m.MountPath)
		}
	}
	for _, v := range spec.Init[0].Env {
		if folder := "/" + strings.Split(strings.TrimPrefix(v.Value, "/"), "/")[0]; strings.HasPrefix(v.Value, "/") && !slices.Contains(mounted, folder) {
			t.Errorf("%s is %s, where nothing is mounted", v.Name, v.Value)
		}
	}
	if !names["ServiceAccount/"+spec.ServiceAccountName] {
		t.Errorf("no service account %s", spec.ServiceAccountName)
	}
	for _, o := range objects {
		if o.Kind == "RoleBinding" && (!names["Role/"+o.RoleRef.Name] || !names["ServiceAccount/"+o.Subjects[0].Name]) {
			t.Errorf("%+v binds what is not there", o)
		}
	}
}

// The workflow and its shell, and that of the script and the crontab, parse.
func TestCommands(t *testing.T) {
	shell(t, commands(t))
	shell(t, cronCommand(t))
}

// commands returns the shell of the script and of the workflow.
func commands(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("pull-request.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Concurrency string
		Jobs        map[string]struct {
			Steps []struct{ Name, Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("plan.sh")
	if err != nil {
		t.Fatal(err)
	}
	all := string(script)
	for name, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if step.Uses == "" && step.Run == "" {
				t.Errorf("%s: step %q does nothing", name, step.Name)
			}
			all += "\n" + step.Run
		}
	}
	if workflow.Concurrency == "" {
		t.Error("two runs of the workflow may be at work at once")
	}
	return all
}

// shell checks that a text is a shell script.
func shell(t *testing.T, text string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-n")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("no shell script: %s\n%s", out, text)
	}
}

func TestSystemd(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze here")
	}
	script, err := filepath.Abs("plan.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var units []string
	for _, name := range []string{"irb-plan.service", "irb-plan.timer"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		here := strings.Replace(string(text), "/usr/local/bin/plan.sh", script, 1)
		units = append(units, filepath.Join(dir, name))
		if err := os.WriteFile(units[len(units)-1], []byte(here), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(verify, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), dir) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
