package watch_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

const full = "acme/slug"

// sweepWorld is a simulated GitHub with a real client, and a store.
type sweepWorld struct {
	*storeWorld
	sim     *simgithub.Sim
	ada     simgithub.Person
	repo    state.Repo
	key     state.TaskKey // task of issue 1
	inst    int64
	status  atomic.Int64 // response status of errand's webhook
	ahead   atomic.Int64 // how far GitHub's clock is ahead, in nanoseconds
	cfg     watch.SweeperConfig
	sweeper *watch.Sweeper
}

func newSweepWorld(t *testing.T) *sweepWorld {
	t.Helper()
	l := &sweepWorld{storeWorld: newLife(t)}
	now := func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: rsatest.Key(), Now: now})
	check(t, err)
	base, err := sim.Start("127.0.0.1:0")
	check(t, err)
	l.sim, l.ada = sim, sim.As("ada")
	l.status.Store(http.StatusOK)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(l.status.Load())) }))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		check(t, sim.Close())
		hook.Close()
	})
	sim.SetWebhook(hook.URL, "s3cret")
	r, err := sim.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "slug", Files: map[string]string{"README.md": "# slug\n"}, Collaborators: map[string]simgithub.Role{
		"ada": simgithub.RoleAdmin, "bob": simgithub.RoleWrite, "errand-bot": simgithub.RoleTriage,
	}})
	check(t, err)
	l.inst, err = sim.Install(full)
	check(t, err)
	l.repo, l.key = state.Repo{ID: r.ID, Owner: "acme", Name: "slug", DefaultBranch: "main"}, state.TaskKey{Repo: r.ID, Issue: 1}
	app := sim.App()
	f, err := forge.New(forge.Config{
		AppID: app.ID, PrivateKey: app.PEM, WebURL: base, V3APIURL: base + "/api/v3/", V4APIURL: base + "/api/graphql", Transport: transport,
		Backoff: time.Millisecond, Writes: forge.RateLimit{Burst: 1000}, Data: forge.RateLimit{Burst: 1000},
	})
	check(t, err)
	l.cfg = watch.SweeperConfig{
		Store: l.storeWorld, GitHub: f, Inbox: inserter{l.storeWorld}, Log: zerolog.Nop(), Now: time.Now, BotID: app.BotID, BotLogin: app.BotLogin, Assignee: "errand-bot", Label: "errand",
	}
	l.sweeper = watch.NewSweeper(l.cfg)
	l.hooks()
	return l
}

// inserter puts fetched deliveries into the store.
type inserter struct{ *storeWorld }

func (i inserter) Insert(ctx context.Context, guid, event string, payload []byte) error {
	_, err := i.PutDelivery(ctx, store.Delivery{GUID: guid, Event: event, Payload: payload})
	return err
}

// hooks waits until every webhook was sent.
func (l *sweepWorld) hooks() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	check(l.t, l.sim.WaitHooks(ctx))
}

func (l *sweepWorld) issue(change ...func(*simgithub.NewIssue)) *simgithub.Issue {
	l.t.Helper()
	in := simgithub.NewIssue{Title: "It breaks", Body: "Always."}
	for _, f := range change {
		f(&in)
	}
	i, err := l.ada.OpenIssue(full, in)
	check(l.t, err)
	return i
}

// begun triggers the task of issue 1 as its webhook would have.
func (l *sweepWorld) begun(via state.TriggerVia) *state.Task {
	l.t.Helper()
	return l.happen(event.Event{
		Task:         l.key,
		By:           ada,
		Permission:   state.PermissionWrite,
		Via:          via,
		At:           time.Now(),
		Installation: l.inst,
		Repo:         &l.repo,
		Payload:      event.Triggered{Issue: &state.Issue{Node: "I_1", Title: "It breaks", Body: "Always.", Author: ada}},
	})
}

// kinds sweeps and lists the reported events.
func (l *sweepWorld) kinds() (list []string) {
	l.t.Helper()
	checkSwept(l.t, l.sweeper.SweepState(l.t.Context()))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		list = append(list, string(e.Kind())+" "+string(e.Via)+" by "+e.By.Login)
	}
	l.events = nil
	return list
}

func TestLostWebhookIsFetchedOnce(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue()
	l.hooks()
	l.status.Store(http.StatusInternalServerError)
	check(t, errOf(l.ada.Comment(full, 1, "lost")))
	l.hooks()
	l.status.Store(http.StatusOK)
	check(t, errOf(l.ada.Comment(full, 1, "came through")))
	l.hooks()
	for range 3 {
		check(t, l.sweeper.SweepDeliveries(t.Context()))
	}
	list, err := l.PendingDeliveries(t.Context(), 10)
	check(t, err)
	var failed delivery.Delivery
	for _, d := range l.sim.Deliveries() {
		if d.StatusCode == http.StatusInternalServerError {
			failed = d
		}
	}
	if len(list) != 1 || list[0].GUID != failed.GUID || list[0].Event != "issue_comment" {
		t.Fatalf("got %d deliveries, want only %s", len(list), failed.GUID)
	}
	if diff := cmp.Diff(string(failed.Payload), string(list[0].Payload)); diff != "" {
		t.Errorf("got another payload (-sent +fetched):\n%s", diff)
	}
	check(t, l.SpendDelivery(t.Context(), failed.GUID)) // it was processed and its tombstone remains
	check(t, l.sweeper.SweepDeliveries(t.Context()))
	if list, err := l.PendingDeliveries(t.Context(), 10); len(list) != 0 || err != nil {
		t.Errorf("second sweep: got %d deliveries, error %v", len(list), err)
	}
}

