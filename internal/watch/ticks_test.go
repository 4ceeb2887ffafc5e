package watch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// postedPlan returns a sweepWorld whose task waits with a posted plan.
func postedPlan(t *testing.T) (l *sweepWorld, plan *state.Plan, body string) {
	t.Helper()
	l = longDiscussion(t)
	repoSettings := settings.Default()
	l.happen(event.Event{Task: l.key, Payload: event.Started{Start: event.Start{Settings: repoSettings, Visible: true, Branch: state.Branch{Name: "b", Base: "main"}}}})
	run := l.happen(event.Event{Task: l.key, Payload: event.ConditionChanged{}}).Run.ID
	l.happen(event.Event{Task: l.key, Run: run, Payload: event.Launched{Launch: state.Launch{Run: run, VM: state.VM{Name: "vm-1"}, Started: time.Now()}}})
	task := l.happen(event.Event{Task: l.key, Run: run, Payload: event.RunEnded{Result: state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "Do it.", Outcome: "build", Ended: time.Now()}}})
	body = "Do it.\n\n" + comment.ApprovalBox(task.NewestPlan().Hash)
	github, ok := l.cfg.GitHub.(*forge.Forge)
	if !ok {
		t.Fatalf("got a client of type %T", l.cfg.GitHub)
	}
	posted, err := github.CreateComment(t.Context(), forge.RepoOf(task), 1, body)
	check(t, err)
	task = l.happen(event.Event{
		Task:    l.key,
		Payload: event.Posted{BodyHash: comment.BodyHash(body), Post: &state.Post{Kind: state.PostPlan, Hash: task.NewestPlan().Hash}, Comment: state.Posted{Key: "k", ID: posted.ID, Node: posted.Node, At: posted.CreatedAt}},
	})
	return l, task.NewestPlan(), body
}

// TestLostTicksAreReported: a box that has been ticked for a while without effect is reported without a person.
func TestLostTicksAreReported(t *testing.T) {
	t.Parallel()
	ticked := func(body string) string { return strings.Replace(body, "[ ]", "[x]", 1) }
	for name, c := range map[string]struct {
		edit func(body string) string
		ago  time.Duration
		want int
	}{
		"ticked a while ago":  {ticked, 3 * time.Minute, 1},
		"ticked a moment ago": {ticked, time.Minute, 0},
		"nothing is ticked":   {func(b string) string { return b }, 3 * time.Minute, 0},
		"ticked and edited":   {func(b string) string { return ticked(b) + "\n\nAnd more." }, 3 * time.Minute, 0},
		"another box":         {func(b string) string { return "- [x] something\n" + b }, 3 * time.Minute, 0},
		"a box of a forgery":  {func(b string) string { return b + "\n" + ticked(comment.ApprovalBox("0123456789")) }, 3 * time.Minute, 0},
		"ticked with an X":    {func(b string) string { return strings.Replace(b, "[ ]", "[X]", 1) }, 3 * time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, plan, body := postedPlan(t)
			l.ahead.Store(int64(-c.ago))
			if edited := c.edit(body); edited != body {
				check(t, l.ada.EditComment(full, plan.Comment, edited))
			}
			l.ahead.Store(0)
			checkSwept(t, l.sweeper.SweepState(t.Context()))
			got := l.reported(event.KindCommentEdited)
			if len(got) != c.want {
				t.Fatalf("reported %+v, want %d", got, c.want)
			}
			if c.want > 0 && (got[0].By != state.Person{} || got[0].Via != event.ViaSweep || got[0].Comment().ID != plan.Comment) {
				t.Errorf("reported %+v", got[0])
			}
			jobs, err := l.Jobs(t.Context(), l.key)
			check(t, err)
			unticks := 0
			for _, j := range jobs {
				if j.Kind == state.JobApprove {
					t.Error("got a check of an approval for a tick without a person, want none")
				}
				if j.Kind == state.JobUntick {
					unticks++
				}
			}
			if unticks != c.want {
				t.Errorf("got %d cleared boxes, want %d", unticks, c.want)
			}
		})
	}
}
