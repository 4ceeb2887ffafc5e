package machine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// reactions lists the reactions that the last event caused.
func (l *life) reactions() (list []string) {
	for _, j := range l.jobs {
		if j.Kind == state.JobReact {
			list = append(list, string(j.Args.Reaction))
		}
	}
	return list
}

// TestEveryCommandGetsAReaction: a comment with commands by a user with write access gets one 👀 in every phase, however
// many commands it has, or 😕 if it has no effect.
func TestEveryCommandGetsAReaction(t *testing.T) {
	t.Parallel()
	phases := map[string]func(*life){
		"a plan waits": (*life).toPreliminary,
		"pull request": (*life).toPR,
		"at work":      (*life).implementing,
		"failed": func(l *life) {
			l.implementing()
			l.end(state.RunResult{Class: state.RunFatal, Status: state.StatusCrashed})
		},
		"canceled":        func(l *life) { l.implementing(); l.comment(state.VerbCancel) },
		"asks for a key":  (*life).askedForKey,
		"stopped by hand": func(l *life) { l.implementing(); l.comment(state.VerbStop) },
	}
	for name, bring := range phases {
		for _, v := range verbs(t) {
			if v == state.VerbMessage || v == state.VerbPlan { // see TestOnlyWritersCommandsGetReactions
				continue
			}
			t.Run(name+"/"+string(v), func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				bring(l)
				l.comment(v, v)
				if got := l.reactions(); !slices.Equal(got, []string{"eyes"}) {
					t.Errorf("got reactions %v", got)
				}
			})
		}
	}
}

func TestOnlyWritersCommandsGetReactions(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.do(event.Event{By: state.Person{ID: 9, Login: "eve"}, Permission: state.PermissionRead, Payload: event.Commented{Comment: &state.Comment{ID: 70, Mention: true}, Orders: []state.Order{{Verb: state.VerbApprove}}}})
	if got := l.reactions(); len(got) != 0 {
		t.Errorf("an outsider's command: %v", got)
	}
	l.comment(state.VerbCancel)
	l.comment(state.VerbMessage)
	if got := l.reactions(); !slices.Equal(got, []string{"confused"}) {
		t.Errorf("a message after the end: %v", got)
	}
}

// askedForKey brings the task to the question for the ticket key that the repository requires.
func (l *life) askedForKey() {
	l.trigger()
	l.do(event.Event{Payload: event.QuestionRaised{Start: &event.Start{Settings: settings.Default(), Visible: true}, Question: state.Question{Kind: state.AskKey, Text: "[A-Z]+-[0-9]+"}}})
}

func (l *life) createPR(key string) {
	l.t.Helper()
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: l.now.Unix(), Mention: true}, Orders: []state.Order{{Verb: state.VerbCreatePR, Arg: key}}}})
}

// TestCreatePRNeedsAKey: without a key, the command changes nothing; with a key, a task only continues if errand has
// asked for it.
func TestCreatePRNeedsAKey(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bring  func(*life)
		key    string
		reply  string
		ticket string
		phase  state.Phase
	}{
		"asked for, named":         {(*life).askedForKey, "ABC-1", "", "ABC-1", state.PhaseQueued},
		"asked for, not named":     {(*life).askedForKey, "", state.ReplyTicketMissing, "", state.PhaseAwaitingAnswer},
		"stopped, named":           {func(l *life) { l.implementing(); l.comment(state.VerbStop) }, "ABC-1", state.ReplyTicketNoted, "ABC-1", state.PhaseAwaitingAnswer},
		"a plan waits, named":      {(*life).toPreliminary, "ABC-1", state.ReplyTicketNoted, "ABC-1", state.PhaseAwaitingPreliminaryApproval},
		"a plan waits, not named":  {(*life).toPreliminary, "", state.ReplyTicketMissing, "", state.PhaseAwaitingPreliminaryApproval},
		"after the end, named":     {func(l *life) { l.toPreliminary(); l.comment(state.VerbCancel) }, "ABC-1", state.ReplyStatus, "", state.PhaseCancelled},
		"after the end, not named": {func(l *life) { l.toPreliminary(); l.comment(state.VerbCancel) }, "", state.ReplyStatus, "", state.PhaseCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			c.bring(l)
			l.createPR(c.key)
			reply := ""
			for _, j := range l.jobs {
				if j.Kind == state.JobPost && j.Post.Kind == state.PostReply {
					reply = j.Post.Reason
				}
			}
			if reply != c.reply || l.task.Ticket != c.ticket || l.task.Phase != c.phase {
				t.Errorf("got reply %q, ticket %q, phase %s", reply, l.task.Ticket, l.task.Phase)
			}
		})
	}
}

// TestDeletedCommentIsNotLinked: when any of its comments is deleted, the task removes the link to it, also after the
// end; an unknown comment changes nothing.
func TestDeletedCommentIsNotLinked(t *testing.T) {
	t.Parallel()
	const plan, status, question, withheld = 11, 5, 20, 90
	for _, id := range []int64{plan, status, question, withheld, 999} {
		for _, ended := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%v", id, ended), func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				l.toPreliminary()
				if ended {
					l.comment(state.VerbCancel)
				}
				l.task.Plans[0].CommentURL = "https://x/11"
				l.task.Status = state.StatusComment{Comment: status, URL: "https://x/5"}
				l.task.Question = &state.Question{Kind: state.AskAgent, Comment: question}
				l.task.Context.Withheld = []state.Withheld{{ID: 89}, {ID: withheld}}
				version := l.task.Version
				l.do(event.Event{By: writer, Payload: event.CommentDeleted{Comment: &state.Comment{ID: id}}})
				got := map[int64]bool{
					plan: l.task.Plans[0].CommentURL == "", status: l.task.Status.URL == "",
					question: l.task.Question.Comment == 0, withheld: len(l.task.Context.Withheld) == 1 && l.task.Context.Withheld[0].ID == 89,
				}
				for other, forgotten := range got {
					if forgotten != (other == id) {
						t.Errorf("comment %d: got forgotten %v", other, forgotten)
					}
				}
				if changed := l.task.Version != version; changed != (id != 999) {
					t.Errorf("got a changed task %v", changed)
				}
				if stale := l.task.Plans[0].Stale; (stale == state.StaleDeleted) != (id == plan && !ended) {
					t.Errorf("got stale plan %q", stale)
				}
			})
		}
	}
}

// TestPlanFoundDeletedIsNotLinked: the deletion was not reported by a webhook, but found by the check of an approval.
func TestPlanFoundDeletedIsNotLinked(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	p := l.task.NewestPlan()
	p.CommentURL = "https://x/11"
	l.do(event.Event{Payload: event.ApprovalRejected{Rejection: state.RejectedPlanDeleted, Candidate: state.Candidate{Approval: state.Approval{Hash: p.Hash, By: writer, Permission: state.PermissionWrite}}}})
	if p := l.task.NewestPlan(); p.CommentURL != "" || p.Stale != state.StaleDeleted {
		t.Errorf("got address %q, stale %q", p.CommentURL, p.Stale)
	}
}
