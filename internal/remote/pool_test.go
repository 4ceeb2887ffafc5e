package remote_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/remote"
)

func newPool(t *testing.T, v *vm, resolve remote.Resolve, giveUp time.Duration) *remote.Pool {
	t.Helper()
	p := remote.NewPool(remote.Config{Signer: v.client}, resolve, giveUp)
	t.Cleanup(p.Close)
	return p
}

func (v *vm) resolve(context.Context, string) (remote.Endpoint, error) { return v.endpoint(), nil }

func TestPoolSharesOneConnection(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	var asked atomic.Int32
	p := newPool(t, v, func(ctx context.Context, id string) (remote.Endpoint, error) {
		asked.Add(1)
		return v.resolve(ctx, id)
	}, 0)
	clients := make([]*remote.Client, 8)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			var err error
			if clients[i], err = p.Client(deadline(t), "one"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, c := range clients[1:] {
		if c != clients[0] {
			t.Error("two connections to one VM")
		}
	}
	if asked.Load() != 1 {
		t.Errorf("dialled %d times", asked.Load())
	}
}

func TestPoolRedials(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	p := newPool(t, v, v.resolve, 0)
	first, err := p.Client(deadline(t), "one")
	if err != nil {
		t.Fatal(err)
	}
	v.stop()
	ended(t, first)
	waited := make(chan error, 1)
	go func() {
		_, err := p.Client(deadline(t), "one")
		waited <- err
	}()
	v.start(t) // the pool is trying meanwhile
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	second, err := p.Client(deadline(t), "one")
	if err != nil || second == first {
		t.Errorf("the same connection, or %v", err)
	}
}

func TestPoolGivesUp(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	errGone := errors.New("no such VM")
	wrong := v.endpoint()
	wrong.HostKeys = []string{authorized(newSigner(t))}
	tests := map[string]struct {
		ep   remote.Endpoint
		err  error
		want error
		once bool
	}{
		"host key":          {ep: wrong, want: remote.ErrHostKey, once: true},
		"gone":              {err: errGone, want: errGone, once: true},
		"not there for now": {ep: remote.Endpoint{Network: "unix", Address: v.socket + ".none", HostKeys: wrong.HostKeys}, want: remote.ErrUnreachable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			p := newPool(t, v, func(context.Context, string) (remote.Endpoint, error) {
				asked.Add(1)
				return test.ep, test.err
			}, 3*time.Second)
			_, err := p.Client(deadline(t), "one")
			wantErr(t, "Client", err, test.want)
			if once := asked.Load() == 1; once != test.once {
				t.Errorf("tried %d times", asked.Load())
			}
		})
	}
}

func TestCanceledCallersLeaveThePool(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	v.stop()
	p := newPool(t, v, v.resolve, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := p.Client(ctx, "one")
	wantErr(t, "Client", err, context.DeadlineExceeded)
}

func TestPoolForgetsAndCloses(t *testing.T) {
	t.Parallel()
	v := newVM(t)
	p := newPool(t, v, v.resolve, 0)
	a, errA := p.Client(deadline(t), "a")
	b, errB := p.Client(deadline(t), "b")
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	p.Forget("a")
	p.Forget("a")
	ended(t, a)
	if b.Err() != nil {
		t.Error("forgetting a closed b")
	}
	p.Close()
	p.Close()
	ended(t, b)
	if _, err := p.Client(deadline(t), "b"); err == nil {
		t.Error("a closed pool connects")
	}
}
