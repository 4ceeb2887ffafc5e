package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

const (
	atOnce = 3 // lives side by side: they mostly wait
	sample = 6 // failpoints in an ordinary test run
	again  = 3 // lives until a failpoint has to be hit
)

// TestCrash has errand die at failpoints of a whole life and wants the same end each time.
func TestCrash(t *testing.T) {
	t.Parallel()
	want, all := record(t)
	points := choose(t, all)
	var hit, passed int
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(atOnce)
	begun := time.Now()
	for _, p := range points {
		g.Go(func() error {
			reached, err := dieAt(ctx, t, p, want)
			mu.Lock()
			defer mu.Unlock()
			if reached {
				hit++
			}
			if err != nil {
				t.Errorf("%s: %v", p, err)
				return nil
			}
			passed++
			return nil
		})
	}
	_ = g.Wait() // the functions return nil
	summary := fmt.Sprintf("failpoints: listed %d hit %d passed %d", len(points), hit, passed)
	fmt.Println(summary)
	t.Logf("%s of %d, in %s", summary, len(all), time.Since(begun).Round(time.Second))
	if len(points) == 0 || hit != len(points) || passed != len(points) {
		t.Error(summary)
	}
}

// dieAt plays a life in which errand dies at p. Which calls a life makes differs a little with the
// times, so a failpoint that was not reached is tried again.
func dieAt(ctx context.Context, t *testing.T, p point, want outcome) (reached bool, err error) {
	for range again {
		s := newScript(p)
		begun := time.Now()
		got, err := live(ctx, t, s)
		reached = s.hit() == 1
		if err != nil {
			return reached, err
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			return reached, fmt.Errorf("the life came to another end (-want +got):\n%s", diff)
		}
		if reached {
			t.Logf("%s: %s", p, time.Since(begun).Round(time.Millisecond))
			return true, nil
		}
	}
	return false, errors.New("the failpoint was not reached")
}

// record plays lives in which nothing happens, and lists what all of them did.
func record(t *testing.T) (outcome, []point) {
	t.Helper()
	const lives = 2
	var ends [lives]outcome
	var scripts [lives]*script
	g, ctx := errgroup.WithContext(t.Context())
	for i := range lives {
		scripts[i] = newScript()
		g.Go(func() (err error) {
			ends[i], err = live(ctx, t, scripts[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(ends[0], ends[1]); diff != "" {
		t.Fatalf("two lives without a death came to different ends:\n%s", diff)
	}
	if len(ends[0].Wrong) > 0 {
		t.Fatalf("a life without a death: %v", ends[0].Wrong)
	}
	var points []point
	other := scripts[1].seen()
	for op, n := range scripts[0].seen() {
		for i := range min(n, other[op]) {
			points = append(points, point{op, i + 1, after}, point{op, i + 1, before})
		}
	}
	// What people see comes first, so that a run that is cut short has proved the most.
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(rank(a.op), rank(b.op)), cmp.Compare(a.op, b.op), cmp.Compare(a.n, b.n), cmp.Compare(a.when, b.when))
	})
	return ends[0], points
}

func rank(op string) int {
	kind, _, _ := strings.Cut(op, ":")
	return slices.Index([]string{"github", "commit", "vm", "ssh", "disk"}, kind)
}

// choose says which failpoints are played.
func choose(t *testing.T, all []point) []point {
	t.Helper()
	if want := os.Getenv("ERRAND_CRASH_POINTS"); want != "" {
		re, err := regexp.Compile(want)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(p point) bool { return !re.MatchString(p.String()) })
	}
	if os.Getenv("ERRAND_TEST_FULL") != "" {
		return all
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ERRAND_CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("ERRAND_CRASH_SEED: %v", err)
		}
	}
	t.Logf("a sample: ERRAND_CRASH_SEED=%d draws it again", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(sample, len(all))]
}
