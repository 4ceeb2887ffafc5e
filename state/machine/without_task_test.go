package machine

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestCommandsWithoutTask: on a closed issue every command gets a reaction and one reply; on an open one those do that start nothing. Nobody without
// write access gets a reply.
func TestCommandsWithoutTask(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		for _, verb := range verbs(t) {
			for by, permission := range map[state.Person]state.Permission{writer: state.PermissionWrite, colleague: state.PermissionAdmin, {ID: 77, Login: "eve"}: state.PermissionRead} {
				l := newLife(t)
				l.do(event.Event{By: by, Permission: permission, Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Installation: 3, Payload: event.Commented{
					Issue: &state.Issue{Title: "Bug", Author: by, Closed: closed}, Comment: &state.Comment{ID: 9, Mention: true, At: l.now}, Orders: []state.Order{{Verb: verb}, {Verb: verb}},
				}})
				starting := slices.Contains([]state.Verb{state.VerbPlan, state.VerbMessage, state.VerbRestart}, verb)
				var replies []string
				for _, j := range l.jobs {
					if j.Kind == state.JobPost && l.task == nil {
						replies = append(replies, j.Post.Reason)
						if j.Args.Installation != 3 || j.Args.Owner != "o" || j.Args.Name != "r" {
							t.Errorf("%s: the job does not name the repository: %+v", verb, j.Args)
						}
					}
				}
				var want []string
				switch {
				case permission == state.PermissionRead:
				case closed:
					want = []string{state.ReplyNoTaskClosed}
				case !starting:
					want = []string{state.ReplyNoTask}
				}
				if begins := starting && !closed && permission != state.PermissionRead; (l.task != nil) != begins || !slices.Equal(replies, want) {
					t.Errorf("%s by %s, closed %v: got replies %v and task %v, want %v", verb, by.Login, closed, replies, l.task != nil, want)
				}
			}
		}
	}
}
