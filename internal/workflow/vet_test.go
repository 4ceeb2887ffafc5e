package workflow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// vetted is what GitHub answered about a person so long ago.
func (w *world) vetted(login string, p state.Permission, ago time.Duration, hash string) *state.Vetted {
	return &state.Vetted{By: w.person(login), Permission: p, At: time.Now().Add(-ago), Hash: hash, Base: w.head("main")}
}

// permissionReads counts how often GitHub was asked for a permission while f ran.
func (w *world) permissionReads(f func()) int {
	w.t.Helper()
	return w.callsTo("/collaborators/{login}/permission", f)
}

// callsTo counts how often a route that contains part was called while f ran.
func (w *world) callsTo(part string, f func()) int {
	w.t.Helper()
	read := func() (n int) {
		routes, _ := w.Calls()
		for _, c := range routes {
			if strings.Contains(c.Route, part) {
				n += c.Count
			}
		}
		return n
	}
	before := read()
	f()
	return read() - before
}

func TestVetPassesTheAnswerOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		login string
		want  state.Permission
	}{
		"admin":    {"ada", state.PermissionAdmin},
		"writer":   {"bob", state.PermissionWrite},
		"outsider": {"eve", state.PermissionRead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e := w.do(state.JobVet, func(j *state.Job) {
				j.Event = &state.Event{Kind: state.EventTriggered, Task: w.task.Key, By: w.person(c.login)}
			})
			v := e.Vetted
			if e.Permission != c.want || v == nil || v.By.ID != w.person(c.login).ID || v.Permission != c.want || time.Since(v.At) > time.Minute || v.Hash != "" {
				t.Errorf("permission %s, passed on: %+v", e.Permission, v)
			}
		})
	}
}

// TestStartUsesTheAnswerOfItsEvent: a permission is read once for an event and a person, and again as soon as that
// answer is old or is about somebody else.
func TestStartUsesTheAnswerOfItsEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vetted  func(w *world) *state.Vetted
		reads   int
		visible bool
	}{
		"just read":          {func(w *world) *state.Vetted { return w.vetted("ada", state.PermissionAdmin, time.Second, "") }, 0, true},
		"just read, denied":  {func(w *world) *state.Vetted { return w.vetted("ada", state.PermissionRead, time.Second, "") }, 0, false},
		"old":                {func(w *world) *state.Vetted { return w.vetted("ada", state.PermissionRead, 61*time.Second, "") }, 1, true},
		"from the future":    {func(w *world) *state.Vetted { return w.vetted("ada", state.PermissionRead, -time.Hour, "") }, 1, true},
		"of somebody else":   {func(w *world) *state.Vetted { return w.vetted("bob", state.PermissionRead, time.Second, "") }, 1, true},
		"of a former holder": {func(w *world) *state.Vetted { v := w.vetted("ada", state.PermissionRead, 0, ""); v.By.ID++; return v }, 1, true},
		"none":               {func(*world) *state.Vetted { return nil }, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var e state.Event
			n := w.permissionReads(func() { e = w.do(state.JobStart, func(j *state.Job) { j.Vetted = c.vetted(w) }) })
			if n != c.reads || e.Kind != state.EventStarted || e.Start.Visible != c.visible {
				t.Errorf("%d reads; event %s, visible %v", n, e.Kind, e.Start != nil && e.Start.Visible)
			}
		})
	}
}

// TestGatherUsesTheAnswerOfItsReview: whose review began the round is known; everybody else in the threads is asked
// for.
func TestGatherUsesTheAnswerOfItsReview(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ago   time.Duration
		perm  state.Permission
		reads int
		heard int
	}{
		"just read":         {50 * time.Second, state.PermissionWrite, 1, 2}, // ada's
		"just read, denied": {time.Second, state.PermissionRead, 1, 1},
		"old":               {2 * time.Minute, state.PermissionRead, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			pull := w.openPull()
			for _, who := range []string{"bob", "ada"} {
				check(t, second(w.As(who).Review(full, pull.Number, simgithub.NewReview{
					Event: "COMMENT", Comments: []simgithub.NewReviewComment{{Path: "slug.go", Line: 3, Body: "Why?"}},
				})))
			}
			var e state.Event
			n := w.permissionReads(func() {
				e = w.do(state.JobGather, func(j *state.Job) { j.Vetted = w.vetted("bob", c.perm, c.ago, "") })
			})
			if n != c.reads || len(e.Feedback) != c.heard {
				t.Errorf("%d reads, heard %d", n, len(e.Feedback))
			}
		})
	}
}

