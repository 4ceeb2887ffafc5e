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

// jobs is the walk's own record of errand's jobs, for comparison with the store's and the queue's.
type jobs struct {
	w     *world
	list  map[string]*record            // by id
	keys  map[string]time.Time          // since when the effect of a key may exist, by task and key
	tasks map[state.TaskKey]*state.Task // after the last event
	vague int                           // claims that the store may or may not have accepted
}

// record is the walk's data about one job.
type record struct {
	*state.Job      // as last claimed
	held       bool // by a worker with a valid lease
	until      time.Time
	claims     int
	errors     int  // reported to the store
	unsure     bool // the store may have one more: errand died during the report
	attempted  bool
	launch     string // the run that may have started
	begun      time.Time
	err        error // result of its step
}

func newJobs(w *world) *jobs {
	return &jobs{w: w, list: map[string]*record{}, keys: map[string]time.Time{}, tasks: map[state.TaskKey]*state.Task{}}
}

// was is the state of a task after the last event.
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

// claimed checks a job that begins against its history: every attempt is counted, only errors of its step count as
// failures, and it is never forgotten that its effect may exist.
func (b *jobs) claimed(j *state.Job) {
	r, first := b.list[j.ID], b.list[j.ID] == nil
	if first {
		r = b.of(j.ID)
	}
	name := fmt.Sprintf("job %s (%s) of task %s", j.Key, j.Kind, j.Task)
	switch vague := j.Attempt - r.claims - 1; {
	case vague < 0 || vague > b.vague:
		b.w.complain("jobs: %s has claim number %d, but was claimed %d times before", name, j.Attempt, r.claims)
	case j.Failures < r.errors || j.Failures > r.errors+b2i(r.unsure):
		b.w.complain("jobs: %s has %d errors, but its step had %d", name, j.Failures, r.errors)
	case !first && j.Epoch <= r.Epoch:
		b.w.complain("jobs: %s is claimed with the same epoch %d as before", name, j.Epoch)
	case r.held:
		b.w.complain("jobs: %s has two claims at the same time", name)
	case r.attempted && !j.Attempted:
		b.w.complain("jobs: %s lost the record that its effect may exist", name)
	case r.launch != "" && (j.Launch == nil || j.Launch.Run != r.launch):
		b.w.complain("jobs: %s lost the record that run %s may have started", name, r.launch)
	}
	if since, ok := b.keys[keyOf(j)]; ok && !r.attempted && (j.UnknownSince.IsZero() || j.UnknownSince.After(since) || !j.Attempted) {
		b.w.complain("jobs: %s may have had its effect by %s and failed permanently, but the next job with its key looks for the effect only since %s", name, since.Sub(began()), sub(j.UnknownSince))
	}
	if t := b.was(j.Task); first && t != nil && t.Ended() && !outlivesTask(j) { // a running job finds the task ended, also when it is repeated
		b.w.complain("dropped: task %s has ended, but its job %s (%s) begins", j.Task, j.Key, j.Kind)
	}
	if first {
		b.w.model.checkPace(j, b.was(j.Task))
	}
	copied := *j
	*r = record{Job: &copied, held: true, until: j.Until, claims: j.Attempt, errors: j.Failures, attempted: j.Attempted, launch: r.launch}
}

// look reads the current claims after errand died, or the disk was full, while leases were released.
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

// outlivesTask reports whether a job remains useful after the end of its task: comments, answers, clean-up. New
// comments are still checked, because they may restart the task.
func outlivesTask(j *state.Job) bool {
	switch j.Kind {
	case state.JobVet, state.JobApprove:
		return true
	case state.JobStatus, state.JobPost, state.JobReact, state.JobRelease, state.JobStop, state.JobForget, state.JobMinimize, state.JobUntick, state.JobClosePR:
		return true
	case state.JobDue:
		return j.Args.Due == state.DueDuplicate || j.Args.Due == state.DueForget
	}
	return false
}

// checkBackOff checks a back-off against the number of errors: 2 s, doubled each time up to 5 minutes, ± 20 %, unless
// GitHub gave a time.
func (b *jobs) checkBackOff(id string, epoch int64, d time.Duration) {
	r := b.of(id)
	if !r.held || r.Epoch != epoch { // the store rejects it
		return
	}
	n := r.errors + 1
	shortest := math.Min(300, math.Exp2(float64(n))) * 0.8
	longest := math.Min(300, math.Exp2(float64(n+b2i(r.unsure)))) * 1.2
	until := named(r.err).Sub(b.w.now)
	if s := d.Seconds(); s < shortest-0.1 || s > longest+0.1 && d != until {
		b.w.complain("patience: job %s of task %s waits %[4]s after error number %[3]d", r.Key, r.Task, n, d)
	}
	if d < until {
		b.w.complain("patience: job %s of task %s is retried in %s, but GitHub requires at least %s", r.Key, r.Task, d, until)
	}
	if why := refusal(r.err); why != nil && !isInsistedRead(r.Kind, why.Op) {
		b.w.complain("refusals: GitHub permanently refused %q, but job %s (%s) of task %s retries it", why.Op, r.Key, r.Kind, r.Task)
	}
}

// named returns the time that GitHub gave for the next attempt.
func named(err error) time.Time {
	var f *forge.Error
	if errors.As(err, &f) {
		return f.Retry
	}
	return time.Time{}
}

// tries is the number of errors after which a job that nobody waits for fails permanently.
const tries = 8

// refusal reports whether an error is a permanent refusal by GitHub.
func refusal(err error) *forge.Error {
	var f *forge.Error
	if errors.As(err, &f) && f.Class == forge.ClassPermanent && f.Retry.IsZero() {
		return f
	}
	return nil
}

