package costs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// A Generator creates traces by a documented rule.
type Generator struct {
	Name string
	// Rule describes its traces in a sentence.
	Rule string
	make func(r *rand.Rand) []Task
}

// Durations in the life of a task planned in two steps.
const (
	firstPlan  = 5 * time.Minute
	secondPlan = 10 * time.Minute
	work       = 30 * time.Minute
	month      = 30 * 24 * time.Hour
	patience   = 14 * 24 * time.Hour // maximum time that a task waits for people
)

// Generators returns all generators. The first is the reference.
func Generators() []Generator {
	return []Generator{
		{"small-team", "20 tasks a month. Each is planned in two steps (runs of 5 and 10 min), worked on for 30 min and revised in 0 to 4 rounds of 30 min. " +
			"Approvals, reviews and the merge follow after a log-normal time (10th percentile 10 min, 90th percentile 3 days, at most 14 days).", smallTeam},
		{"burst", "10 tasks of that kind within an hour.", burst},
		{"never-woken", "20 tasks a month with one run of 30 min each, followed by 14 days without activity.", neverWoken},
		{"hourly", "5 tasks with 12 runs of 30 min, each 30 min after the previous one, so that each starts just after a paid hour has ended.", hourly},
		{"failing", "Like small-team, but every other run fails within 10 min and is retried automatically after 1, 2, 4, 8 and 16 min.", failing},
	}
}

// Generate returns the trace of a generator and a seed. It is deterministic and must never change.
func Generate(name string, seed uint64) ([]Task, error) {
	var names []string
	for i, g := range Generators() {
		if g.Name == name {
			return g.make(rand.New(rand.NewPCG(seed, uint64(i)))), nil
		}
		names = append(names, g.Name)
	}
	return nil, fmt.Errorf("there is no generator %q; write one of %s", name, strings.Join(names, ", "))
}

// start is the start of generated traces; it does not affect the results.
func start() time.Time { return time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC) }

// responseTime returns a random response time of people.
func responseTime(r *rand.Rand) Span {
	const tenth = 1.2815515655446004 // standard deviations between the median and the 10th percentile
	low, high := math.Log((10 * time.Minute).Seconds()), math.Log((72 * time.Hour).Seconds())
	s := math.Exp((low+high)/2 + r.NormFloat64()*(high-low)/2/tenth)
	return Span(min(time.Duration(s*float64(time.Second)), patience).Round(time.Second))
}

// randomTask returns a task from its plans to its merge.
func randomTask(r *rand.Rand, n int, at time.Time) Task {
	t := Task{
		Name: fmt.Sprintf("task-%02d", n),
		At:   at.Round(time.Second),
		Runs: []Run{{0, Span(firstPlan)}, {responseTime(r), Span(secondPlan)}, {responseTime(r), Span(work)}},
	}
	for range r.IntN(5) {
		t.Runs = append(t.Runs, Run{responseTime(r), Span(work)})
	}
	t.End = responseTime(r)
	return t
}

// randomTasks returns n tasks at random times within a period.
func randomTasks(r *rand.Rand, n int, within time.Duration, one func(*rand.Rand, int, time.Time) Task) (trace []Task) {
	for i := range n {
		trace = append(trace, one(r, i+1, start().Add(time.Duration(r.Int64N(int64(within))))))
	}
	return trace
}

func smallTeam(r *rand.Rand) []Task { return randomTasks(r, 20, month, randomTask) }

func burst(r *rand.Rand) []Task { return randomTasks(r, 10, time.Hour, randomTask) }

func neverWoken(r *rand.Rand) []Task {
	return randomTasks(r, 20, month, func(_ *rand.Rand, n int, at time.Time) Task {
		return Task{Name: fmt.Sprintf("task-%02d", n), At: at.Round(time.Second), Runs: []Run{{0, Span(work)}}, End: Span(patience)}
	})
}

func hourly(r *rand.Rand) []Task {
	return randomTasks(r, 5, month, func(_ *rand.Rand, n int, at time.Time) Task {
		t := Task{Name: fmt.Sprintf("task-%02d", n), At: at.Round(time.Second), Runs: []Run{{0, Span(work)}}, End: Span(30 * time.Minute)}
		for len(t.Runs) < 12 {
			t.Runs = append(t.Runs, Run{Span(30 * time.Minute), Span(work)})
		}
		return t
	})
}

func failing(r *rand.Rand) []Task {
	return randomTasks(r, 20, month, func(r *rand.Rand, n int, at time.Time) Task {
		t := randomTask(r, n, at)
		var runs []Run
		for _, whole := range t.Runs {
			after, again := whole.After, Span(time.Minute)
			for try := 0; try < 5 && r.IntN(2) == 0; try++ {
				short := min(whole.Takes, Span(10*time.Minute))
				runs = append(runs, Run{after, 1 + Span(r.Int64N(int64(short)))})
				after, again = again, 2*again
			}
			runs = append(runs, Run{after, whole.Takes})
		}
		t.Runs = runs
		return t
	})
}