// TestStartOfApprovedWork: a start that follows the check of an approval at once relies on it; any other asks
// whether the person still may and whether the 👍 is still there.
func TestStartOfApprovedWork(t *testing.T) {
	t.Parallel()
	lost := func(w *world) error { return w.ada.SetPermission(full, "bob", simgithub.RoleRead) }
	for name, c := range map[string]struct {
		change func(w *world, v *state.Vetted, j *state.Job)
		starts bool
	}{
		"at once":               {func(*world, *state.Vetted, *state.Job) {}, true},
		"11 seconds later":      {func(_ *world, v *state.Vetted, _ *state.Job) { v.At = v.At.Add(-11 * time.Second) }, false},
		"a second attempt":      {func(_ *world, _ *state.Vetted, j *state.Job) { j.Attempt = 2 }, false},
		"of another revision":   {func(_ *world, v *state.Vetted, _ *state.Job) { v.Hash = "00000000" }, false},
		"of a comment":          {func(_ *world, v *state.Vetted, _ *state.Job) { v.Hash = "" }, false},
		"of somebody else":      {func(w *world, v *state.Vetted, _ *state.Job) { v.By = w.person("ada") }, false},
		"by a clock that jumps": {func(_ *world, v *state.Vetted, _ *state.Job) { v.At = v.At.Add(time.Hour) }, false},
		"without an answer":     {func(_ *world, _ *state.Vetted, j *state.Job) { j.Vetted = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.planned(state.PlanPreliminary)
			check(t, w.As("bob").React(full, p.Comment, "+1"))
			approved, err := w.approve(w.candidate(p, "bob", state.ViaReaction))
			check(t, err)
			v := approved.Vetted
			if approved.Kind != state.EventApproved || v == nil || v.Hash != p.Hash || v.Base != w.head("main") {
				t.Fatalf("%s, passed on: %+v", approved.Kind, v)
			}
			a := approved.Candidate.Approval
			w.task.Approval, w.task.Phase = &a, state.PhasePlanning
			w.launching(state.RunPlan)
			check(t, lost(w))
			before := w.forge.Calls(forge.ForTask)
			e := w.do(state.JobLaunch, func(j *state.Job) { j.Vetted = v; c.change(w, v, j) })
			if started := e.Kind == state.EventLaunched; started != c.starts {
				t.Errorf("event %s (%s)", e.Kind, e.Detail)
			}
			if n := w.forge.Calls(forge.ForTask) - before; c.starts && n != 0 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestADeletedCommentGetsNoReaction: nobody is left to see it, and nothing went wrong.
func TestADeletedCommentGetsNoReaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := w.As("bob").Comment(full, 1, "@errand status")
	check(t, err)
	check(t, w.As("bob").DeleteComment(full, c.ID))
	if e, err := w.try(state.JobReact, args("content", "eyes", "comment", itoa(c.ID))); err != nil || e.Kind != step.EventNothing {
		t.Errorf("event %s, error %v", e.Kind, err)
	}
}

// TestARunBeginsWhereItsCommentFoundTheBase: the head that was read with a comment serves the run that it leads to,
// while it is fresh.
func TestARunBeginsWhereItsCommentFoundTheBase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ago   time.Duration
		calls int
	}{
		"just read": {time.Second, 0},
		"old":       {31 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.launching(state.RunPlan)
			var e state.Event
			n := w.callsTo("/git/ref/", func() {
				e = w.do(state.JobLaunch, func(j *state.Job) { j.Vetted = w.vetted("ada", state.PermissionAdmin, c.ago, "") })
			})
			if e.Kind != state.EventLaunched || e.Launch.BaseSHA != w.head("main") || n != c.calls {
				t.Errorf("event %s at %s, %d calls", e.Kind, e.Launch.BaseSHA, n)
			}
		})
	}
}
