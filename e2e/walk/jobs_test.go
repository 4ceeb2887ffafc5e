package walk

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// jobs is what the walk itself has counted of errand's jobs, to hold the store's and the queue's counts against.
type jobs struct {
	w     *world
	list  map[string]*record            // by id
	keys  map[string]time.Time          // since when the effect of a key may be there, by task and key
	tasks map[state.TaskKey]*state.Task // as the last event left them
	vague int                           // claims of which it is not known whether the store has taken them
}

// record is what is known of one job.
type record struct {
	*state.Job      // as it was claimed last
	held       bool // by a worker whose lease goes on
	until      time.Time
	claims     int
	errors     int  // that the store was told of
	unsure     bool // it may know of one more: errand died as it told
	attempted  bool
	launch     string // the run that may have been started
	begun      time.Time
	err        error // how its step ended
}

func newJobs(w *world) *jobs {
	return &jobs{w: w, list: map[string]*record{}, keys: map[string]time.Time{}, tasks: map[state.TaskKey]*state.Task{}}
}

// was is a task as the last event left it.
func (b *jobs) was(key state.TaskKey) *state.Task {
	if t, ok := b.tasks[key]; ok {
		return t
	}
	t, err := b.w.store.Task(context.Background(), key)
	if err != nil {
		b.w.complain("store: read task %s: %v", key, err)
	}
	b.tasks[key] = t
	return t
}

func (b *jobs) of(id string) *record {
	r := b.list[id]
	if r == nil {
		r = &record{Job: &state.Job{ID: id}}
		b.list[id] = r
	}
	return r
}

// claimed holds a job that begins against all that happened to it before: no try is forgotten, and nothing counts as
// one but an error of its step; that its effect may be there is never forgotten, whatever else happens to it.
func (b *jobs) claimed(j *state.Job) {
	r, first := b.list[j.ID], b.list[j.ID] == nil
	if first {
		r = b.of(j.ID)
	}
	name := fmt.Sprintf("job %s (%s) of task %s", j.Key, j.Kind, j.Task)
	switch vague := j.Attempt - r.claims - 1; {
	case vague < 0 || vague > b.vague:
		b.w.complain("jobs: %s says that it is claimed for the %d. time, and it was claimed %d times before", name, j.Attempt, r.claims)
	case j.Failures < r.errors || j.Failures > r.errors+b2i(r.unsure):
		b.w.complain("jobs: %s counts %d errors, and its step ended in %d", name, j.Failures, r.errors)
	case !first && j.Epoch <= r.Epoch:
		b.w.complain("jobs: %s is claimed with the epoch %d, as before", name, j.Epoch)
	case r.held:
		b.w.complain("jobs: %s is claimed twice at a time", name)
	case r.attempted && !j.Attempted:
		b.w.complain("jobs: %s has forgotten that its effect may be there", name)
	case r.launch != "" && (j.Launch == nil || j.Launch.Run != r.launch):
		b.w.complain("jobs: %s has forgotten that run %s may have been started", name, r.launch)
	}
	if since, ok := b.keys[keyOf(j)]; ok && !r.attempted && (j.Doubt.IsZero() || j.Doubt.After(since) || !j.Attempted) {
		b.w.complain("jobs: %s was made by %s at first and gave up, and the equal job looks for its effect since %s only", name, since.Sub(began()), sub(j.Doubt))
	}
	if t := b.was(j.Task); first && t != nil && t.Ended() && !outlives(j) { // what was under way finds the task ended, also when it is done again
		b.w.complain("dropped: task %s is over, and its job %s (%s) begins", j.Task, j.Key, j.Kind)
	}
	if first {
		b.w.model.paced(j, b.was(j.Task))
	}
	copied := *j
	*r = record{Job: &copied, held: true, until: j.Until, claims: j.Attempt, errors: j.Failures, attempted: j.Attempted, launch: r.launch}
}

