package machine

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// tickedBox returns a person's tick in the box of a revision, as reported by its webhook.
func tickedBox(by state.Person, may state.Permission, comment int64, hash string) event.Event {
	return event.Event{By: by, Permission: may, Payload: event.CommentEdited{OnlyBoxes: true, Ticked: true, Comment: &state.Comment{ID: comment}, Candidate: &state.Candidate{Comment: comment, Named: state.ShortHash(hash), Approval: state.Approval{Via: state.ViaBox}}}}
}

// candidates returns the approvals that the last event checks against GitHub.
func (l *life) candidates() (list []*state.Candidate) {
	for _, j := range l.jobs {
		if j.Kind == state.JobApprove {
			list = append(list, j.Candidate)
		}
	}
	return list
}

// TestTickBeforeCommentIsStored: people can tick the box of a plan whose comment errand does not know yet, because the
// answer to posting it was lost or the store could not be written. There is no second webhook, so the tick is kept
// until the comment is known.
func TestTickBeforeCommentIsStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by      state.Person
		may     state.Permission
		known   bool // the plan has another comment
		older   bool // the box belongs to the previous revision
		another bool // the box belongs to no revision
		checks  bool
	}{
		"by a writer":                          {by: writer, may: state.PermissionWrite, checks: true},
		"by somebody who may not":              {by: visitor, may: state.PermissionRead},
		"of the revision before, by a writer":  {by: writer, may: state.PermissionWrite, older: true, checks: true}, // it is checked against GitHub and answered
		"of no revision, by a writer":          {by: writer, may: state.PermissionWrite, another: true},
		"in a second copy, by a writer":        {by: writer, may: state.PermissionWrite, known: true, checks: true}, // likewise
		"in a second copy, by one who may not": {by: visitor, may: state.PermissionRead, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Body: "smaller, please"}}})
			l.gathered()
			l.launch()
			l.end(state.RunResult{Text: "A smaller plan.", Outcome: "build"})
			if c.known {
				l.postPlan(12)
			}
			hash := l.task.NewestPlan().Hash
			switch {
			case c.older:
				hash = l.task.Plans[0].Hash
			case c.another:
				hash = "0123456789"
			}
			l.do(tickedBox(c.by, c.may, 99, hash))
			l.want(state.PhaseAwaitingPreliminaryApproval)
			got := l.candidates()
			if len(got) > 0 != c.checks {
				t.Fatalf("got checks %v, want some: %v", got, c.checks)
			}
			if c.checks && (got[0].Hash != hash || got[0].By != c.by || got[0].Comment != 99) {
				t.Errorf("got checks %+v", got[0])
			}
		})
	}
}

// TestTickWithoutWebhookIsCleared: the person is unknown, so the tick approves nothing; a reply says so, and the box is
// cleared.
func TestTickWithoutWebhookIsCleared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*life)
		e    func(*event.Event)
		want bool
	}{
		"the plan waits":                  {want: true},
		"an approval is being checked":    {e: func(e *event.Event) { e.Approving = true }},
		"it was edited, too":              {set: func(l *life) { l.task.NewestPlan().Stale = state.StaleEdited }},
		"a newer one has taken its place": {set: func(l *life) { l.task.NewestPlan().Superseded = true }},
		"another comment":                 {e: func(e *event.Event) { e.Comment().ID = 98 }},
		"it was approved meanwhile":       {set: (*life).approve},
		"the task is over":                {set: func(l *life) { l.do(event.Event{By: writer, Payload: event.IssueClosed{}}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			if c.set != nil {
				c.set(l)
			}
			phase := l.task.Phase
			for i, want := range []bool{c.want, false} { // reported once, and cleared each time
				e := event.Event{Via: event.ViaSweep, Permission: state.PermissionNone, Payload: event.CommentEdited{OnlyBoxes: true, Ticked: true, Comment: &state.Comment{ID: 11}}}
				if c.e != nil {
					c.e(&e)
				}
				l.do(e)
				l.want(phase)
				if got := l.enqueued(state.JobUntick); got != c.want {
					t.Errorf("time %d: got a cleared box %v, want %v", i+1, got, c.want)
				}
				told := slices.ContainsFunc(l.jobs, func(j state.Job) bool {
					return j.Kind == state.JobPost && j.Post.Kind == state.PostNotCounted && j.Post.Reason == state.RejectedUnknownPerson && j.Post.By == state.Person{}
				})
				if told != want || l.enqueued(state.JobApprove) {
					t.Errorf("time %d: got a comment %v, want %v; jobs %v", i+1, told, want, kindsOf(l.jobs))
				}
			}
			if l.task.Ignored != 0 {
				t.Error("got the tick counted as ignored, want it uncounted")
			}
		})
	}
}

// TestTickInCommentFoundLater: the comment of a plan is found with a ticked box, after the outcome of posting it was
// unknown.
func TestTickInCommentFoundLater(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ticked, approving, early bool
		untick                   bool
	}{
		"nothing is ticked":         {},
		"the tick was not reported": {ticked: true, untick: true},
		"the tick is being checked": {ticked: true, approving: true},
		"comments are gathered":     {ticked: true, early: true, untick: true},
		"comments, nothing ticked":  {early: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.launch()
			l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
			if c.early {
				l.task.Feedback = append(l.task.Feedback, state.Feedback{ID: "comment:50", Kind: "comment", By: writer, Body: "smaller, please"})
			}
			p := l.task.NewestPlan()
			l.do(event.Event{Context: event.Context{Approving: c.approving}, Payload: event.Posted{BodyHash: "body", Searched: true, Comment: state.Posted{ID: 11, Node: "n", At: l.now}, Post: &state.Post{Kind: state.PostPlan, Hash: p.Hash}, Ticked: c.ticked}})
			if c.early != (l.task.Gathering != nil) {
				t.Errorf("got gathering %v", l.task.Gathering)
			}
			if got := l.enqueued(state.JobUntick); got != c.untick || got != l.enqueued(state.JobPost) {
				t.Errorf("got a cleared box %v and a comment %v, want %v", got, l.enqueued(state.JobPost), c.untick)
			}
		})
	}
}

// TestInvalidTickIsCleared: the person who ticked a box lost write access before the start. The box would stay ticked
// on GitHub, so that no other person could tick it.
func TestInvalidTickIsCleared(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		via    state.ApprovalVia
		why    string
		untick bool
	}{
		"the permission of who ticked is gone":   {state.ViaBox, state.RejectedRevoked, true},
		"the box was emptied":                    {state.ViaBox, state.RejectedUnticked, false},
		"the permission of who gave a 👍 is gone": {state.ViaReaction, state.RejectedRevoked, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			p := l.task.NewestPlan()
			a := state.Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: state.PermissionWrite, Via: c.via, Given: l.now}
			l.do(event.Event{Payload: event.Approved{Candidate: state.Candidate{Approval: a, Comment: 11}}})
			l.want(state.PhasePlanning)
			l.do(event.Event{Run: l.task.Run.ID, Payload: event.ApprovalRejected{Rejection: c.why, Candidate: state.Candidate{Approval: a}}})
			l.want(state.PhaseAwaitingPreliminaryApproval, state.JobPost)
			if got := l.enqueued(state.JobUntick); got != c.untick {
				t.Errorf("got a cleared box %v, want %v", got, c.untick)
			}
		})
	}
}
