package machine

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestStatusCommentOfEarlierLife: a life that begins before the end of the previous one was shown reuses its status
// comment. Otherwise that comment is folded unchanged, and the new life gets its own.
func TestStatusCommentOfEarlierLife(t *testing.T) {
	t.Parallel()
	for name, shown := range map[string]bool{"the end was shown": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.do(event.Event{Payload: event.StatusSent{Status: state.StatusComment{Comment: 7, Node: "C7", Shown: l.task.Visible, At: l.now}}})
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.IssueClosed{}})
			if shown {
				l.do(event.Event{Payload: event.StatusSent{Status: state.StatusComment{Comment: 7, Node: "C7", Shown: l.task.Visible, At: l.now}}})
			}
			l.trigger()
			want := int64(7)
			if shown {
				want = 0
			}
			if l.task.Gen != 2 || l.task.Status.Comment != want || l.task.Status.Shown >= l.task.Visible {
				t.Errorf("life %d: got status comment %+v at version %d", l.task.Gen, l.task.Status, l.task.Visible)
			}
			if got := slices.Contains(folded(l), "C7"); got != shown {
				t.Errorf("the old comment is folded: %t, want %t", got, shown)
			}
		})
	}
}

// folded returns the comments that the newest event has folded.
func folded(l *life) []string {
	var nodes []string
	for _, j := range l.jobs {
		if j.Kind == state.JobMinimize {
			nodes = append(nodes, j.Args.Node)
		}
	}
	return nodes
}

// TestStatusCommentOfCommentWithTwoCommands: the next life that a comment begins after ending the task reuses the status
// comment, which would otherwise show for ever that an agent works.
func TestStatusCommentOfCommentWithTwoCommands(t *testing.T) {
	t.Parallel()
	for _, then := range []state.Verb{state.VerbRetry, state.VerbPlan, state.VerbRestart} {
		t.Run(string(then), func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.do(event.Event{Payload: event.StatusSent{Status: state.StatusComment{Comment: 7, Shown: l.task.Visible, At: l.now}}})
			l.comment(state.VerbCancel, then)
			if l.task.Gen != 2 || l.task.Status.Comment != 7 || l.task.Status.Shown >= l.task.Visible {
				t.Errorf("life %d: got status comment %+v at version %d", l.task.Gen, l.task.Status, l.task.Visible)
			}
		})
	}
}
