package lifetime

import (
	"context"
	"errors"
	"testing"
	"time"
)

var errTest = errors.New("test")

// waitFor fails the test if nothing comes.
func waitFor(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatal(what + " did not come")
	}
}

func TestEndTellsAllThatWait(t *testing.T) {
	var c Context
	if c.Err() != nil || c.Cause() != nil {
		t.Fatal("ended before End")
	}
	done := c.Done()
	called := make(chan struct{})
	c.AfterFunc(func() { close(called) })
	child, cancel := context.WithTimeout(&c, time.Hour)
	defer cancel()
	c.End(errTest)
	c.End(errors.New("too late"))
	waitFor(t, done, "Done")
	waitFor(t, called, "AfterFunc")
	waitFor(t, child.Done(), "Done of a context of the standard library made from it")
	if c.Err() != context.Canceled || c.Cause() != errTest {
		t.Errorf("Err %v, Cause %v", c.Err(), c.Cause())
	}
	waitFor(t, c.Done(), "Done after the end")
	late := make(chan struct{})
	if stop := c.AfterFunc(func() { close(late) }); stop() {
		t.Error("AfterFunc after the end could be stopped")
	}
	waitFor(t, late, "AfterFunc after the end")
}

func TestStoppedFunctionsAreNotCalled(t *testing.T) {
	var c Context
	var stops []func() bool
	called := make(chan int, 3)
	for i := range 3 {
		stops = append(stops, c.AfterFunc(func() { called <- i }))
	}
	if !stops[1]() || stops[1]() {
		t.Error("stop must return true the first time only")
	}
	c.End(nil)
	if sum := <-called + <-called; sum != 2 {
		t.Errorf("called two functions of sum %d, want 0 and 2", sum)
	}
	if stops[0]() {
		t.Error("stop after the end returned true")
	}
	if c.Cause() != context.Canceled {
		t.Errorf("Cause %v", c.Cause())
	}
}

func TestFollow(t *testing.T) {
	type key struct{}
	parents := map[string]func() (context.Context, func()){
		"own": func() (context.Context, func()) {
			p := new(Context)
			return p, func() { p.End(errTest) }
		},
		"of the standard library": func() (context.Context, func()) {
			p, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, "v"))
			return p, func() { cancel(errTest) }
		},
	}
	for name, parent := range parents {
		t.Run(name, func(t *testing.T) {
			p, end := parent()
			var left, stays Context
			left.Follow(p)
			left.End(nil)
			stays.Follow(p)
			if stays.Value(key{}) != p.Value(key{}) {
				t.Error("another value than its parent's")
			}
			end()
			waitFor(t, stays.Done(), "the end of the parent")
			if left.Cause() != context.Canceled {
				t.Errorf("cause of the one that ended before: %v", left.Cause())
			}
			stays.End(nil)
			if c := stays.Cause(); c != errTest {
				t.Errorf("cause %v, want that of the parent", c)
			}
		})
	}
}

func BenchmarkFollowAndEnd(b *testing.B) {
	var parent Context
	b.ReportAllocs()
	for b.Loop() {
		c := new(Context)
		c.Follow(&parent)
		c.End(nil)
	}
}
