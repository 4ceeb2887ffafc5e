package tether_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/tether"
)

// unreachable is a VM that cannot be attached to.
type unreachable struct{ err error }

func (u unreachable) Attach(context.Context, string) (io.ReadWriteCloser, error) { return nil, u.err }

func TestEnsureReturnsTheError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	gone := errors.New("the VM has ended")
	k := tether.NewKeeper(unreachable{gone}, nil, zerolog.Nop())
	if err := k.Ensure(ctx, tether.Peer{VM: "a"}); !errors.Is(err, tether.ErrNotRunning) {
		t.Fatalf("before Run: got %v, want ErrNotRunning", err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- k.Run(running) }()
	for errors.Is(k.Ensure(ctx, tether.Peer{VM: "b"}), tether.ErrNotRunning) && ctx.Err() == nil {
		timer := time.NewTimer(time.Millisecond)
		<-timer.C
	}
	// Every caller gets the error, not only the first one.
	for range 3 {
		if err := k.Ensure(ctx, tether.Peer{VM: "a"}); !errors.Is(err, gone) {
			t.Fatalf("got %v, want %v", err, gone)
		}
	}
	k.Forget("a")
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
