package crash

import (
	"cmp"
	"context"
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
	atOnce  = 3 // lives side by side: they mostly wait
	sample  = 6 // failpoints in an ordinary test run
	perLife = 8 // deaths in one life when all are played
	tries   = 3 // lives until a failpoint has to be reached
)

// TestCrash has errand die at failpoints of a whole life and wants the same end each time.
func TestCrash(t *testing.T) {
	t.Parallel()
	want, all := record(t)
	points, deaths := choose(t, slices.Clone(all))
	lives := deal(points, deaths)
	if len(points) == len(all) {
		for _, life := range dieAgain() {
			points, lives = append(points, life...), append(lives, life)
		}
	}
	c := &count{}
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(atOnce)
	begun := time.Now()
	for _, life := range lives {
		g.Go(func() error {
			c.play(ctx, t, life, want)
			return nil
		})
	}
	_ = g.Wait() // the functions return nil
	summary := fmt.Sprintf("failpoints: listed %d hit %d passed %d", len(points), c.hit, c.passed)
	fmt.Println(summary)
	t.Logf("%s; a life has %d; took %s", summary, len(all), time.Since(begun).Round(time.Second))
	if len(points) == 0 || c.hit != len(points) || c.passed != len(points) {
		t.Error(summary)
	}
}

// dieAgain is lives in which errand dies while it recovers from a death, in what it does then alone.
func dieAgain() [][]point {
	first := point{"github: POST /issues/N/comments", 2, after}
	return [][]point{{first, {"commit: rescue jobs", 1, before}}, {first, {"commit: rescue jobs", 1, after}}}
}

// deal gives each life up to n of the points, as far from one another as can be.
func deal(points []point, n int) [][]point {
	lives := make([][]point, (len(points)+n-1)/n)
	for i, p := range points {
		lives[i%len(lives)] = append(lives[i%len(lives)], p)
	}
	return lives
}

// count is how far the test has come.
type count struct {
	mu          sync.Mutex
	hit, passed int
}

// play lives one life with some deaths. What that does not reach is played in a life of its own; if
// it goes wrong, which is a failure, all of them are, to tell which death it was.
func (c *count) play(ctx context.Context, t *testing.T, points []point, want outcome) {
	s := newScript(points...)
	begun := time.Now()
	err := liveAs(ctx, t, s, want)
	rest := s.missed()
	if err != nil {
		rest = points
	}
	if len(points) > 1 {
		t.Logf("%d of %d deaths in one life, %s: %v", len(points)-len(rest), len(points), time.Since(begun).Round(time.Millisecond), points)
		c.add(len(points)-len(rest), len(points)-len(rest))
		if err != nil {
			t.Errorf("one life of %v: %v", points, err)
		}
		for _, p := range rest {
			c.play(ctx, t, []point{p}, want)
		}
		return
	}
	for n := 1; err == nil && len(rest) > 0 && n < tries; n++ { // which calls a life makes differs a little with the times
		s = newScript(points...)
		err = liveAs(ctx, t, s, want)
		rest = s.missed()
	}
	hit, passed := 1-len(s.missed()), 1
	switch {
	case err != nil:
		t.Errorf("%s: %v", points[0], err)
		passed = 0
	case hit == 0:
		t.Errorf("%s: it was not reached", points[0])
		passed = 0
	default:
		t.Logf("%s: %s", points[0], time.Since(begun).Round(time.Millisecond))
	}
	c.add(hit, passed)
}

func (c *count) add(hit, passed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hit, c.passed = c.hit+hit, c.passed+passed
}

// liveAs plays a life and wants a certain end.
func liveAs(ctx context.Context, t *testing.T, s *script, want outcome) error {
	got, err := live(ctx, t, s)
	if err != nil {
		return err
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		return fmt.Errorf("the life came to another end (-want +got):\n%s", diff)
	}
	return nil
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
	return ends[0], list(scripts[0], scripts[1])
}

// moments are those at which an operation is made to fail. A commit that fails while errand lives on
// leaves a job claimed until its lease ends, which takes minutes: package state proves that one.
func moments(op string) []moment {
	if strings.HasPrefix(op, "commit:") {
		return []moment{before, after}
	}
	return []moment{before, after, refused, unheard}
}

// timely are operations that a slow life has more of than a quick one, because the status comment is
// brought up to date now and again. The first half of them is in every life.
var timely = []string{
	"github: PATCH /issues/comments/N", "commit: claim status", "commit: apply status_sent", "commit: apply progress",
	"commit: put delivery", "commit: spend delivery", "commit: claim gather", "commit: apply gathered", "commit: apply nothing",
}

// list is what two lives both did, in the order in which the first did it.
func list(a, b *script) []point {
	var points []point
	other := b.seen()
	for op, n := range a.seen() {
		n = min(n, other[op])
		if slices.Contains(timely, op) {
			n = (n + 1) / 2
		}
		for i := range n {
			for _, when := range moments(op) {
				points = append(points, point{op, i + 1, when})
			}
		}
	}
	at := func(p point) int { return a.order[point{op: p.op, n: p.n}] }
	slices.SortFunc(points, func(a, b point) int { return cmp.Or(at(a)-at(b), strings.Compare(string(a.when), string(b.when))) })
	return points
}

// choose says which failpoints are played, and how many in one life.
func choose(t *testing.T, all []point) ([]point, int) {
	t.Helper()
	inOne := 1
	if os.Getenv("ERRAND_TEST_FULL") != "" {
		inOne = perLife
	}
	if want := os.Getenv("ERRAND_CRASH_POINTS"); want != "" {
		re, err := regexp.Compile(want)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(p point) bool { return !re.MatchString(p.String()) }), inOne
	}
	if os.Getenv("ERRAND_TEST_FULL") != "" {
		return all, inOne
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
	return all[:min(sample, len(all))], inOne
}