// isInsistedRead lists the calls that are retried after a refusal: they concern a person's comment, which the person
// will not repeat, or a second copy of a comment, which would stay for ever.
func isInsistedRead(kind state.JobKind, op string) bool {
	switch kind {
	case state.JobVet:
		return op == "permission" || op == "read a comment again" || op == "read issue" // the last one for a mention in its text
	case state.JobApprove:
		return op == "permission" || op == "read plan"
	case state.JobDue:
		return op == "find comments" || op == "delete" // of a second copy of errand's own comment
	}
	return false
}

// retried records that an error was reported to the store.
func (b *jobs) retried(id string, epoch int64, err error) {
	r := b.of(id)
	switch {
	case errors.Is(err, store.ErrLeaseLost):
	case err != nil:
		r.unsure = true
	case !r.held || r.Epoch != epoch:
		b.w.complain("jobs: job %s (%s) of task %s was rescheduled by a worker without a valid lease", r.Key, r.Kind, r.Task)
	default:
		r.errors, r.held = r.errors+1, false
	}
}

// refused records that the store did not accept the result of a job.
func (b *jobs) refused(ack store.Ack, err error) {
	if ack.Job != "" && !errors.Is(err, store.ErrLeaseLost) {
		b.of(ack.Job).err = err
	}
}

// patient reports whether a job is repeated for long: it handles a person's comment, which the person will not repeat, or a
// person waits for it.
func patient(k state.JobKind) bool {
	return slices.Contains([]state.JobKind{
		state.JobVet, state.JobApprove, state.JobPost, state.JobStatus, state.JobUntick, state.JobStop, state.JobRelease, state.JobForget, state.JobDue,
	}, k)
}

// applied checks the effects of an event against its job and its author.
func (b *jobs) applied(before, after *state.Task, e event.Event, ack store.Ack) {
	b.tasks[e.Task] = after
	if ack.Job != "" {
		b.done(e, ack)
	}
	if before != nil && !before.Ended() && after != nil && after.Ended() {
		b.checkDropped(after)
	}
	b.w.model.checkApproval(before, after, e)
	b.w.model.recordMove(before, after, e)
	begun := b.w.now
	if ack.Job != "" {
		b.w.model.told(b.of(ack.Job).Job, e)
		b.w.model.checkStopped(b.of(ack.Job), e)
		b.w.model.done(b.of(ack.Job), after, e)
		begun = b.of(ack.Job).begun
	}
	b.checkTrust(before, after, e, begun)
	b.w.books.applied(before, after, e)
	b.w.works.applied(before, after, e)
	b.w.model.checkBase(before, after, e)
	b.w.model.checkTurn(before, after, e)
}

// done checks a finished job against its claim; if it failed permanently, errand must remember that its effect may
// exist.
func (b *jobs) done(e event.Event, ack store.Ack) {
	r := b.of(ack.Job)
	if !r.held || r.Epoch != ack.Epoch {
		b.w.complain("jobs: job %s (%s) of task %s was ended by a worker without a valid lease", r.Key, r.Kind, r.Task)
	}
	r.held = false
	if e.Kind() != event.KindStepFailed {
		return
	}
	most := tries
	if patient(r.Kind) {
		most = 300
	}
	if n := r.errors + 1; isTemporary(r.err) && n < most && !r.unsure {
		b.w.complain("patience: job %s (%s) of task %s fails permanently after %d errors, but the error is temporary: %v", r.Key, r.Kind, r.Task, n, r.err)
	}
	since := r.Created
	if !r.UnknownSince.IsZero() {
		since = r.UnknownSince
	}
	if was, known := b.keys[keyOf(r.Job)]; r.Attempted && (!known || since.Before(was)) { // a first attempt that is refused has no effect
		b.keys[keyOf(r.Job)] = since
	}
}

// isTemporary reports whether an error is a temporary one of GitHub or of the network.
func isTemporary(err error) bool {
	var f *forge.Error
	return errors.As(err, &f) && f.Class != forge.ClassPermanent
}

// checkDropped checks that a task that has just ended has no jobs except comments and clean-up.
func (b *jobs) checkDropped(t *state.Task) {
	list, err := b.w.store.Jobs(context.Background(), t.Key)
	if err != nil {
		b.w.complain("store: read the jobs of task %s: %v", t.Key, err)
	}
	for i := range list {
		if j := &list[i]; j.State == state.JobQueued && !outlivesTask(j) {
			b.w.complain("dropped: task %s has ended, but its job %s (%s) is still queued", t.Key, j.Key, j.Kind)
		}
	}
}

// checkTrust checks that users without write access decide nothing: a comment counts if its author had write access
// when the step that read it began, or within the minute before, for which errand caches GitHub's answer.
func (b *jobs) checkTrust(before, after *state.Task, e event.Event, begun time.Time) {
	if e.By.ID == 0 || b.w.plant.revive {
		return
	}
	by := b.w.hub.person(e.By.Login)
	may := by != nil && !by.Bot && by.mightSince(begun.Add(-time.Minute))
	if may {
		return
	}
	if e.Permission.CanWrite() {
		b.w.complain("trust: %s by @%s counts as that of a writer", e.Kind(), e.By.Login)
	}
	if !e.Kind().NeedsPermission() || before == nil || after == nil || before.Version == after.Version {
		return
	}
	if before.Phase != after.Phase || before.Gen != after.Gen || before.Settings.Limits != after.Settings.Limits || before.Model != after.Model || before.Turns != after.Turns {
		b.w.complain("trust: %s by @%s, who has no write access, took task %s from %s to %s", e.Kind(), e.By.Login, e.Task, before.Phase, after.Phase)
	}
}
