package kv_test

import (
	"testing"

	"github.com/errand-bot/errand/state/kv"
)

func TestName(t *testing.T) {
	t.Parallel()
	if got := kv.Name(t.Context()); got != "" {
		t.Errorf("got name %q, want none", got)
	}
	outer := kv.Named(t.Context(), "outer")
	if got := kv.Name(kv.Named(outer, "inner")); got != "inner" {
		t.Errorf("got %q, want the inner name", got)
	}
	if got := kv.Name(outer); got != "outer" {
		t.Errorf("got %q, want the outer name", got)
	}
}