func TestRedeliveredWebhookIsNotFetched(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.status.Store(http.StatusInternalServerError)
	l.issue()
	l.hooks()
	l.status.Store(http.StatusOK)
	for _, d := range l.sim.Deliveries() {
		if d.StatusCode == http.StatusInternalServerError {
			l.sim.Redeliver(d.ID)
		}
	}
	l.hooks()
	check(t, l.sweeper.SweepDeliveries(t.Context()))
	if list, err := l.PendingDeliveries(t.Context(), 10); len(list) != 0 || err != nil {
		t.Errorf("got %d deliveries, error %v", len(list), err)
	}
}

func errOf[T any](_ T, err error) error { return err }

func TestIssuesWithoutTaskAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(l *sweepWorld) error
		want []string
	}{
		"assigned": {func(l *sweepWorld) error { return l.sim.As("bob").Assign(full, 1, "errand-bot") }, []string{"triggered assigned by bob"}},
		"labeled":  {func(l *sweepWorld) error { return l.sim.As("bob").AddLabels(full, 1, "errand") }, []string{"triggered label by bob"}},
		"neither":  {func(l *sweepWorld) error { return l.ada.Assign(full, 1, "bob") }, nil},
		"closed": {func(l *sweepWorld) error {
			if err := l.ada.Assign(full, 1, "errand-bot"); err != nil {
				return err
			}
			return l.ada.Close(full, 1, "")
		}, nil},
		"taken back": {func(l *sweepWorld) error {
			if err := l.ada.Assign(full, 1, "errand-bot"); err != nil {
				return err
			}
			return l.ada.Unassign(full, 1, "errand-bot")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			check(t, c.act(l))
			if diff := cmp.Diff(c.want, l.kinds()); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFoundTriggerRequiresPermission: a found trigger requires the permission of the person who assigned, as the
// webhook would.
func TestFoundTriggerRequiresPermission(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	i := l.issue()
	check(t, l.sim.As("bob").Assign(full, 1, "errand-bot"))
	checkSwept(t, l.sweeper.SweepState(t.Context()))
	checkSwept(t, l.sweeper.SweepState(t.Context()))
	events := l.reported(event.KindTriggered)
	if len(events) != 2 || events[0].ID != events[1].ID || events[0].ID == "" {
		t.Fatalf("got IDs %v of the same fact, want one", events)
	}
	e := events[0]
	bob, _ := l.sim.User("bob")
	if e.By.ID != bob.ID || e.Issue() == nil || e.Issue().Body != "Always." || e.Issue().Node != i.NodeID || e.Repo.FullName() != full || e.Repo.DefaultBranch != "main" || e.Installation != l.inst || e.At.IsZero() {
		t.Errorf("got event %+v, issue %+v, repository %+v", e, e.Issue(), e.Repo)
	}
	jobs, err := l.Jobs(t.Context(), l.key)
	check(t, err)
	if len(jobs) != 1 || jobs[0].Kind != state.JobVet {
		t.Errorf("got jobs %+v, want one that checks bob's permission", jobs)
	}
}

func TestTasksAreComparedWithGitHub(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		via  state.TriggerVia
		act  func(l *sweepWorld) error
		want []string
	}{
		"as it was":       {"assigned", func(*sweepWorld) error { return nil }, nil},
		"mentioned":       {"mention", func(l *sweepWorld) error { return l.ada.Unassign(full, 1, "errand-bot") }, nil},
		"unassigned":      {"assigned", func(l *sweepWorld) error { return l.ada.Unassign(full, 1, "errand-bot") }, []string{"untriggered assigned by "}},
		"unlabeled":       {"label", func(l *sweepWorld) error { return l.ada.RemoveLabel(full, 1, "errand") }, []string{"untriggered label by "}},
		"closed":          {"assigned", func(l *sweepWorld) error { return l.ada.Close(full, 1, "") }, []string{"issue_closed  by "}},
		"another removed": {"assigned", func(l *sweepWorld) error { return l.ada.RemoveLabel(full, 1, "errand") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			check(t, l.ada.Assign(full, 1, "errand-bot"))
			check(t, l.ada.AddLabels(full, 1, "errand"))
			l.begun(c.via)
			check(t, c.act(l))
			if diff := cmp.Diff(c.want, l.kinds()); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPullRequestsAreComparedWithGitHub(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(l *sweepWorld, n int) error
		want state.Phase
	}{
		"open":   {func(*sweepWorld, int) error { return nil }, state.PhasePROpen},
		"merged": {func(l *sweepWorld, n int) error { return l.ada.Merge(full, n, simgithub.Merge{}) }, state.PhaseDone},
		"closed": {func(l *sweepWorld, n int) error { return l.ada.Close(full, n, "") }, state.PhasePRClosed},
		"reopened": {func(l *sweepWorld, n int) error {
			return errors.Join(l.ada.Close(full, n, ""), errOf(l.kinds(), nil), l.ada.Reopen(full, n))
		}, state.PhasePROpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			check(t, errOf(l.sim.As("bob").PushCommit(full, simgithub.Commit{Branch: "errand/1", Message: "Mend it", Files: map[string]string{"a": "b\n"}})))
			p, err := l.sim.As("bob").OpenPull(full, simgithub.NewPull{Title: "Mend it", Head: "errand/1", Body: "Fixes #1"})
			check(t, err)
			l.begun("mention")
			repoSettings := settings.Default()
			repoSettings.Plan = settings.PlanNone
			l.happen(event.Event{Task: l.key, Payload: event.Started{Start: event.Start{Settings: repoSettings, Visible: true, Branch: state.Branch{Name: "errand/1", Base: "main"}}}})
			opened := l.happen(event.Event{Task: l.key, Payload: event.PROpened{PR: state.PR{Number: p.Number, State: "open"}}})
			if opened.Phase != state.PhasePROpen {
				t.Fatalf("got phase %s, want %s", opened.Phase, state.PhasePROpen)
			}
			check(t, c.act(l, p.Number))
			l.kinds()
			got, err := l.Task(t.Context(), l.key)
			check(t, err)
			if got.Phase != c.want {
				t.Errorf("phase %s, want %s", got.Phase, c.want)
			}
			if n := len(l.kinds()); n != 0 {
				t.Errorf("got %d events about a task that was just compared, want none", n)
			}
		})
	}
}

// TestOldTriggerDoesNotRestartTask: a cancellation is later than the label that was set before it.
func TestOldTriggerDoesNotRestartTask(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue()
	l.happen(event.Event{
		Task:         l.key,
		By:           ada,
		Permission:   state.PermissionWrite,
		Via:          "mention",
		At:           time.Now().Add(-time.Hour),
		Installation: l.inst,
		Repo:         &l.repo,
		Payload:      event.Triggered{Issue: &state.Issue{Node: "I_1", Title: "It breaks", Body: "Always.", Author: ada}},
	})
	check(t, l.ada.AddLabels(full, 1, "errand")) // a second trigger of a live task
	l.happen(event.Event{Task: l.key, By: ada, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 1, Mention: true}, Orders: []state.Order{{Verb: state.VerbCancel}}}})
	if got := l.kinds(); got != nil {
		t.Errorf("reported %v", got)
	}
}

func TestSweepsRunPeriodically(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue()
	check(t, l.ada.Assign(full, 1, "errand-bot"))
	stop := watching(t, l.sweeper.Run)
	defer stop()
	deadline := time.Now().Add(time.Minute)
	wake := l.Wake(t.Context())
	for len(l.reported(event.KindTriggered)) == 0 && time.Now().Before(deadline) {
		select {
		case <-wake:
		case <-time.After(100 * time.Millisecond):
		}
	}
	if n := len(l.reported(event.KindTriggered)); n != 1 {
		t.Errorf("got %d triggers at the start, want 1", n)
	}
}

// TestUnreadableDeliveriesAffectNoOther: a delivery or repository that always fails does not affect the others.
func TestUnreadableDeliveriesAffectNoOther(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	r, err := l.sim.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "zebra", Files: map[string]string{"README.md": "# zebra\n"}, Collaborators: map[string]simgithub.Role{
		"ada": simgithub.RoleAdmin, "errand-bot": simgithub.RoleTriage,
	}})
	check(t, err)
	check(t, errOf(l.sim.Install("acme/zebra")))
	check(t, errOf(l.ada.OpenIssue("acme/zebra", simgithub.NewIssue{Title: "It breaks"})))
	check(t, l.ada.Assign("acme/zebra", 1, "errand-bot"))
	l.hooks()
	l.status.Store(http.StatusInternalServerError)
	for range 3 {
		check(t, errOf(l.ada.Comment("acme/zebra", 1, "lost")))
	}
	l.hooks()
	check(t, l.sim.Fault(simgithub.Fault{Path: "^/repos/acme/slug/", Status: http.StatusGone}))
	check(t, l.sim.Fault(simgithub.Fault{Path: "^/app/hook/deliveries/[0-9]+$", Status: http.StatusNotFound, Count: 1}))
	checkSwept(t, l.sweeper.SweepState(t.Context()))
	if events := l.reported(event.KindTriggered); len(events) != 1 || events[0].Task.Repo != r.ID {
		t.Errorf("got %d triggers in the other repository", len(events))
	}
	if err := l.sweeper.SweepDeliveries(t.Context()); err == nil {
		t.Error("got no error for an unreadable delivery, want one")
	}
	if list, err := l.PendingDeliveries(t.Context(), 10); len(list) != 2 || err != nil {
		t.Errorf("got %d of the other two deliveries, error %v", len(list), err)
	}
}
