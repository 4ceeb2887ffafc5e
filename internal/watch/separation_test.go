package watch_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestSeparateDenialsDoNotEndTask: GitHub occasionally denies access to an issue. Only denials for an hour without interruption end a
// task, and denials before a restart of the task do not count.
func TestSeparateDenialsDoNotEndTask(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	now := time.Now()
	l.cfg.Now = func() time.Time { return now }
	l.sweeper = watch.NewSweeper(l.cfg)
	l.issue()
	l.begun("mention")
	for i, c := range []struct {
		after  time.Duration
		denied bool
		renew  bool // a person ends the task and it starts again
		want   []string
	}{
		{0, true, false, nil},
		{30 * time.Minute, false, false, nil},
		{40 * time.Minute, true, false, nil}, // more than an hour after the first, but readable in between
		{30 * time.Minute, true, false, nil},
		{time.Minute, true, true, nil},
		{40 * time.Minute, true, false, nil},
		{61 * time.Minute, true, false, []string{"gone  by "}},
	} {
		now = now.Add(c.after)
		if c.renew {
			l.happen(event.Event{Task: l.key, By: ada, Via: event.ViaConfirmed, Payload: event.IssueClosed{}})
			l.kinds()
			l.begun("mention")
		}
		l.sim.ClearFaults()
		if c.denied {
			check(t, l.sim.Fault(simgithub.Fault{Path: `/issues/1$`, Status: http.StatusNotFound}))
		}
		if diff := cmp.Diff(c.want, l.kinds()); diff != "" {
			t.Fatalf("sweep %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestEitherAssigneeKeepsTask: a task continues while the machine user or the App's own account is assigned, whatever the
// other assignees.
func TestEitherAssigneeKeepsTask(t *testing.T) {
	t.Parallel()
	untriggered := []string{"untriggered assigned by "}
	for name, c := range map[string]struct {
		assignee string // the configured machine user
		assigned []string
		label    string // the issue's label
		want     []string
	}{
		"the machine user":                    {"errand-bot", []string{"errand-bot"}, "", nil},
		"in different case":                   {"Errand-Bot", []string{"errand-bot"}, "", nil},
		"with a person":                       {"errand-bot", []string{"bob", "errand-bot"}, "", nil},
		"a person instead":                    {"errand-bot", []string{"bob"}, "", untriggered},
		"another machine user":                {"errand-2", []string{"errand-bot"}, "", untriggered},
		"none, with the label":                {"errand-bot", nil, "errand", untriggered},
		"a person, none configured":           {"", []string{"bob"}, "", untriggered},
		"the machine user, and another label": {"errand-bot", []string{"errand-bot"}, "errand-2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.cfg.Assignee = c.assignee
			l.sweeper = watch.NewSweeper(l.cfg)
			l.issue()
			l.begun("assigned")
			for _, login := range c.assigned {
				check(t, l.ada.Assign(full, 1, login))
			}
			if c.label != "" {
				check(t, l.ada.AddLabels(full, 1, c.label))
			}
			if diff := cmp.Diff(c.want, l.kinds()); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOwnAccountsAreAssignees: the App's account (by ID) and the machine user (by login) count as errand, and no other.
func TestOwnAccountsAreAssignees(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		assignee string
		who      []state.Person
		want     bool
	}{
		"the App's account next to a machine user": {"errand-bot", []state.Person{{ID: 9, Login: "errand[bot]", Bot: true}}, true},
		"the App's account alone":                  {"", []state.Person{{ID: 9, Login: "errand[bot]", Bot: true}}, true},
		"another App's account":                    {"errand-bot", []state.Person{{ID: 10, Login: "ci[bot]", Bot: true}}, false},
		"the machine user next to another App's":   {"errand-bot", []state.Person{{ID: 10, Login: "ci[bot]", Bot: true}, {ID: 3, Login: "errand-bot"}}, true},
		"a login that begins alike":                {"errand-bot", []state.Person{{ID: 4, Login: "errand-bot-2"}}, false},
	} {
		s := watch.NewSweeper(watch.SweeperConfig{Now: time.Now, BotID: 9, Assignee: c.assignee})
		if got := s.Assigned(forge.Issue{Assignees: c.who}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestCommentsOfOtherBotsAreStored: the sweep ignores only errand's own comments. Permissions of other bots are checked like
// everyone's.
func TestCommentsOfOtherBotsAreStored(t *testing.T) {
	t.Parallel()
	l := longDiscussion(t)
	l.sim.AddBot("ci[bot]")
	bot, err := l.sim.As("ci[bot]").Comment(full, 1, "@errand retry")
	check(t, err)
	person, err := l.sim.As("bob").Comment(full, 1, "@errand retry")
	check(t, err)
	f := l.cfg.GitHub.(*forge.Forge)
	check(t, errOf(f.CreateComment(t.Context(), forge.Repo{Installation: l.inst, Owner: "acme", Name: "slug", ID: l.repo.ID}, 1, "Ours.")))
	want := []string{"swept-issue_comment-" + fmt.Sprint(bot.ID), "swept-issue_comment-" + fmt.Sprint(person.ID)}
	if diff := cmp.Diff(want, l.stored()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// TestReactionsAreTrackedPerInstallation: a 👍 in one installation is reported once, whatever happens in other installations.
func TestReactionsAreTrackedPerInstallation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLife(t)
		l.waits(task, 7, 100, "IC_1")
		l.waits(state.TaskKey{Repo: 80, Issue: 3}, 8, 200, "IC_9")
		now := time.Now()
		g := &fakeReactions{by: map[string][]forge.Reaction{"IC_1": {{Node: "R_1", By: ada, At: now}}, "IC_9": {{Node: "R_9", By: state.Person{ID: 6, Login: "eve"}, At: now}}}}
		polling(t, l, g)
		advance(5 * time.Minute)
		got := map[state.TaskKey]int{}
		for _, e := range l.reported(event.KindThumb) {
			got[e.Task]++
		}
		if diff := cmp.Diff(map[state.TaskKey]int{task: 1, {Repo: 80, Issue: 3}: 1}, got); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
	})
}
