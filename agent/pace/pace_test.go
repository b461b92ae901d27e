package pace

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pacer
		begin := time.Now()
		rested := func() time.Duration {
			before := time.Now()
			p.Pause()
			return time.Since(before)
		}
		for i, tt := range []struct{ work, rest time.Duration }{
			{0, 0}, {workTime - 1, 0}, {1, restTime}, {workTime - 1, 0}, {workTime, restTime},
		} {
			time.Sleep(tt.work)
			if got := rested(); got != tt.rest {
				t.Errorf("%d: rested %v %v after the begin, want %v", i, got, time.Since(begin), tt.rest)
			}
		}
	})
}
