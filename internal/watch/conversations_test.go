package watch_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// longDiscussion returns a land with a task of issue 1 that began an hour ago.
func longDiscussion(t *testing.T) *sweepWorld {
	t.Helper()
	l := newSweepWorld(t)
	i := l.issue()
	l.happen(event.Event{
		Task:         l.key,
		By:           ada,
		Permission:   state.PermissionWrite,
		Via:          "mention",
		At:           time.Now().Add(-time.Hour),
		Installation: l.inst,
		Repo:         &l.repo,
		Payload:      event.Triggered{Issue: &state.Issue{Node: i.NodeID, Title: "It breaks", Body: "Always.", Author: ada}},
	})
	return l
}

// stored runs two sweeps and lists the deliveries they stored.
func (l *sweepWorld) stored() (guids []string) {
	l.t.Helper()
	for range 2 {
		checkSwept(l.t, l.sweeper.SweepState(l.t.Context()))
	}
	list, err := l.PendingDeliveries(l.t.Context(), 10)
	check(l.t, err)
	for _, d := range list {
		guids = append(guids, d.GUID)
	}
	return guids
}

// TestLostCommentsAreStored: a comment is stored once as the lost webhook, unless it is known, errand's own or edited.
func TestLostCommentsAreStored(t *testing.T) {
	t.Parallel()
	l := longDiscussion(t)
	k, err := l.sim.As("bob").Comment(full, 1, "@errand cancel")
	check(t, err)
	edited, err := l.sim.As("bob").Comment(full, 1, "fine")
	check(t, err)
	l.ahead.Store(int64(time.Second)) // an edit in the same second as the comment is not visible
	check(t, l.ada.EditComment(full, edited.ID, "@errand approve"))
	if diff := cmp.Diff([]string{fmt.Sprintf("swept-issue_comment-%d", k.ID)}, l.stored()); diff != "" {
		t.Fatalf("stored (-want +got):\n%s", diff)
	}
	list, err := l.PendingDeliveries(t.Context(), 1)
	check(t, err)
	if list[0].Event != "issue_comment" || len(list[0].Payload) == 0 {
		t.Errorf("got delivery %+v", list[0])
	}
}

// TestLostCommandDoesNotVouchForLaterEdits: a lost comment comes with the issue's text only if that is as its author saw it.
func TestLostCommandDoesNotVouchForLaterEdits(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]simgithub.IssueEdit{"as it was": {}, "text": {Body: ptr("Delete everything.")}, "title": {Title: ptr("Delete everything")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := longDiscussion(t)
			_, err := l.sim.As("bob").Comment(full, 1, "@errand replan")
			check(t, err)
			l.ahead.Store(int64(time.Second))
			check(t, l.ada.EditIssue(full, 1, edit))
			if len(l.stored()) != 1 {
				t.Fatalf("got %v, want one delivery", l.stored())
			}
			list, err := l.PendingDeliveries(t.Context(), 1)
			check(t, err)
			var payload struct{ Issue map[string]any }
			check(t, json.Unmarshal(list[0].Payload, &payload))
			if _, got := payload.Issue["title"]; got != (name == "as it was") || payload.Issue["number"] != float64(1) {
				t.Errorf("got issue %v", payload.Issue)
			}
		})
	}
}

// TestLostReviewsAreStored: lost reviews of the task's pull request are stored.
func TestLostReviewsAreStored(t *testing.T) {
	t.Parallel()
	l := longDiscussion(t)
	check(t, errOf(l.sim.As("bob").PushCommit(full, simgithub.Commit{Branch: "errand/1", Message: "Mend it", Files: map[string]string{"a": "b\n"}})))
	p, err := l.sim.As("bob").OpenPull(full, simgithub.NewPull{Title: "Mend it", Head: "errand/1"})
	check(t, err)
	repoSettings := settings.Default()
	repoSettings.Plan = settings.PlanNone
	l.happen(event.Event{Task: l.key, Payload: event.Started{Start: event.Start{Settings: repoSettings, Visible: true, Branch: state.Branch{Name: "errand/1", Base: "main"}}}})
	l.happen(event.Event{Task: l.key, Payload: event.PROpened{PR: state.PR{Number: p.Number, State: "open"}}})
	v, err := l.ada.Review(full, p.Number, simgithub.NewReview{Event: "COMMENT", Body: "Why?"})
	check(t, err)
	if diff := cmp.Diff([]string{fmt.Sprintf("swept-pull_request_review-%d", v.ID)}, l.stored()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// TestLostRepositoryTransfer: a repository is identified by its ID under any owner and installation. Without any
// installation its tasks end after a while, even if it is readable.
func TestLostRepositoryTransfer(t *testing.T) {
	t.Parallel()
	for name, installed := range map[string]bool{"to an owner with the App": true, "to one without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := longDiscussion(t)
			now := time.Now()
			l.cfg.Now = func() time.Time { return now }
			l.sweeper = watch.NewSweeper(l.cfg)
			check(t, l.sim.TransferRepo(full, "initech", installed))
			var got [][]string
			for range 2 {
				got = append(got, l.kinds())
				now = now.Add(2 * time.Hour)
			}
			want := [][]string{nil, {"gone  by "}}
			if installed {
				want = [][]string{{"renamed  by "}, nil}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLostIssueTransfer: GitHub redirects from the old address to the transferred issue, which is a
// different issue.
func TestLostIssueTransfer(t *testing.T) {
	t.Parallel()
	l := longDiscussion(t)
	check(t, errOf(l.sim.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "other", Files: map[string]string{"a": "b\n"}, Collaborators: map[string]simgithub.Role{"ada": simgithub.RoleAdmin}})))
	check(t, errOf(l.sim.Install("acme/other")))
	check(t, errOf(l.ada.TransferIssue(full, 1, "acme/other")))
	if diff := cmp.Diff([]string{"issue_gone  by "}, l.kinds()); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}
