package state

import "testing"

// TestRetryAfterARefusal: retry has the same commits judged again, by settings that may have changed; with a new VM, or
// at any other word, the agent works on.
func TestRetryAfterARefusal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		order Order
		want  JobKind
		told  int // refusals that the next run hears of
	}{
		"retry":        {Order{Verb: VerbRetry}, JobCollect, 0},
		"on a new VM":  {Order{Verb: VerbRetry, Fresh: true}, JobLaunch, 2},
		"another word": {Order{Verb: VerbMessage}, JobLaunch, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.end(RunResult{Status: "ok", Class: "success", Outcome: "done"})
			l.do(Event{Kind: EventCollected, Run: l.task.Runs[0].ID, Work: &Work{Run: l.task.Runs[0].ID, LocalHead: "h", Paths: 1}, Refusals: []Refusal{
				{Rule: "size", Detail: "too many", Remedy: "fewer"}, {Rule: "protected-paths", Path: "AGENTS.md", Detail: "protected", Remedy: "leave it"},
			}})
			l.want(PhaseAwaitingAnswer, JobPost)
			jobs := l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 70, Body: "go on", Mention: true}, Orders: []Order{tc.order}})
			found := false
			for _, j := range jobs {
				found = found || j.Kind == tc.want
			}
			if !found || l.task.Phase != PhaseImplementing {
				t.Errorf("jobs %v in %s, want %s", jobs, l.task.Phase, tc.want)
			}
			told := 0
			for _, f := range l.task.Feedback {
				if f.Kind == feedbackRefusal && f.Taken == "" {
					told++
				}
			}
			if told != tc.told {
				t.Errorf("the next run is told of %d refusals, want %d", told, tc.told)
			}
		})
	}
}
