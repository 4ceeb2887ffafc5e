package watch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state/event"
)

// TestCandidate: the operator can begin a task for an open issue without one in a repository that errand has access to; otherwise the reason
// is named. Nothing is changed.
func TestCandidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		repo    string
		number  int
		act     func(l *sweepWorld) error
		refused string
	}{
		"without a trigger": {},
		"other case":        {repo: "Acme/Slug"},
		"closed":            {act: func(l *sweepWorld) error { return l.ada.Close(full, 1, "") }, refused: "acme/slug#1 is closed; reopen it first"},
		"it has a task":     {act: func(l *sweepWorld) error { l.begun("mention"); return nil }, refused: "already working on acme/slug#1 (getting ready)"},
		"its task has ended": {act: func(l *sweepWorld) error {
			l.begun("mention")
			l.happen(event.Event{Task: l.key, Payload: event.IssueGone{Lost: "it was deleted"}})
			return nil
		}, refused: "has ended (canceled); `errand restart acme/slug#1`"},
		"a pull request": {number: 2, act: func(l *sweepWorld) error {
			_, err := l.ada.PushCommit(full, simgithub.Commit{Branch: "side", From: "main", Message: "x", Files: map[string]string{"a": "b"}})
			if err == nil {
				_, err = l.ada.OpenPull(full, simgithub.NewPull{Title: "Fix", Head: "side"})
			}
			return err
		}, refused: "acme/slug#2 is a pull request"},
		"no such issue": {number: 7, refused: "there is no issue acme/slug#7"},
		"deleted":       {act: func(l *sweepWorld) error { return l.ada.DeleteIssue(full, 1) }, refused: "there is no issue acme/slug#1"},
		"transferred": {act: func(l *sweepWorld) error {
			seed := simgithub.RepoSeed{Owner: "acme", Name: "other", Files: map[string]string{"a": "b"}, Collaborators: map[string]simgithub.Role{"ada": simgithub.RoleAdmin}}
			if _, err := l.sim.SeedRepo(seed); err != nil {
				return err
			}
			if _, err := l.sim.Install("acme/other"); err != nil {
				return err
			}
			_, err := l.ada.TransferIssue(full, 1, "acme/other")
			return err
		}, refused: "acme/slug#1 was transferred: it is at "},
		"elsewhere": {repo: "acme/zebra", refused: "no access to acme/zebra"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			if c.act != nil {
				check(t, c.act(l))
			}
			began := len(l.reported(event.KindTriggered))
			repo, number := full, 1
			if c.repo != "" {
				repo = c.repo
			}
			if c.number != 0 {
				number = c.number
			}
			got, err := l.sweeper.Candidate(t.Context(), repo, number)
			if len(l.reported(event.KindTriggered)) != began {
				t.Error("a task was triggered")
			}
			var refused *watch.RefusedError
			if c.refused != "" {
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got error %v, want the reason %q", err, c.refused)
				}
				return
			}
			check(t, err)
			if got.Repo.FullName() != full || got.Installation == 0 || got.Issue.Title == "" || got.Issue.Number != 1 {
				t.Errorf("got %+v", got)
			}
		})
	}
}
