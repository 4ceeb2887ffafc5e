package admin

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/state"
)

const (
	scanPage  = 200                   // tasks per read
	scanPages = 5000                  // limit of reads in one scan
	scanEvery = 10 * time.Minute      // a scan is repeated after this time even if the counts are unchanged
	scanRest  = 20                    // minimum pause between scans, as a multiple of a scan's duration
	scanBound = 5 * time.Minute       // timeout of a scan
	patience  = 50 * time.Millisecond // default of Config.Patience
	keepEnded = 100                   // number of ended tasks on the board
	keepRepo  = 20                    // number of ended tasks of one repository on the boards of its readers
)

// endedTasks caches the ended tasks: the most recent ones, their names, and the total usage. It reads every task, but
// only when the number of ended tasks has changed, and requests do not wait for a long scan.
type endedTasks struct {
	tasks     Tasks
	openTasks *openTasks
	now       func() time.Time
	patience  time.Duration // how long a request waits for a scan before it uses the previous result

	mu      sync.Mutex
	scanned time.Time
	took    time.Duration
	counted [2]int
	found   *found
	going   chan struct{} // closed when the current scan ends; nil if none is active
	err     error         // of the last scan
}

// found is the immutable result of one scan.
type found struct {
	newest []card // most recently ended first
	// byRepo has the ended tasks of each repository, for people who cannot read all of them.
	byRepo map[int64]*repoEnded
	names  map[string]state.TaskKey
	used   usage
}

func newEndedTasks(tasks Tasks, openTasks *openTasks, now func() time.Time, wait time.Duration) *endedTasks {
	return &endedTasks{tasks: tasks, openTasks: openTasks, now: now, patience: cmp.Or(wait, patience)}
}

// ended returns the cached data on ended tasks. For a small store it is current; for a large one it may be some minutes
// old, and empty right after the start.
func (x *endedTasks) ended(ctx context.Context) (*found, error) {
	return x.within(ctx, x.patience)
}

// within is ended with an explicit patience.
func (x *endedTasks) within(ctx context.Context, patience time.Duration) (*found, error) {
	counts, err := x.tasks.Counts(ctx)
	if err != nil {
		return nil, err
	}
	going := x.begin(ctx, [2]int{counts[state.PhaseDone], counts[state.PhaseCancelled]})
	if going != nil {
		if _, err := clock.SleepOrWake(ctx, patience, going); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.found != nil:
		return x.found, nil
	case x.err != nil:
		return nil, x.err
	}
	return newFound(), nil
}

// forget makes the next request read the tasks again: what is cached may have texts that were deleted.
func (x *endedTasks) forget(ctx context.Context) {
	for ctx.Err() == nil {
		x.mu.Lock()
		going := x.going
		if going == nil {
			x.found = nil
		}
		x.mu.Unlock()
		if going == nil {
			return
		}
		_, _ = clock.SleepOrWake(ctx, scanBound, going) // the scan may have read the texts before
	}
}

func newFound() *found {
	return &found{names: map[string]state.TaskKey{}, byRepo: map[int64]*repoEnded{}, used: newUsage()}
}

// begin starts a scan if the cached data is stale. It returns a channel that is closed when the scan ends, or nil if no
// wait is necessary. The scan continues when the caller's context ends, up to its timeout.
func (x *endedTasks) begin(ctx context.Context, counted [2]int) chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	age := x.now().Sub(x.scanned)
	if x.going != nil || x.found != nil && (age < scanRest*x.took || counted == x.counted && age < scanEvery) {
		return x.going
	}
	going, begun := make(chan struct{}), x.now()
	x.going = going
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scanBound)
	go func() {
		defer cancel()
		f, err := x.scan(ctx)
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.err = err; err == nil {
			x.found, x.counted, x.scanned, x.took = f, counted, begun, x.now().Sub(begun)
		}
		x.going = nil
		close(going)
	}()
	return going
}

// scan reads all tasks.
func (x *endedTasks) scan(ctx context.Context) (*found, error) {
	f := newFound()
	since := map[string]time.Time{}
	var after state.TaskKey
	for range scanPages {
		tasks, err := x.tasks.AllTasks(ctx, after, scanPage)
		if err != nil {
			return nil, err
		}
		for _, t := range tasks {
			after = t.Key
			if !t.Ended() {
				continue
			}
			f.used.add(tallyOf(t))
			name := nameOf(t.Repo.Owner, t.Repo.Name, t.Key.Issue)
			if !t.Since.Before(since[name]) { // a repository may have had this name before
				f.names[name], since[name] = t.Key, t.Since
			}
			c := newCard(t)
			f.newest = append(f.newest, c)
			if f.byRepo[t.Key.Repo] == nil {
				f.byRepo[t.Key.Repo] = &repoEnded{counts: map[state.Phase]int{}}
			}
			f.byRepo[t.Key.Repo].add(c)
		}
		if len(f.newest) > 4*keepEnded {
			f.trim()
		}
		if len(tasks) < scanPage {
			break
		}
	}
	f.trim()
	return f, nil
}