// look reads which jobs are held: errand died, or the disk was full, as leases were given back.
func (b *jobs) look() {
	held := map[string]int64{}
	for _, t := range b.w.tasks() {
		list, err := b.w.store.Jobs(context.Background(), t.Key)
		if err != nil {
			b.w.complain("store: read the jobs of task %s: %v", t.Key, err)
		}
		for _, j := range list {
			if j.State == state.JobClaimed {
				held[j.ID] = j.Epoch
			}
		}
	}
	for id, r := range b.list {
		r.held = r.held && held[id] == r.Epoch
	}
}

func keyOf(j *state.Job) string { return j.Task.String() + " " + j.Key }

func sub(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Sub(began()).String()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// outlives reports whether a job has something to do where its task is over: tell people, answer them, tidy up. What
// somebody has just said is still vetted, since it may begin the task anew.
func outlives(j *state.Job) bool {
	switch j.Kind {
	case state.JobVet, state.JobApprove:
		return true
	case state.JobStatus, state.JobPost, state.JobReact, state.JobRelease, state.JobStop, state.JobForget, state.JobBranch, state.JobMinimise, state.JobUntick:
		return true
	case state.JobDue:
		return j.Args.Due == state.DueTwin || j.Args.Due == state.DueForget
	}
	return false
}

// waits holds a back-off against how often the step went wrong: 2 s, doubled each time up to 5 minutes, a fifth more
// or less, unless GitHub named a time.
func (b *jobs) waits(id string, epoch int64, d time.Duration) {
	r := b.of(id)
	if !r.held || r.Epoch != epoch { // the store refuses it
		return
	}
	n := r.errors + 1
	shortest := math.Min(300, math.Exp2(float64(n))) * 0.8
	longest := math.Min(300, math.Exp2(float64(n+b2i(r.unsure)))) * 1.2
	until := named(r.err).Sub(b.w.now)
	if s := d.Seconds(); s < shortest-0.1 || s > longest+0.1 && d != until {
		b.w.complain("patience: job %s of task %s went wrong for the %d. time and waits %s", r.Key, r.Task, n, d)
	}
	if d < until {
		b.w.complain("patience: job %s of task %s is to be tried in %s, and GitHub said not before %s", r.Key, r.Task, d, until)
	}
	if why := refusal(r.err); why != nil && !insisted(r.Kind, why.Op) {
		b.w.complain("refusals: GitHub refused %q for good, and job %s (%s) of task %s asks again", why.Op, r.Key, r.Kind, r.Task)
	}
}

// named is the time that GitHub named for the next try.
func named(err error) time.Time {
	var f *forge.Error
	if errors.As(err, &f) {
		return f.Retry
	}
	return time.Time{}
}

// tries is after how many errors errand gives up what nobody waits for.
const tries = 8

// refusal is GitHub's no that will be the same the next time.
func refusal(err error) *forge.Error {
	var f *forge.Error
	if errors.As(err, &f) && f.Class == forge.ClassPermanent && f.Retry.IsZero() {
		return f
	}
	return nil
}

// insisted lists the reads that go on where GitHub says no: they are about a person's word, which nobody says again.
func insisted(kind state.JobKind, op string) bool {
	switch kind {
	case state.JobVet:
		return op == "permission" || op == "read a comment again"
	case state.JobApprove:
		return op == "permission" || op == "read plan"
	}
	return false
}

// retried notes that the store was told of an error.
func (b *jobs) retried(id string, epoch int64, err error) {
	r := b.of(id)
	switch {
	case errors.Is(err, store.ErrLeaseLost):
	case err != nil:
		r.unsure = true
	case !r.held || r.Epoch != epoch:
		b.w.complain("jobs: job %s (%s) of task %s was given back by a worker that had lost it", r.Key, r.Kind, r.Task)
	default:
		r.errors, r.held = r.errors+1, false
	}
}

// refused notes that the store did not take what came of a job.
func (b *jobs) refused(ack store.Ack, err error) {
	if ack.Job != "" && !errors.Is(err, store.ErrLeaseLost) {
		b.of(ack.Job).err = err
	}
}

// people's jobs carry what a person said or waits for: nobody says it again.
func patient(k state.JobKind) bool {
	return slices.Contains([]state.JobKind{
		state.JobVet, state.JobApprove, state.JobPost, state.JobStatus, state.JobUntick, state.JobStop, state.JobRelease, state.JobForget, state.JobDue,
	}, k)
}

// applied holds what an event did against the job that it came from and against who did it.
func (b *jobs) applied(before, after *state.Task, e event.Event, ack store.Ack) {
	b.tasks[e.Task] = after
	if ack.Job != "" {
		b.done(e, ack)
	}
	if before != nil && !before.Ended() && after != nil && after.Ended() {
		b.dropped(after)
	}
	b.w.model.allowed(before, after, e)
	b.w.model.moved(before, after, e)
	begun := b.w.now
	if ack.Job != "" {
		b.w.model.told(b.of(ack.Job).Job, e)
		b.w.model.stopped(b.of(ack.Job), e)
		b.w.model.done(b.of(ack.Job), after, e)
		begun = b.of(ack.Job).begun
	}
	b.trusted(before, after, e, begun)
	b.w.books.applied(before, after, e)
	b.w.works.applied(before, after, e)
	b.w.model.turned(before, after, e)
}

// done holds a job that is over against its claim; one that gave up leaves a doubt where its effect may be there.
func (b *jobs) done(e event.Event, ack store.Ack) {
	r := b.of(ack.Job)
	if !r.held || r.Epoch != ack.Epoch {
		b.w.complain("jobs: job %s (%s) of task %s was ended by a worker that had lost it", r.Key, r.Kind, r.Task)
	}
	r.held = false
	if e.Kind() != event.KindStepFailed {
		return
	}
	most := tries
	if patient(r.Kind) {
		most = 300
	}
	if n := r.errors + 1; passes(r.err) && n < most && !r.unsure {
		b.w.complain("patience: job %s (%s) of task %s gives up after %d errors, and it would pass: %v", r.Key, r.Kind, r.Task, n, r.err)
	}
	since := r.Created
	if !r.Doubt.IsZero() {
		since = r.Doubt
	}
	if was, known := b.keys[keyOf(r.Job)]; r.Attempted && (!known || since.Before(was)) { // a first try that is refused has left nothing
		b.keys[keyOf(r.Job)] = since
	}
}

// passes reports whether an error is GitHub's or of the way there, and will pass.
func passes(err error) bool {
	var f *forge.Error
	return errors.As(err, &f) && f.Class != forge.ClassPermanent
}

// dropped wants nothing to be left to do for a task that has just ended but to tell people and to tidy up.
func (b *jobs) dropped(t *state.Task) {
	list, err := b.w.store.Jobs(context.Background(), t.Key)
	if err != nil {
		b.w.complain("store: read the jobs of task %s: %v", t.Key, err)
	}
	for i := range list {
		if j := &list[i]; j.State == state.JobQueued && !outlives(j) {
			b.w.complain("dropped: task %s has ended, and its job %s (%s) is still queued", t.Key, j.Key, j.Kind)
		}
	}
}

// trusted wants nothing to be decided by somebody who may not: a word counts if its author could write when the step
// that read it began, or a minute before, which is how long an answer of GitHub's is believed.
func (b *jobs) trusted(before, after *state.Task, e event.Event, begun time.Time) {
	if e.By.ID == 0 || b.w.plant.revive {
		return
	}
	by := b.w.hub.person(e.By.Login)
	may := by != nil && !by.Bot && by.mightSince(begun.Add(-time.Minute))
	if may {
		return
	}
	if e.Permission.CanWrite() {
		b.w.complain("trust: %s of @%s counts as that of somebody who may write", e.Kind(), e.By.Login)
	}
	if !e.Kind().NeedsPermission() || before == nil || after == nil || before.Version == after.Version {
		return
	}
	if before.Phase != after.Phase || before.Gen != after.Gen || before.Settings.Limits != after.Settings.Limits || before.Model != after.Model || before.Turns != after.Turns {
		b.w.complain("trust: %s of @%s, who may not, took task %s from %s to %s", e.Kind(), e.By.Login, e.Task, before.Phase, after.Phase)
	}
}
