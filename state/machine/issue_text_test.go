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

// TestSeveralTriggersAtOnce: who opens an issue with a mention, an assignee and a label gives one trigger. An assignment or a label takes
// over from a mention, so that removing it cancels the task; a later one is answered.
func TestSeveralTriggersAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first  state.TriggerVia
		after  time.Duration
		via    state.TriggerVia
		by     state.Person
		posts  int
		cancel bool // removing the second trigger cancels the task
	}{
		"a mention, then assigned":           {state.TriggerMention, time.Second, state.TriggerAssigned, writer, 0, true},
		"a mention, then labeled":            {state.TriggerMention, time.Second, state.TriggerLabel, writer, 0, true},
		"assigned, then a mention":           {state.TriggerMention, -time.Second, state.TriggerAssigned, writer, 0, true},
		"a mention, assigned later":          {state.TriggerMention, 2 * time.Minute, state.TriggerAssigned, writer, 1, false},
		"assigned, then labeled":             {state.TriggerAssigned, time.Second, state.TriggerLabel, writer, 0, false},
		"labeled, then assigned":             {state.TriggerLabel, 30 * time.Second, state.TriggerAssigned, writer, 0, false},
		"labeled before, but heard later":    {state.TriggerAssigned, -30 * time.Second, state.TriggerLabel, writer, 0, false},
		"assigned, labeled by a colleague":   {state.TriggerAssigned, time.Second, state.TriggerLabel, colleague, 0, false},
		"assigned, labeled later":            {state.TriggerAssigned, 2 * time.Minute, state.TriggerLabel, colleague, 1, false},
		"labeled, assigned later":            {state.TriggerLabel, 2 * time.Minute, state.TriggerAssigned, writer, 1, false},
		"assigned, assigned again at GitHub": {state.TriggerAssigned, 2 * time.Minute, state.TriggerAssigned, writer, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			triggered := func(by state.Person, via state.TriggerVia, at time.Time) {
				l.do(event.Event{By: by, Permission: state.PermissionWrite, Via: via, At: at, Payload: event.Triggered{Issue: &state.Issue{Title: "Bug", Body: "It breaks."}}})
			}
			began := l.now
			if c.first == state.TriggerMention {
				l.mentioned(writer, state.PermissionWrite, state.Comment{}, state.VerbPlan)
			} else {
				triggered(writer, c.first, began)
			}
			triggered(c.by, c.via, began.Add(c.after))
			if got := len(l.posted()); got != c.posts {
				t.Errorf("got posts %v, want %d", l.posted(), c.posts)
			}
			if triggered(c.by, c.via, began.Add(c.after)); len(l.posted()) != 0 {
				t.Errorf("a repetition is answered: %v", l.posted())
			}
			if c.first == c.via { // an older removal, whose webhook came late
				l.do(event.Event{By: colleague, Via: c.via, At: began.Add(c.after / 2), Payload: event.Untriggered{}, Permission: state.PermissionWrite})
				if l.task.Ended() {
					t.Error("a removal before the same trigger was given again cancels the task")
				}
			}
			l.do(event.Event{By: colleague, Via: c.via, At: began.Add(3 * time.Minute), Payload: event.Untriggered{}, Permission: state.PermissionWrite})
			if ended := l.task.Ended(); ended != c.cancel {
				t.Errorf("after it was removed: got an end: %t, want %t", ended, c.cancel)
			}
		})
	}
}
