package explain

import (
	"math"
	"strings"
	"testing"

	"github.com/irb-project/irb/solve/input"
	"github.com/irb-project/irb/solve/model"
)

func readFleet(t testing.TB, name string) *model.Fleet {
	t.Helper()
	fleet, err := input.Read(input.Paths{Folder: "../examples/" + name})
	if err != nil {
		t.Fatal(err)
	}
	return fleet
}

func TestChangesApply(t *testing.T) {
	fleet := readFleet(t, "follow-the-sun")
	engine := func(f *model.Fleet, name string) model.Engine {
		for _, e := range f.Engines {
			if e.Name == name {
				return e
			}
		}
		t.Fatalf("no engine %q", name)
		return model.Engine{}
	}
	rtt := func(f *model.Fleet, cluster, name string) float64 {
		ms, err := roundTripMs(f, cluster, name)
		if err != nil {
			t.Fatal(err)
		}
		return ms
	}
	for _, test := range []struct {
		text string
		got  func(f *model.Fleet) float64
		want float64
	}{
		{"down eu-h200", func(f *model.Fleet) float64 { return engine(f, "eu-h200").Health }, 0},
		{"down region  East US 2", func(f *model.Fleet) float64 { return engine(f, "us-h100").Health }, 0},
		{"health us-h100 0.5", func(f *model.Fleet) float64 { return engine(f, "us-h100").Health }, 0.5},
		{"capacity us-h100 -10%", func(f *model.Fleet) float64 { return engine(f, "us-h100").CapacityRPS }, 18.978 * 0.9},
		{"capacity us-h100 +2", func(f *model.Fleet) float64 { return engine(f, "us-h100").CapacityRPS }, 20.978},
		{"capacity us-h100 40", func(f *model.Fleet) float64 { return engine(f, "us-h100").CapacityRPS }, 40},
		{"demand East US 2 +20%", func(f *model.Fleet) float64 { return total(f, "East US 2", "") }, 11.2 * 1.2},
		{"demand East US 2/chat 0", func(f *model.Fleet) float64 { return total(f, "East US 2", "") }, 0.45},
		{"demand */chat-eu +100%", func(f *model.Fleet) float64 { return total(f, "", "chat-eu") }, 2 * 9.54},
		{"latency West Europe -> us-h100 +20", func(f *model.Fleet) float64 { return rtt(f, "West Europe", "us-h100") }, 110},
		{"latency West Europe -> us-h100 +20", func(f *model.Fleet) float64 { return rtt(f, "West Europe", "eu-h200") }, 1},
		{"latency West Europe -> us-h100 +20", func(f *model.Fleet) float64 { return rtt(f, "Australia East", "us-h100") }, 193},
		{"max_utilization 0.8", func(f *model.Fleet) float64 { return f.Policy.MaxUtilization }, 0.8},
	} {
		c, err := ParseChange(test.text)
		if err != nil {
			t.Error(err)
			continue
		}
		changed, err := ApplyChanges(fleet, []Change{c})
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := test.got(changed); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", test.text, got, test.want)
		}
	}
	if fleet.Policy.MaxUtilization != 0.9 || engine(fleet, "eu-h200").Health != 1 || total(fleet, "", "") != 39.35 || len(fleet.Latency.To) != 4 {
		t.Error("the fleet itself was changed")
	}
}

func total(f *model.Fleet, cluster, class string) (rps float64) {
	for _, d := range f.Demand {
		if (cluster == "" || d.Cluster == cluster) && (class == "" || d.Class == class) {
			rps += d.RPS
		}
	}
	return rps
}

func TestBadChanges(t *testing.T) {
	fleet := readFleet(t, "two-regions")
	for text, want := range map[string]string{
		"":                               "it is empty",
		"down":                           "it names no engine",
		"up a-1":                         `"up" is nothing that can change`,
		"down a-9":                       `there is no engine "a-9" (there are: a-1, c-1)`,
		"down region mars":               `there is no region "mars" (there are: region-a, region-c)`,
		"demand us-east":                 `"us-east" is no number`,
		"demand us-east 20%":             `"20%" could be a change or a share, give it a sign`,
		"demand us-east -120%":           `"-120%" takes away more than there is`,
		"demand us-east/gold +1":         `there is no source "us-east/gold" (there are: us-east/default, us-west/default)`,
		"demand us-east -500":            "would be -380 req/s, want >= 0",
		"capacity 40":                    "it names nothing to change",
		"capacity a-1 NaN":               `"NaN" is no number`,
		"capacity a-1 +Inf":              `"+Inf" is no number`,
		"health a-1 1.5":                 "health would be 1.5, want [0, 1]",
		"latency us-east c-1 5":          "latency has two ends",
		"latency us-north -> c-1 5":      `there is no cluster "us-north"`,
		"latency us-east -> c-1 -1000":   "the round trip would be -935 ms",
		"max_utilization everywhere 0.5": `"everywhere" is too much`,
		"max_utilization 1.5":            "max_utilization would be 1.5",
	} {
		c, err := ParseChange(text)
		if err == nil {
			_, err = ApplyChanges(fleet, []Change{c})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
}

// Whatever the text, it is refused or means a fleet in which numbers are sound.
func FuzzParseChange(f *testing.F) {
	for _, seed := range []string{
		"down a-1", "down region region-a", "health a-1 0.5", "capacity c-1 40", "demand us-east +20%", "demand */default -1",
		"latency us-east -> c-1 +20", "max_utilization 0.95", "demand us-east 1e400", "capacity a-1 -0", "down", "% + -",
	} {
		f.Add(seed)
	}
	fleet := readFleet(f, "two-regions")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChange(text)
		if err != nil {
			return
		}
		if again, err := ParseChange(c.Text); err != nil || again != c {
			t.Errorf("%q reads as %+v, its own text as %+v, %v", text, c, again, err)
		}
		changed, err := ApplyChanges(fleet, []Change{c})
		if err != nil {
			return
		}
		for _, e := range changed.Engines {
			if !(e.CapacityRPS >= 0 && e.Health >= 0 && e.Health <= 1) {
				t.Errorf("%q makes engine %+v", text, e)
			}
		}
		for _, d := range changed.Demand {
			if !(d.RPS >= 0) || math.IsInf(d.RPS, 0) {
				t.Errorf("%q makes demand %+v", text, d)
			}
		}
	})
}
