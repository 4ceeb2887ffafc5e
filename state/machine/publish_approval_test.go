package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// toShown brings a task to changes that are posted and wait for approval.
func (l *life) toShown() {
	l.trigger()
	s := settings.Default()
	s.Plan, s.Publish = settings.PlanNone, settings.PublishAfterApproval
	l.do(event.Event{Payload: event.Started{Start: event.Start{Settings: s, Visible: true, Branch: state.Branch{Name: "errand/1-bug", Base: "main", BaseSHA: "b0"}}}})
	l.launch()
	l.end(state.RunResult{Outcome: "done", Summary: "Mended."})
	l.want(state.PhaseImplementing, state.JobCollect)
	l.collect("ref1")
	l.show("+mended", 21)
}

func (l *life) collect(ref string) {
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Ref: ref, Paths: 1, LocalHead: "h-" + ref, LocalTree: "t-" + ref}}})
	l.want(state.PhaseImplementing, state.JobShow)
}

func (l *life) show(diff string, comment int64) {
	w := l.task.Work
	l.do(event.Event{Run: w.Run, Payload: event.DiffReady{Plan: state.Plan{Text: diff, Publish: &state.Changes{Ref: w.Ref, Digest: "d-" + w.Ref, Tree: w.LocalTree, Stat: []string{"a: +1 −0"}}}}})
	l.want(state.PhaseAwaitingPublishApproval, state.JobPost)
	l.postPlan(comment)
}

func TestChangesAreApprovedBeforeTheyArePublished(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toShown()
	first := *l.task.NewestPlan()
	if first.Kind != state.PlanPublish || first.Revision != 1 || first.Summary != "Mended." || !first.Open() {
		t.Fatalf("got revision %+v", first)
	}
	l.approve()
	l.want(state.PhaseImplementing, state.JobCommit)
	if w, p := l.task.Work, l.task.NewestPlan(); w.Approved != p.Hash || p.Publish.Approved == nil || p.Publish.Approved.By != writer || l.task.Approval.Via != state.ViaSettings {
		t.Errorf("got work %+v, changes %+v", w, p.Publish)
	}

	// The person may not any more when it is about to be published.
	l.do(event.Event{Payload: event.ApprovalRejected{Rejection: state.RejectedRevoked, Candidate: state.Candidate{Approval: *l.task.NewestPlan().Publish.Approved}}})
	l.want(state.PhaseAwaitingPublishApproval, state.JobPost)
	if l.task.Work.Approved != "" || l.task.NewestPlan().Publish.Approved != nil {
		t.Error("got an invalid approval, want none")
	}
	l.approve()
	l.want(state.PhaseImplementing, state.JobCommit)

	// Somebody pushed in the meantime: the rebased commits are not those that were approved.
	l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: "H", Tree: "t-ref1"}}})
	l.want(state.PhaseImplementing, state.JobMove)
	l.do(event.Event{Run: l.task.Work.Run, Payload: event.BranchAhead{Head: "theirs"}})
	l.want(state.PhaseImplementing, state.JobRebase)
	l.collect("ref2")
	if l.task.Work.Approved != "" {
		t.Error("got an approved rebased changeset, want it unapproved")
	}
	l.show("+mended too", 22)
	old, p := l.task.Plans[0], l.task.NewestPlan()
	if !old.Superseded || old.Text != "" || old.Publish.Stat != nil || p.Revision != 2 || p.Hash == first.Hash {
		t.Errorf("got first %+v, second %+v", old, p)
	}

	// A change request, and the old diff of the rework is of no use.
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 31, Body: "Not like that.", At: l.now}}})
	l.want(state.PhaseAwaitingPublishApproval, state.JobDue)
	l.gathered()
	l.want(state.PhaseImplementing, state.JobLaunch)
	l.do(event.Event{Run: l.task.Work.Run, Payload: event.DiffReady{Plan: state.Plan{Text: "+late", Publish: &state.Changes{Ref: "ref2"}}}})
	l.want(state.PhaseImplementing)
	if len(l.task.Plans) != 2 {
		t.Error("got an obsolete diff posted, want none")
	}

	// Nobody approves the changes in time: nothing is published, and the work is kept.
	l.launch()
	l.end(state.RunResult{Outcome: "done"})
	l.collect("ref3")
	l.show("+again", 23)
	l.do(event.Event{Payload: event.NewDue("expire", l.task.NewestPlan().Hash)})
	l.want(state.PhaseCancelled, state.JobStop)
	if s := l.task.Saved; len(s) != 1 || s[0].Ref != "ref3" || !strings.Contains(l.task.End.Reason, "nobody approved the changes in time") {
		t.Errorf("got saved work %+v, end %+v", s, l.task.End)
	}
}

