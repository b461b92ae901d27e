package figure

import "testing"

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v    float64
		n    int
		want string
	}{
		{0, 4, "0"}, {1e-8, 4, "0"}, {1e-12, 4, "0"}, {-1e-12, 4, "0"}, {63, 4, "63"}, {3154.4, 4, "3154"},
		{925509.5637, 10, "925509.5637"}, {0.12345, 4, "0.1235"}, {-2.5, 4, "-2.5"},
		{1234567, 4, "1234567"}, {99.9999, 4, "100"}, {30.920870, 6, "30.9209"},
	} {
		if got := Number(c.v, c.n); got != c.want {
			t.Errorf("Number(%v, %d) = %q, want %q", c.v, c.n, got, c.want)
		}
	}
	for v, want := range map[float64]string{-1e-18: "0.0 %", 0: "0.0 %", -0.0004: "0.0 %", -0.001: "-0.1 %", 0.7366: "73.7 %"} {
		if got := Percent(v); got != want {
			t.Errorf("Percent(%v) = %q, want %q", v, got, want)
		}
	}
	if got := SignedMs(2); got != "+2" {
		t.Errorf("SignedMs(2) = %q, want +2", got)
	}
	if got := SignedMs(-2); got != "-2" {
		t.Errorf("SignedMs(-2) = %q, want -2", got)
	}
}
