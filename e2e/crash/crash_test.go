package crash

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/errand-bot/errand/internal/heavytest"
)

const (
	atOnce  = 4  // parallel lives, which mostly wait
	perLife = 16 // failpoints in one life, half of them deaths
	tries   = 6  // lives within which a failpoint must be reached
)

// TestHeavyCrash kills errand, and lets calls fail, at every failpoint of a complete life, and expects the same outcome
// each time. It takes minutes; TestSample does it for some.
func TestHeavyCrash(t *testing.T) {
	t.Parallel()
	wanted := os.Getenv("ERRAND_CRASH_POINTS")
	if wanted == "" {
		heavytest.Mark(t)
	}
	want, all := record(t, demoLife, expected())
	var lives [][]point
	if wanted == "" {
		lives = append(distribute(all, perLife), recoveryDeaths()...)
	} else {
		re, err := regexp.Compile(wanted)
		if err != nil {
			t.Fatal(err)
		}
		points := slices.DeleteFunc(slices.Clone(all), func(p point) bool { return !re.MatchString(p.String()) })
		lives = distribute(points, 1)
	}
	c := &count{}
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(atOnce)
	begun, listed := time.Now(), 0
	for _, life := range lives {
		listed += len(life)
		g.Go(func() error {
			c.play(ctx, t, life, want)
			return nil
		})
	}
	_ = g.Wait() // the functions return nil
	t.Logf("a life has %d failpoints; %d lives took %s", len(all), len(lives), time.Since(begun).Round(time.Second))
	c.conclude(t, "crash", listed)
}

// recoveryDeaths returns lives in which errand dies during recovery from a death, in operations that only recovery has.
func recoveryDeaths() [][]point {
	first := point{"github: POST /issues/N/comments", 2, after}
	return [][]point{{first, {"commit: rescue jobs", 1, before}}, {first, {"commit: rescue jobs", 1, after}}}
}

// distribute distributes the points over lives of up to n points, as far apart as possible.
func distribute(points []point, n int) [][]point {
	lives := make([][]point, (len(points)+n-1)/n)
	for i, p := range points {
		lives[i%len(lives)] = append(lives[i%len(lives)], p)
	}
	return lives
}

// count is the progress of the test.
type count struct {
	plot        plot // of its lives; nil is demoLife
	mu          sync.Mutex
	hit, passed int
}

// conclude logs the number of failpoints, and fails unless all of them were reached and passed.
func (c *count) conclude(t *testing.T, what string, listed int) {
	t.Helper()
	summary := fmt.Sprintf("%s: failpoints: listed %d hit %d passed %d", what, listed, c.hit, c.passed)
	t.Log("PROOF: " + summary)
	if listed == 0 || c.hit != listed || c.passed != listed {
		t.Error(summary)
	}
}

// play plays one life with some failpoints. Failpoints that it does not reach get a separate life. If the life fails,
// the test fails, and each failpoint gets a separate life to find the one responsible.
func (c *count) play(ctx context.Context, t *testing.T, points []point, want outcome) {
	s := c.script(points)
	begun := time.Now()
	err := liveAs(ctx, t, s, want)
	rest := s.missed()
	if err != nil {
		rest = points
	}
	if len(points) > 1 {
		t.Logf("%d of %d failpoints in one life, %s: %v", len(points)-len(rest), len(points), time.Since(begun).Round(time.Millisecond), points)
		c.add(len(points)-len(rest), len(points)-len(rest))
		if err != nil {
			t.Errorf("one life of %v: %v", points, err)
		}
		for _, p := range rest {
			c.play(ctx, t, []point{p}, want)
		}
		return
	}
	for n := 1; err == nil && len(rest) > 0 && n < tries; n++ { // the calls of a life vary a little with timing
		s = c.script(points)
		err = liveAs(ctx, t, s, want)
		rest = s.missed()
	}
	hit, passed := 1-len(s.missed()), 1
	switch {
	case err != nil:
		t.Errorf("%s: %v", points[0], err)
		passed = 0
	case hit == 0:
		t.Errorf("%s was not reached", points[0])
		passed = 0
	default:
		t.Logf("%s: %s", points[0], time.Since(begun).Round(time.Millisecond))
	}
	c.add(hit, passed)
}

