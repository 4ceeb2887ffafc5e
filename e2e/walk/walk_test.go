package walk

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
)

// The number of walks and of parallel subtests, and the length of a walk.
const (
	sample = 100
	full   = 10_000
	enough = full // walks within which everything must have occurred
	shards = 4
	least  = 4
	spread = 18
)

// TestMain configures rapid: no files, and little time for shrinking.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "20s"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	debug.SetGCPercent(400) // walks are short and produce much garbage
	os.Exit(m.Run())
}

// given holds the flags set on the command line.
var given = map[string]bool{}

// setting guards rapid's flags: Check reads them before the first walk.
var setting sync.Mutex

// check is rapid.Check for a number of walks with the shard's fixed seed, so that the tests are the same everywhere.
// Flags on the command line take precedence.
func check(t *testing.T, shard, walks int, walk func(*rapid.T)) {
	setting.Lock()
	begun := sync.OnceFunc(setting.Unlock)
	defer begun()
	for name, value := range map[string]int{"rapid.seed": 1 + shard*1_000_000_000, "rapid.checks": walks} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, strconv.Itoa(value)); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		begun()
		walk(r)
	})
}

// each returns the number of walks per shard.
func each(walks int) int {
	if !given["rapid.checks"] {
		return max(walks/shards, 1)
	}
	n, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		panic(err)
	}
	return n
}

// lucky draws from rapid.
type lucky struct{ t *rapid.T }

// even draws from 0 to 255 with equal probability, because rapid's own numbers are mostly small.
var even = rapid.Custom(func(t *rapid.T) (v int) {
	for range 8 {
		v <<= 1
		if rapid.Bool().Draw(t, "") {
			v |= 1
		}
	}
	return v
})

func (l lucky) roll(what string, n int) int {
	return even.Draw(l.t, what) * n / 256
}

// tally counts the contents of all walks.
type tally struct {
	mu     sync.Mutex
	met    map[string]int
	walks  atomic.Int64
	shards atomic.Int64
	steps  atomic.Int64
	jobs   atomic.Int64
	runs   atomic.Int64
}

func (c *tally) add(met map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, n := range met {
		c.met[k] += n
	}
}

// TestWalks plays random walks and checks each against the promises.
func TestWalks(t *testing.T) {
	t.Parallel()
	walks(t, sample)
}

// TestHeavyWalks is TestWalks with enough walks for everything to occur.
func TestHeavyWalks(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	walks(t, full)
}

func walks(t *testing.T, count int) {
	t.Helper()
	sum := &tally{met: map[string]int{}}
	t.Run("shard", func(t *testing.T) {
		for n := range shards {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				table := acts()
				sum.shards.Add(1)
				check(t, n, each(count), func(r *rapid.T) { oneWalk(r, table, sum) })
			})
		}
	})
	t.Logf("PROOF: walks: %d, with %d steps, %d jobs and %d runs, from the seed %s", sum.walks.Load(), sum.steps.Load(), sum.jobs.Load(), sum.runs.Load(), seedText())
	if t.Failed() {
		t.Logf("replay a walk by its seed above: make walk SEED=N")
		return
	}
	if asked := sum.shards.Load() * int64(each(count)); sum.walks.Load() < asked { // rapid stops early when time runs out
		t.Errorf("only %d of %d walks were played", sum.walks.Load(), asked)
	}
	sum.checkCovered(t)
}

func oneWalk(r *rapid.T, table []act, sum *tally) {
	met := map[string]int{}
	w := newWorld(lucky{r}, plant{}, func(what string) { met[what]++ }, func(why string) { r.Fatalf("%s", why) })
	w.play(w.profiled(table), least+w.roll("length", spread))
	sum.walks.Add(1)
	sum.steps.Add(int64(w.steps))
	sum.jobs.Add(int64(w.done))
	sum.runs.Add(int64(w.machines.runs))
	sum.add(met)
}

// checkCovered checks that every phase, act, trouble and mood occurred; a sample only logs them.
func (c *tally) checkCovered(t *testing.T) {
	t.Helper()
	var want []string
	for _, p := range state.Phases() {
		want = append(want, "phase "+string(p))
	}
	for _, a := range acts() {
		want = append(want, "act "+a.name)
	}
	for _, k := range troubles() {
		want = append(want, "trouble "+k)
	}
	for _, p := range profiles() {
		want = append(want, "profile "+p.name)
	}
	for _, row := range shapes() {
		for _, k := range row {
			if k != "none" && !slices.Contains(want, "link "+k) {
				want = append(want, "link "+k)
			}
		}
	}
	for _, m := range moods() {
		want = append(want, "mood "+m)
	}
	for _, op := range calls() {
		want = append(want, "call "+op)
	}
	for what := range c.met {
		if strings.HasPrefix(what, "call ") && !slices.Contains(want, what) {
			t.Errorf("the call %q is not listed", what)
		}
	}
	want = append(want, "one slot", "conflict with the base", "queued for a VM", "account limit", "refused by the account's limit", "asked through a tool", "repair", "considered answered", "considered unchanged", "question stays open")
	var missed []string
	var line strings.Builder
	for _, k := range want {
		fmt.Fprintf(&line, "%s %d, ", k, c.met[k])
		if c.met[k] == 0 && k != "call find pull" { // a restored errand makes it in a narrow window; its tests have it
			missed = append(missed, k)
		}
	}
	t.Logf("met: %s", strings.TrimSuffix(line.String(), ", "))
	if c.walks.Load() >= enough && len(missed) > 0 {
		slices.Sort(missed)
		t.Errorf("never occurred: %s", strings.Join(missed, ", "))
	}
}

// seedText returns the seed in the form for the command line.
func seedText() string {
	if given["rapid.seed"] {
		return flag.Lookup("rapid.seed").Value.String()
	}
	return "1 + 1000000000 × shard"
}