// TestHashOfChangesCoversData: the hash of changes covers all of their data, not only the displayed part.
func TestHashOfChangesCoversData(t *testing.T) {
	t.Parallel()
	base := state.Plan{Kind: state.PlanPublish, Revision: 1, Text: "+x", Publish: &state.Changes{Digest: "d", Tree: "t"}}
	seen := map[string]string{state.PlanHash(base): "base"}
	for name, c := range map[string]*state.Changes{"another digest": {Digest: "e", Tree: "t"}, "another tree": {Digest: "d", Tree: "u"}, "none": nil} {
		p := base
		p.Publish = c
		if other, ok := seen[state.PlanHash(p)]; ok {
			t.Errorf("got equal hashes for %s and %s", name, other)
		}
		seen[state.PlanHash(p)] = name
	}
	base.Publish = &state.Changes{Digest: "d", Tree: "t", Approved: &state.Approval{}, Stat: []string{"x"}}
	if seen[state.PlanHash(base)] != "base" {
		t.Error("got another hash after an approval, want the same")
	}
}

// TestCommentsOnChangesAreGathered: comments on changes that wait for approval start one run together. An approval meanwhile is
// held: it is answered if the changes are revised, and checked again if the comments were withdrawn.
func TestCommentsOnChangesAreGathered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		comments []state.Comment
		reread   []state.Comment
		want     state.Phase
		posts    []string // when the comments have been gathered
	}{
		"two requests":      {comments: []state.Comment{{Body: "Use a map."}, {Body: "And a test.", Mention: true, OnPR: true}}, want: state.PhaseImplementing, posts: []string{state.RejectedRevised}},
		"withdrawn":         {comments: []state.Comment{{Body: "Use a map."}}, reread: []state.Comment{{ID: 50, Withdrawn: state.RejectedCommentDeleted}}, want: state.PhaseAwaitingPublishApproval},
		"one is thanks now": {comments: []state.Comment{{Body: "Use a map."}}, reread: []state.Comment{{ID: 50, Body: "Thanks!", Remark: state.RemarkThanks}}, want: state.PhaseAwaitingPublishApproval, posts: []string{"+1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toShown()
			for i, m := range c.comments {
				l.said(int64(50+i), []state.Person{writer, colleague}[i%2], m)
				l.want(state.PhaseAwaitingPublishApproval, state.JobDue)
			}
			l.approvedBy(colleague)
			if len(l.task.Held) != 1 {
				t.Fatalf("got held approvals %v, want one", l.task.Held)
			}
			l.gathered(c.reread...)
			l.want(c.want)
			if got := l.posted(); !slices.Equal(got, c.posts) {
				t.Errorf("got posts %v, want %v", got, c.posts)
			}
			revised := c.want == state.PhaseImplementing
			if len(l.task.Held) != 0 || l.enqueued(state.JobApprove) == revised || l.enqueued(state.JobLaunch) != revised || l.task.Gathering != nil {
				t.Errorf("got held approvals %v, gathering %v and jobs %v", l.task.Held, l.task.Gathering, kindsOf(l.jobs))
			}
		})
	}
}
