package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/heavytest"
)

const (
	loads  = 6  // lives of TestHeavyLoad
	losses = 2  // of all data, in each of them
	most   = 15 // ends of errand in each of them, besides those
)

// TestHeavyLoad is TestLoad at random moments, twice in each life: errand is killed, restarted, backed up, loses its data, and is restored
// from any of its backups. ERRAND_CRASH_SEED repeats the choices.
func TestHeavyLoad(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	seed := seedOf(t)
	t.Logf("ERRAND_CRASH_SEED=%d repeats the choices", seed)
	for n := range uint64(loads) {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, n))
			if err := playLoad(t, "limits: {vms: 8}", func(l *load, ctx context.Context) error { return l.playAtRandom(ctx, rnd) }); err != nil {
				t.Error(err)
			}
		})
	}
}

// playAtRandom lets all tasks end, with disturbances and losses on the way.
func (l *load) playAtRandom(ctx context.Context, rnd *rand.Rand) error {
	if err := l.prepareAll(ctx, 150*time.Millisecond); err != nil {
		return err
	}
	// A task that no backup knows begins again, and errand asks what to do with the work that it finds.
	all := map[*subject]progress{l.inPlan: planning, l.waits: planning, l.works: planning, l.inReview: planning}
	if err := l.reach(ctx, "all tasks to begin", all); err != nil {
		return err
	}
	l.disturb = func(ctx context.Context) error { return l.disturbAtRandom(ctx, rnd) }
	for n := range losses {
		if err := l.backUp(ctx); err != nil {
			return err
		}
		if err := l.forAWhile(ctx, time.Duration(rnd.Int64N(int64(12*time.Second)))); err != nil {
			return err
		}
		if n == 0 {
			l.late = &subject{title: "Another one", canceled: true}
			if err := l.add(l.late); err != nil {
				return err
			}
			if err := l.forAWhile(ctx, time.Duration(rnd.Int64N(int64(4*time.Second)))); err != nil {
				return err
			}
		}
		// Between two restorations of the same backup more time passes than errand needs for a run.
		l.script.clock.to(l.script.clock.now().Add(2 * time.Minute))
		b := l.backups[rnd.IntN(len(l.backups))]
		fmt.Fprintf(l.log, "LOSS %d, restoring %s\n", n+1, b.file)
		if err := l.loseAndRestore(ctx, b); err != nil {
			return err
		}
	}
	return l.finish(ctx)
}

// forAWhile lets people act for some time.
func (l *load) forAWhile(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	before := l.disturb
	defer func() { l.disturb = before }()
	l.disturb = func(ctx context.Context) error {
		if time.Now().After(end) {
			return errEnough
		}
		return before(ctx)
	}
	until := map[*subject]progress{}
	for _, s := range l.subjects {
		until[s] = answered // nothing ends yet
		if s.canceled {
			until[s] = planned
		}
	}
	if err := l.reach(ctx, "all reviews to be answered", until); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

var errEnough = errors.New("that is enough")

// disturbAtRandom does something to errand now and then.
func (l *load) disturbAtRandom(ctx context.Context, rnd *rand.Rand) error {
	what := rnd.IntN(150)
	if what < 3 {
		if l.troubles++; l.troubles > most {
			return nil
		}
	}
	switch what {
	case 0:
		l.gate.kill()
	case 1:
		return l.restart(ctx)
	case 2:
		return l.rotateSecret(ctx)
	case 3, 4, 5, 6:
		return l.backUp(ctx)
	case 7:
		l.world.Model.Release("work")
	}
	return nil
}
