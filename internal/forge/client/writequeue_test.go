package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWriteQueueLimitsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := newWriteQueue(RateLimit{Burst: 2, Every: time.Second}, time.Now)
		var at []time.Duration
		for range 4 {
			if err := p.wait(t.Context(), PriorityAnswer); err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(start))
		}
		if diff := cmp.Diff([]time.Duration{0, 0, time.Second, 2 * time.Second}, at); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWriteQueueServesHigherPriorityFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newWriteQueue(RateLimit{Burst: 1, Every: time.Second}, time.Now)
		if err := p.wait(t.Context(), PriorityStatus); err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 4)
		enter := func(name string, priority Priority) {
			go func() {
				if err := p.wait(t.Context(), priority); err != nil {
					t.Error(err)
				}
				order <- name
			}()
			synctest.Wait() // until it is in the queue
		}
		enter("status", PriorityStatus)
		enter("answer", PriorityAnswer)
		enter("react", PriorityReaction)
		enter("answer 2", PriorityAnswer)
		var got []string
		for range 4 {
			got = append(got, <-order)
		}
		if diff := cmp.Diff([]string{"react", "answer", "answer 2", "status"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWriteQueueEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newWriteQueue(RateLimit{Burst: 1, Every: time.Hour}, time.Now)
		if err := p.wait(t.Context(), PriorityAnswer); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.wait(ctx, PriorityReaction); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if len(p.waiting) != 0 {
			t.Errorf("got %d writes are still waiting", len(p.waiting))
		}
		start := time.Now() // the canceled write used no token
		if err := p.wait(t.Context(), PriorityAnswer); err != nil || time.Since(start) > time.Hour-time.Minute {
			t.Errorf("got a wait of %s, error %v", time.Since(start), err)
		}
	})
}
