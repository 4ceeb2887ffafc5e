package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	sampled  = 3   // lives of a sample, besides one without failures
	perDrawn = 8   // failpoints in each of them
	surely   = 240 // operations of every life
)

// TestSample draws a few failpoints from a complete life. ERRAND_CRASH_SEED draws the same ones again, as far as two
// lives have the same order of operations; ERRAND_CRASH_POINTS replays one by its name in the log.
func TestSample(t *testing.T) {
	t.Parallel()
	seed := seedOf(t)
	t.Logf("a sample: ERRAND_CRASH_SEED=%d draws it again", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	scripts := []*script{newScript()}
	for range sampled {
		s := newScript()
		for part := range perDrawn {
			when := []moment{before, after, refused, unheard}[rnd.IntN(4)]
			s.drawn = append(s.drawn, draw{from: (part*surely + rnd.IntN(surely)) / perDrawn, when: when})
		}
		scripts = append(scripts, s)
	}
	ends, errs := make([]outcome, len(scripts)), make([]error, len(scripts))
	var g errgroup.Group
	for i, s := range scripts {
		g.Go(func() error {
			ends[i], errs[i] = live(t.Context(), t, s)
			return nil
		})
	}
	_ = g.Wait() // the functions return nil
	if errs[0] == nil {
		errs[0] = expected().same(ends[0])
	}
	if errs[0] != nil {
		t.Fatalf("a life without a death: %v", errs[0])
	}
	c := &count{}
	for i, s := range scripts[1:] {
		hits, err := s.reached(), errs[i+1]
		if err == nil {
			err = ends[0].same(ends[i+1])
		}
		t.Logf("%d: %v", i+1, hits)
		if err != nil {
			t.Errorf("one life of %v: %v", hits, err)
			c.add(len(hits), 0)
			continue
		}
		c.add(len(hits), len(hits))
	}
	c.conclude(t, fmt.Sprintf("crash, a sample drawn with ERRAND_CRASH_SEED=%d", seed), sampled*perDrawn)
}

// seedOf returns the value of ERRAND_CRASH_SEED, or another seed each time.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("ERRAND_CRASH_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("ERRAND_CRASH_SEED: %v", err)
	}
	return seed
}
