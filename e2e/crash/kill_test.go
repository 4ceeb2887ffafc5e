package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/e2e/stage"
	"github.com/errand-bot/errand/internal/heavytest"
)

const (
	killLives = 5 // parallel lives, and
	kills     = 4 // deaths in each; a life that ends earlier is followed by another
	// longest is the longest time before an incarnation is killed.
	longest = 2500 * time.Millisecond
)

// TestHeavyKill runs errand as a separate process and kills it with SIGKILL at random moments, 20 times in all. The
// outcome of each life must equal that of a life without a death.
func TestHeavyKill(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	want := quiet(t)
	var lives, deaths atomic.Int64
	t.Cleanup(func() {
		t.Logf("PROOF: crash: %d lives in which errand was killed by SIGKILL %d times", lives.Load(), deaths.Load())
	})
	for n := range killLives {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			rnd := rand.New(rand.NewPCG(seed, 0))
			here := 0
			for life := 0; here < kills; life++ {
				if life == kills {
					t.Fatalf("errand was killed only %[2]d times in %[1]d lives", life, here)
				}
				got, died, err := playKilled(t, rnd)
				if err != nil {
					t.Fatal(err)
				}
				if err := want.same(got); err != nil {
					t.Error(err)
				}
				here += died
				lives.Add(1)
				deaths.Add(int64(died))
			}
			t.Logf("killed %d times", here)
		})
	}
}

// playKilled plays a life during which errand is killed, and returns its outcome and the number of deaths.
func playKilled(t *testing.T, rnd *rand.Rand) (o outcome, died int, err error) {
	dir, err := os.MkdirTemp("", "errand-life-")
	if err != nil {
		return o, 0, err
	}
	s := newScript()
	s.quicken()
	l, err := begin(t.Context(), dir, s)
	if err != nil {
		return o, 0, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, l.report())
		}
		err = errors.Join(err, l.close(), os.RemoveAll(dir))
	}()
	if err := l.world.Stop(); err != nil {
		return o, 0, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		var err error
		died, err = l.killAgainAndAgain(ctx, rnd)
		ended <- err
	}()
	played := (&person{life: l}).play(ctx)
	cancel()
	if err := errors.Join(played, <-ended); err != nil {
		return o, died, errors.Join(err, l.world.Start(t.Context()))
	}
	if err := l.world.Start(t.Context()); err != nil {
		return o, died, err
	}
	l.killed = died
	o, err = l.outcome(t.Context())
	return o, died, err
}

// killAgainAndAgain runs errand until ctx ends and kills it several times on the way, and at the end.
func (l *life) killAgainAndAgain(ctx context.Context, rnd *rand.Rand) (died int, err error) {
	for {
		c, err := l.child()
		if err != nil {
			return died, err
		}
		var instant <-chan time.Time
		if died < kills {
			timer := time.NewTimer(time.Duration(rnd.Int64N(int64(longest))))
			defer timer.Stop()
			instant = timer.C
		}
		exited := make(chan error, 1)
		go func() { exited <- c.Wait() }()
		select {
		case err := <-exited:
			if ctx.Err() == nil && !l.portTaken() {
				return died, fmt.Errorf("errand ended unexpectedly: %w", err)
			}
			continue
		case <-instant:
			died++
		case <-ctx.Done():
		}
		if err := c.Process.Kill(); err != nil {
			return died, err
		}
		<-exited // the error reports the kill
		if ctx.Err() != nil {
			return died, nil
		}
		fmt.Fprintf(l.log, "KILLED %d\n", died)
	}
}

// portTaken reports whether errand could not start because the kernel had given its port to another process.
func (l *life) portTaken() bool { return strings.Contains(l.report(), "address already in use") }

// child starts errand as a separate process.
func (l *life) child() (*exec.Cmd, error) {
	cmd, err := stage.Child(l.world.ConfigFile(), strings.TrimPrefix(l.world.URL, "http://"), common.Bin, l.log.Name(), l.world.Timing())
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = l.log, l.log
	return cmd, cmd.Start()
}