// repoEnded are the ended tasks of one repository.
type repoEnded struct {
	newest []card
	counts map[state.Phase]int
}

func (e *repoEnded) add(c card) {
	e.counts[c.Phase]++
	if e.newest = append(e.newest, c); len(e.newest) > 2*keepRepo {
		e.newest = newestOf(e.newest, keepRepo)
	}
}

// newestOf returns the cards of the n most recently ended tasks, the newest first.
func newestOf(list []card, n int) []card {
	slices.SortStableFunc(list, func(a, b card) int { return b.Since.Compare(a.Since) })
	return slices.Clone(list[:min(len(list), n)])
}

// trim keeps the cards of the most recently ended tasks.
func (f *found) trim() { f.newest = newestOf(f.newest, keepEnded) }

// visible returns the cards of the most recently ended tasks in some repositories, and the number of ended tasks there by phase.
func (f *found) visible(mayRead func(repo int64) bool) ([]card, map[state.Phase]int) {
	list, counts := []card{}, map[state.Phase]int{}
	for repo, e := range f.byRepo {
		if !mayRead(repo) {
			continue
		}
		list = append(list, e.newest...)
		for phase, n := range e.counts {
			counts[phase] += n
		}
	}
	return newestOf(list, keepEnded), counts
}

func nameOf(owner, repo string, issue int) string {
	return strings.ToLower(owner + "/" + repo + "#" + strconv.Itoa(issue))
}

// find returns the key of the task of an issue in the repository that currently has this name, zero if there is none. Open tasks take
// precedence.
func (x *endedTasks) find(ctx context.Context, owner, repo string, issue int) (state.TaskKey, error) {
	open, err := x.openTasks.Open(ctx)
	if err != nil {
		return state.TaskKey{}, err
	}
	name := nameOf(owner, repo, issue)
	for _, d := range open {
		if d.name == name {
			return d.key, nil
		}
	}
	f, err := x.within(ctx, scanBound)
	if err != nil {
		return state.TaskKey{}, err
	}
	return f.names[name], nil
}

// usage is the resource usage of all tasks.
type usage struct {
	runs   map[runLabel]int
	vms    map[vmLabel]int
	doubts map[string]int // runs whose agent-reported tokens differ from the gateway's, by adapter
	input  int64          // tokens
	output int64
	micro  int64 // millionths of a dollar
	free   int   // tasks on a subscription
	active time.Duration
}

type runLabel struct{ kind, status string }

type vmLabel struct{ kind, why string }

func newUsage() usage {
	return usage{runs: map[runLabel]int{}, vms: map[vmLabel]int{}, doubts: map[string]int{}}
}

// tally is the usage of one task.
type tally struct {
	runs   []runLabel
	vms    []vmLabel
	doubts []string
	money  state.Money
	active time.Duration
}

func tallyOf(t *state.Task) tally {
	c := tally{money: t.Money, active: t.AgentTime()}
	for i := range t.Runs {
		verdict, _ := t.Runs[i].Verdict()
		c.runs = append(c.runs, runLabel{string(t.Runs[i].Kind), verdict})
		if m := t.Runs[i].TokenMismatch(); m != nil {
			c.doubts = append(c.doubts, m.Adapter)
		}
	}
	if r := t.Run; r != nil {
		c.runs = append(c.runs, runLabel{string(r.Kind), string(r.State)})
	}
	for _, vm := range t.VMs {
		c.vms = append(c.vms, vmLabel{vm.Kind, string(vm.EndReason)})
	}
	if t.VM != nil {
		c.vms = append(c.vms, vmLabel{t.VM.Kind, ""})
	}
	return c
}

// add adds the usage of one task.
func (u *usage) add(c tally) {
	for _, l := range c.runs {
		u.runs[l]++
	}
	for _, l := range c.vms {
		u.vms[l]++
	}
	for _, adapter := range c.doubts {
		u.doubts[adapter]++
	}
	u.input += c.money.InputTokens
	u.output += c.money.OutputTokens
	u.micro += c.money.MicroUSD
	if c.money.Subscription {
		u.free++
	}
	u.active += c.active
}

// plus adds another usage.
func (u *usage) plus(v usage) {
	for l, n := range v.runs {
		u.runs[l] += n
	}
	for l, n := range v.vms {
		u.vms[l] += n
	}
	for adapter, n := range v.doubts {
		u.doubts[adapter] += n
	}
	u.input += v.input
	u.output += v.output
	u.free += v.free
	u.micro += v.micro
	u.active += v.active
}
