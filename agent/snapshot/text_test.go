package snapshot

import (
	"bytes"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
)

func TestEncodeDecode(t *testing.T) {
	for name, s := range map[string]*Snapshot{"two regions": twoRegions(), "large": large(50)} {
		if err := Check(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		body := encode(t, s)
		got, err := Decode(body)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, body)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Errorf("%s: decoded differs (-want +got):\n%s", name, diff)
		}
		if again := encode(t, got); !bytes.Equal(again, body) {
			t.Errorf("%s: encoded again differs:\n%s", name, cmp.Diff(string(body), string(again)))
		}
		var other Snapshot
		meta, err := toml.Decode(string(body), &other)
		if err != nil {
			t.Fatal(err)
		}
		if keys := meta.Undecoded(); len(keys) > 0 {
			t.Errorf("%s: another TOML reader sees further keys %v", name, keys)
		}
		if diff := cmp.Diff(s, &other); diff != "" {
			t.Errorf("%s: another TOML reader differs (-want +got):\n%s", name, diff)
		}
	}
}
