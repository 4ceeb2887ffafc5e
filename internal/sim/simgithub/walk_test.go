package simgithub_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// People and the App act concurrently; afterwards, the invariants must hold.
func TestConcurrentActsKeepInvariants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		w.Issue("Busy")
	}
	var wg sync.WaitGroup
	for n, login := range []string{"octo", "alice", "tina", "rob"} {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 7))
			for range 40 {
				randomAct(w.Sim.As(login), r)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			_, _, _ = w.bot.Issues.CreateComment(t.Context(), "octo", "calc", 1, &github.IssueComment{Body: ptr("working")})
			_ = w.Sim.Snapshot()
		}
	})
	wg.Wait()
	w.Settled()
	checkInvariants(t, w.Sim.Snapshot())
}

// randomAct does one random act, which may be refused.
func randomAct(p simgithub.Person, r *rand.Rand) {
	n := 1 + r.IntN(3)
	switch r.IntN(9) {
	case 0, 1:
		_, _ = p.Comment(repo, n, fmt.Sprintf("comment %d, see #%d", r.Int(), 1+r.IntN(3)))
	case 2:
		_ = p.AddLabels(repo, n, fmt.Sprint("label", r.IntN(3)))
	case 3:
		_ = p.Assign(repo, n, "alice", "rob", "errand[bot]")
	case 4:
		_ = p.Unassign(repo, n, "alice")
	case 5:
		_ = p.Close(repo, n, "completed")
	case 6:
		_ = p.Reopen(repo, n)
	case 7:
		_ = p.ReactToIssue(repo, n, "+1")
	case 8:
		if i, err := p.Issue(repo, n); err == nil && len(i.Comments) > 0 {
			_ = p.DeleteComment(repo, i.Comments[r.IntN(len(i.Comments))].ID)
		}
	}
}

// checkInvariants checks the conditions that hold after any acts.
func checkInvariants(t *testing.T, snap simgithub.Snapshot) {
	t.Helper()
	ids := map[int64]bool{}
	fresh := func(what string, id int64) {
		if ids[id] {
			t.Errorf("%s has the ID %d of another object", what, id)
		}
		ids[id] = true
	}
	for _, r := range snap.Repos {
		for number, i := range r.Issues {
			fresh("issue", i.ID)
			if i.Number != number || (i.State == "closed") == i.ClosedAt.IsZero() {
				t.Errorf("issue #%d: number %d, %s, closed at %v", number, i.Number, i.State, i.ClosedAt)
			}
			for _, k := range i.Comments {
				fresh("comment", k.ID)
			}
			seen := map[string]bool{}
			for _, re := range i.Reactions {
				if seen[re.User+re.Content] {
					t.Errorf("%s reacted twice with %s", re.User, re.Content)
				}
				seen[re.User+re.Content] = true
			}
			for _, a := range i.Assignees {
				if a == "errand[bot]" || seen["assigned "+a] {
					t.Errorf("#%d is assigned to %v", number, i.Assignees)
				}
				seen["assigned "+a] = true
			}
		}
	}
}

func TestRenamedUsersKeepTheirID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Issue("One").Number
	k, err := w.Owner.Comment(repo, n, "plan")
	check(t, err)
	check(t, w.Sim.As("alice").React(repo, k.ID, "+1"))
	alice, _ := w.Sim.User("alice")
	check(t, w.Sim.RenameUser("alice", "alicia"))
	impostor := w.Sim.AddUser("alice")
	p, _, err := w.bot.Repositories.GetPermissionLevel(t.Context(), "octo", "calc", "alice")
	check(t, err)
	if p.GetPermission() != "read" || p.GetUser().GetID() != impostor.ID || impostor.ID == alice.ID {
		t.Errorf("new account with the old login: got role %s", p.GetPermission())
	}
	list, _, err := w.bot.Reactions.ListIssueCommentReactions(t.Context(), "octo", "calc", k.ID, nil)
	check(t, err)
	if len(list) != 1 || list[0].GetUser().GetLogin() != "alicia" || list[0].GetUser().GetID() != alice.ID {
		t.Errorf("got reaction by %v", list)
	}
	if err := w.Sim.RenameUser("octo", "cat"); status(err) != 422 {
		t.Errorf("renaming an owner: %v", err)
	}
}
