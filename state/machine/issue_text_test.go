package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// mentioned applies a mention in the issue's text.
func (l *life) mentioned(by state.Person, p state.Permission, m state.Comment, verbs ...state.Verb) {
	l.t.Helper()
	m.InIssue, m.Mention, m.Body, m.At = true, true, "It breaks. @errand", l.now
	var orders []state.Order
	for _, v := range verbs {
		orders = append(orders, state.Order{Verb: v, Arg: "opus"})
	}
	l.do(event.Event{By: by, Permission: p, Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: event.Commented{Issue: &state.Issue{Title: "Bug", Body: m.Body, Author: by}, Comment: &m, Orders: orders}})
}

// TestMentionInIssueText: the text of an issue is read like a comment where there is no task, and starts nothing else.
func TestMentionInIssueText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		permission state.Permission
		said       state.Comment
		verbs      []state.Verb
		begins     bool
		posts      []string
	}{
		"plan":            {state.PermissionWrite, state.Comment{}, []state.Verb{state.VerbPlan}, true, []string{"eyes"}},
		"a message":       {state.PermissionAdmin, state.Comment{}, []state.Verb{state.VerbMessage}, true, []string{"eyes"}},
		"with a model":    {state.PermissionWrite, state.Comment{}, []state.Verb{state.VerbPlan, state.VerbModel}, true, []string{"eyes", state.ReplyModelSet}},
		"with a message":  {state.PermissionWrite, state.Comment{}, []state.Verb{state.VerbPlan, state.VerbMessage}, true, []string{"eyes"}},
		"only thanks":     {state.PermissionWrite, state.Comment{Remark: state.RemarkThanks}, []state.Verb{state.VerbMessage}, false, []string{"+1"}},
		"another command": {state.PermissionWrite, state.Comment{}, []state.Verb{state.VerbStatus}, false, nil},
		"removed since":   {state.PermissionWrite, state.Comment{Withdrawn: state.RejectedCommentEdited}, []state.Verb{state.VerbPlan}, false, nil},
		"an outsider":     {state.PermissionRead, state.Comment{}, []state.Verb{state.VerbPlan}, false, []string{"confused"}},
		"nobody":          {state.PermissionNone, state.Comment{}, []state.Verb{state.VerbMessage}, false, []string{"confused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, by := range []state.Person{writer, colleague} {
				l := newLife(t)
				l.mentioned(by, c.permission, c.said, c.verbs...)
				if (l.task != nil) != c.begins || !slices.Equal(l.posted(), c.posts) || slices.ContainsFunc(l.jobs, func(j state.Job) bool { return j.Kind == state.JobReact && !strings.HasSuffix(j.Key, "-issue") }) {
					t.Errorf("by %s: got task %v and posts %v, want a task: %t, and posts %v on the issue", by.Login, l.task, l.posted(), c.begins, c.posts)
				}
				if c.begins && (l.task.Phase != state.PhaseQueued || l.task.Trigger.Via != state.TriggerMention || l.task.Trigger.By != by || len(l.task.Feedback) != 0) {
					t.Errorf("by %s: got phase %s, trigger %+v, feedback %v", by.Login, l.task.Phase, l.task.Trigger, l.task.Feedback)
				}
			}
		})
	}
}

// TestMentionInIssueTextOfTask: it changes nothing about a task, whether that is open or has ended.
func TestMentionInIssueTextOfTask(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]func(l *life){
		"queued": func(l *life) { l.trigger() },
		"plan":   func(l *life) { l.toPreliminary() },
		"pr":     func(l *life) { l.toPR() },
		"ended":  func(l *life) { l.toPR(); l.do(event.Event{By: writer, Payload: event.PRClosed{Merged: true}}) },
	} {
		for _, verb := range []state.Verb{state.VerbPlan, state.VerbMessage} {
			for _, withdrawn := range []string{"", state.RejectedCommentEdited} {
				t.Run(name+" "+string(verb)+" "+withdrawn, func(t *testing.T) {
					t.Parallel()
					l := newLife(t)
					to(l)
					before := l.task.Clone()
					l.mentioned(colleague, state.PermissionWrite, state.Comment{Withdrawn: withdrawn}, verb)
					if got := l.posted(); l.task.Phase != before.Phase || l.task.Gen != before.Gen || len(l.task.Feedback) != len(before.Feedback) || len(got) > 1 || len(got) == 1 && got[0] != "eyes" {
						t.Errorf("got phase %s, life %d, posts %v", l.task.Phase, l.task.Gen, got)
					}
				})
			}
		}
	}
}

// TestTriggerRightAfterMention: who opens an issue with a mention and an assignee gives one trigger. Removing the assignment
// cancels the task; a later assignment is answered.
func TestTriggerRightAfterMention(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		via   state.TriggerVia
		taken bool
	}{
		"at once, assigned": {time.Second, state.TriggerAssigned, true},
		"at once, labeled":  {time.Second, state.TriggerLabel, true},
		"before it":         {-time.Second, state.TriggerAssigned, true},
		"later":             {2 * time.Minute, state.TriggerAssigned, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.mentioned(writer, state.PermissionWrite, state.Comment{}, state.VerbPlan)
			e := event.Event{By: writer, Permission: state.PermissionWrite, Via: c.via, At: l.now.Add(c.after), Payload: event.Triggered{Issue: &state.Issue{Title: "Bug", Body: "It breaks."}}}
			l.do(e)
			if got := len(l.posted()) == 0; got != c.taken || (l.task.Trigger.Via == c.via) != c.taken {
				t.Errorf("got posts %v and trigger %+v, want the trigger taken over: %t", l.posted(), l.task.Trigger, c.taken)
			}
			l.do(event.Event{By: colleague, Via: c.via, Payload: event.Untriggered{}, Permission: state.PermissionWrite})
			if ended := l.task.Ended(); ended != c.taken {
				t.Errorf("after it was removed: got an end: %t, want %t", ended, c.taken)
			}
		})
	}
}
