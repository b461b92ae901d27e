//go:build !cgo

package lp

import (
	"context"
	"errors"
	"testing"
)

func TestWithoutCLP(t *testing.T) {
	ctx := context.Background()
	_, solve := Solve(ctx, nil, Options{})
	_, fine := Fine(ctx, nil, 1)
	_, judge := Judge(ctx, nil, nil)
	_, ranges := Ranges(ctx, nil, nil, 0)
	for i, err := range []error{solve, fine, judge, ranges} {
		if !errors.Is(err, ErrNoCLP) {
			t.Errorf("function %d: error %v, want ErrNoCLP", i, err)
		}
	}
}