// script returns the script of a life with failpoints.
func (c *count) script(points []point) *script {
	s := newScript(points...)
	if c.plot != nil {
		s.plot = c.plot
	}
	return s
}

func (c *count) add(hit, passed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hit, c.passed = c.hit+hit, c.passed+passed
}

// liveAs plays a life and expects a certain outcome, and that no run is started twice.
func liveAs(ctx context.Context, t *testing.T, s *script, want outcome) error {
	got, err := live(ctx, t, s)
	if err != nil {
		return err
	}
	if err := want.same(got); err != nil {
		return err
	}
	return s.started.twice()
}

// same returns an error unless a life had this outcome and no violations.
func (o outcome) same(got outcome) error {
	if diff := gocmp.Diff(o, got); diff != "" {
		return fmt.Errorf("outcome (-want +got):\n%s", diff)
	}
	if len(got.Wrong) > 0 {
		return fmt.Errorf("in this life: %v", got.Wrong)
	}
	return nil
}

// record plays lives without failures, which must end as expected, and lists the failpoints of the operations that all of
// them had since script.from.
func record(t *testing.T, what plot, want outcome) (outcome, []point) {
	t.Helper()
	const lives = 2
	var ends [lives]outcome
	var scripts [lives]*script
	g, ctx := errgroup.WithContext(t.Context())
	for i := range lives {
		scripts[i] = newScript()
		scripts[i].plot = what
		g.Go(func() (err error) {
			ends[i], err = live(ctx, t, scripts[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, end := range ends {
		if err := want.same(end); err != nil {
			t.Fatalf("a life without a death: %v", err)
		}
	}
	return ends[0], list(scripts[0], scripts[1])
}

// quiet returns the outcome of a life without failures.
func quiet(t *testing.T) outcome {
	t.Helper()
	o, err := live(t.Context(), t, newScript())
	if err == nil {
		err = expected().same(o)
	}
	if err != nil {
		t.Fatalf("a life without a death: %v", err)
	}
	return o
}

// moments returns the moments at which an operation can fail. A read has no effect, so dying before or after it equals
// dying between two operations with effects.
func moments(op string) []moment {
	if strings.HasPrefix(op, "read:") {
		return []moment{refused}
	}
	return []moment{before, after, refused, unheard}
}

// timely are operations that occur more often in a slow life than in a fast one, because of the periodic updates of the
// status comment. The first half of them occurs in every life.
var timely = []string{
	"github: PATCH /issues/comments/N", "commit: claim status", "commit: apply status_sent", "commit: apply progress",
	"commit: put delivery", "commit: spend delivery", "commit: claim gather", "commit: apply gathered", "commit: apply nothing", "commit: apply poked",
	"read: GET /collaborators/ada/permission", "read: GET /issues/N",
}

// list returns the operations that both lives had since script.from, in the order of the first.
func list(a, b *script) []point {
	var points []point
	other := b.seen()
	for op, n := range a.seen() {
		n = min(n, other[op])
		if slices.Contains(timely, op) {
			n = (n + 1) / 2
		}
		for i := range n {
			if a.order[point{op: op, n: i + 1}] < a.from {
				continue
			}
			for _, when := range moments(op) {
				points = append(points, point{op, i + 1, when})
			}
		}
	}
	at := func(p point) int { return a.order[point{op: p.op, n: p.n}] }
	slices.SortFunc(points, func(a, b point) int { return cmp.Or(at(a)-at(b), strings.Compare(string(a.when), string(b.when))) })
	return points
}
