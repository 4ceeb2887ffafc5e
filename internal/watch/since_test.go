package watch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// passes lets time pass, for GitHub and for errand.
func (l *sweepWorld) passes(d time.Duration) { l.ahead.Add(int64(d)) }

// restart starts another process with the same store.
func (l *sweepWorld) restart(change ...func(*watch.SweeperConfig)) {
	l.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }
	for _, f := range change {
		f(&l.cfg)
	}
	l.sweeper = watch.NewSweeper(l.cfg)
}

// unstarted lists the issues with an old trigger.
func (l *sweepWorld) unstarted() (list []string) {
	for _, u := range l.sweeper.Unstarted() {
		list = append(list, strings.Join([]string{u.Repo, string(rune('0' + u.Number)), string(u.Via), u.Title}, " "))
	}
	return list
}

// eventReads returns how often the events of issues were read.
func (l *sweepWorld) eventReads() (n int) {
	calls, _ := l.sim.Calls()
	for _, c := range calls {
		if strings.HasSuffix(c.Route, "/issues/{number}/events") {
			n += c.Count
		}
	}
	return n
}

// TestOldTriggersAreListed: a label or an assignee that an issue had before errand watched the repository for it starts nothing.
func TestOldTriggersAreListed(t *testing.T) {
	t.Parallel()
	const listed = "acme/slug 1 label It breaks"
	label := func(l *sweepWorld) { check(l.t, l.sim.As("bob").AddLabels(full, 1, "errand")); l.passes(time.Minute) }
	for name, c := range map[string]struct {
		before, after func(l *sweepWorld) // the first sweep
		want          []string            // events
		list          []string
	}{
		"labeled before the start": {before: label, list: []string{listed}},
		"assigned before the start": {
			before: func(l *sweepWorld) { check(l.t, l.ada.Assign(full, 1, "errand-bot")); l.passes(time.Minute) },
			list:   []string{"acme/slug 1 assigned It breaks"},
		},
		"both": {
			before: func(l *sweepWorld) { label(l); check(l.t, l.ada.Assign(full, 1, "errand-bot")); l.passes(time.Minute) },
			list:   []string{"acme/slug 1 assigned It breaks"},
		},
		"labeled later": {after: label, want: []string{"triggered label by bob"}},
		"set anew": {
			before: label,
			after: func(l *sweepWorld) {
				check(l.t, l.ada.RemoveLabel(full, 1, "errand"))
				check(l.t, l.ada.AddLabels(full, 1, "errand"))
			},
			want: []string{"triggered label by ada"},
		},
		"commented later": {
			before: label,
			after:  func(l *sweepWorld) { check(l.t, errOf(l.ada.Comment(full, 1, "Hm."))) },
			list:   []string{listed},
		},
		"closed":    {before: func(l *sweepWorld) { label(l); check(l.t, l.ada.Close(full, 1, "")) }},
		"taken off": {before: label, after: func(l *sweepWorld) { check(l.t, l.ada.RemoveLabel(full, 1, "errand")) }},
		"after a restart": {
			before: label,
			after:  func(l *sweepWorld) { l.passes(time.Hour); l.restart() },
			list:   []string{listed},
		},
		"labeled before a restart": {
			after: func(l *sweepWorld) { label(l); l.passes(time.Hour); l.restart() },
			want:  []string{"triggered label by bob"},
		},
		"another label is configured": {
			after: func(l *sweepWorld) {
				check(l.t, l.ada.AddLabels(full, 1, "bot"))
				l.passes(time.Minute)
				l.restart(func(c *watch.SweeperConfig) { c.Label = "bot" })
			},
			list: []string{listed},
		},
		"the App was removed meanwhile": {
			after: func(l *sweepWorld) {
				l.sim.Uninstall("acme")
				checkSwept(l.t, l.sweeper.SweepState(l.t.Context()))
				label(l)
				check(l.t, errOf(l.sim.Install(full)))
				l.passes(time.Minute)
			},
			list: []string{listed},
		},
		"reopened later": {
			before: func(l *sweepWorld) { label(l); check(l.t, l.ada.Close(full, 1, "")) },
			after:  func(l *sweepWorld) { check(l.t, l.ada.Reopen(full, 1)) },
			list:   []string{listed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			if c.before != nil {
				c.before(l)
			}
			l.restart()
			if got := l.kinds(); got != nil {
				t.Fatalf("reported %v in the first sweep", got)
			}
			if c.after != nil {
				c.after(l)
			}
			if diff := cmp.Diff(c.want, l.kinds()); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.list, l.unstarted()); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		})
	}
}

// refusingStore refuses to store some facts.
type refusingStore struct {
	*storeWorld
	left int
}

func (r *refusingStore) SetFact(ctx context.Context, name string, data []byte) error {
	if r.left--; r.left >= 0 {
		return errors.New("no space left on device")
	}
	return r.storeWorld.SetFact(ctx, name, data)
}

// TestSweepContinuesWithoutStoredTimes: while the times cannot be stored, sweeps find old and new triggers all the same, and the
// next sweep stores the times of the first.
func TestSweepContinuesWithoutStoredTimes(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue()
	check(t, l.ada.AddLabels(full, 1, "errand"))
	l.passes(time.Minute)
	refusing := &refusingStore{l.storeWorld, 1}
	l.restart(func(c *watch.SweeperConfig) { c.Store = refusing })
	for range 2 {
		checkSwept(t, l.sweeper.SweepState(t.Context()))
		if got := l.unstarted(); len(got) != 1 {
			t.Fatalf("listed %q", got)
		}
	}
	if refusing.left >= 0 {
		t.Fatal("nothing was refused")
	}
	l.passes(time.Minute)
	l.issue()
	check(t, l.sim.As("bob").AddLabels(full, 2, "errand"))
	l.passes(time.Hour)
	l.restart()
	if diff := cmp.Diff([]string{"triggered label by bob"}, l.kinds()); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

// TestRepositoriesOfLaterInstallations: in a repository that errand gets later, older labels start nothing either.
func TestRepositoriesOfLaterInstallations(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.restart()
	checkSwept(t, l.sweeper.SweepState(t.Context()))
	r, err := l.sim.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "zebra", NotInstalled: true, Files: map[string]string{"README.md": "# zebra\n"}, Collaborators: map[string]simgithub.Role{"ada": simgithub.RoleAdmin}})
	check(t, err)
	for range 2 {
		check(t, errOf(l.ada.OpenIssue(r.FullName(), simgithub.NewIssue{Title: "It breaks", Labels: []string{"errand"}})))
	}
	l.passes(time.Minute)
	check(t, errOf(l.sim.Install(r.FullName())))
	if got := l.kinds(); got != nil {
		t.Errorf("reported %v", got)
	}
	if got := l.unstarted(); len(got) != 2 || got[0] != "acme/zebra 1 label It breaks" {
		t.Errorf("listed %v", got)
	}
}

// TestManyOldTriggersAreCheap: the events of an issue are read only if it changed since errand watched the repository, and once
// for each change.
func TestManyOldTriggersAreCheap(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	for range 20 {
		l.issue(func(i *simgithub.NewIssue) { i.Labels = []string{"errand"} })
	}
	l.passes(time.Minute)
	l.restart()
	checkSwept(t, l.sweeper.SweepState(t.Context()))
	if n := l.eventReads(); n != 0 {
		t.Errorf("the first sweep: got %d reads of events, want none", n)
	}
	check(t, errOf(l.ada.Comment(full, 3, "Hm.")))
	for range 3 {
		checkSwept(t, l.sweeper.SweepState(t.Context()))
	}
	if n := l.eventReads(); n != 1 {
		t.Errorf("after a comment: got %d reads of events, want 1", n)
	}
	if n := len(l.sweeper.Unstarted()); n != 20 {
		t.Errorf("listed %d issues, want 20", n)
	}
}

// TestUnreadableIssuesStayListed: a failed sweep keeps the list.
func TestUnreadableIssuesStayListed(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue(func(i *simgithub.NewIssue) { i.Labels = []string{"errand"} })
	l.passes(time.Minute)
	l.restart()
	checkSwept(t, l.sweeper.SweepState(t.Context()))
	check(t, l.sim.Fault(simgithub.Fault{Path: "^/repos/acme/slug/issues$", Status: 410}))
	checkSwept(t, l.sweeper.SweepState(t.Context()))
	if got := l.unstarted(); len(got) != 1 {
		t.Errorf("listed %v, want the issue", got)
	}
}

// TestLostMentionsAreFound: a new issue with a mention whose webhook was lost is stored as that webhook, once. A text that somebody
// else has edited is not.
func TestLostMentionsAreFound(t *testing.T) {
	t.Parallel()
	open := func(login, body string) func(l *sweepWorld) {
		return func(l *sweepWorld) {
			check(l.t, errOf(l.sim.As(login).OpenIssue(full, simgithub.NewIssue{Title: "It breaks", Body: body})))
		}
	}
	edit := func(login, body string) func(l *sweepWorld) {
		return func(l *sweepWorld) { check(l.t, l.sim.As(login).EditIssue(full, 1, simgithub.IssueEdit{Body: &body})) }
	}
	for name, c := range map[string]struct {
		before, after []func(l *sweepWorld)
		want          int
	}{
		"by a writer":            {after: []func(l *sweepWorld){open("bob", "Always.\n\n@errand")}, want: 1},
		"by an outsider":         {after: []func(l *sweepWorld){open("eve", "@errand mend it")}, want: 1}, // the job vet decides
		"none":                   {after: []func(l *sweepWorld){open("bob", "Always.")}},
		"in a quote":             {after: []func(l *sweepWorld){open("bob", "> @errand plan")}},
		"edited by its author":   {after: []func(l *sweepWorld){open("bob", "Always."), edit("bob", "@errand")}, want: 1},
		"edited by another":      {after: []func(l *sweepWorld){open("eve", "@errand"), edit("bob", "@errand plan")}},
		"closed":                 {after: []func(l *sweepWorld){open("bob", "@errand"), func(l *sweepWorld) { check(l.t, l.ada.Close(full, 1, "")) }}},
		"it has a task":          {after: []func(l *sweepWorld){open("bob", "@errand"), func(l *sweepWorld) { l.begun("mention") }}},
		"before errand's start":  {before: []func(l *sweepWorld){open("bob", "@errand")}},
		"edited after the start": {before: []func(l *sweepWorld){open("bob", "@errand")}, after: []func(l *sweepWorld){edit("bob", "@errand plan")}},
		"before a restart": {after: []func(l *sweepWorld){
			func(l *sweepWorld) { checkSwept(l.t, l.sweeper.SweepState(l.t.Context())) }, open("bob", "@errand"), func(l *sweepWorld) { l.passes(time.Hour); l.restart() },
		}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			for _, f := range c.before {
				f(l)
			}
			l.passes(time.Minute)
			l.restart(func(c *watch.SweeperConfig) { c.Slug = "errand" })
			for _, f := range c.after {
				f(l)
			}
			for range 2 {
				checkSwept(t, l.sweeper.SweepState(t.Context()))
				l.passes(15 * time.Minute)
			}
			list, err := l.PendingDeliveries(t.Context(), 10)
			check(t, err)
			if len(list) != c.want || c.want > 0 && (list[0].Event != "issues" || !strings.Contains(string(list[0].Payload), `"opened"`)) {
				t.Errorf("got deliveries %v, want %d", list, c.want)
			}
		})
	}
}

// TestAdopt: an issue with an old trigger starts by the command `errand adopt`, as if the trigger had been set now; otherwise the
// reason is named.
func TestAdopt(t *testing.T) {
	t.Parallel()
	label := func(login string) func(l *sweepWorld) error {
		return func(l *sweepWorld) error { return l.sim.As(login).AddLabels(full, 1, "errand") }
	}
	for name, c := range map[string]struct {
		repo    string
		number  int
		act     func(l *sweepWorld) error
		refused string // part of the reason
	}{
		"labeled":     {act: label("bob")},
		"other case":  {repo: "Acme/Slug", act: label("bob")},
		"assigned":    {act: func(l *sweepWorld) error { return l.ada.Assign(full, 1, "errand-bot") }},
		"by a reader": {act: func(l *sweepWorld) error { return l.sim.As("errand-bot").AddLabels(full, 1, "errand") }, refused: "no write access"},
		"neither":     {act: func(*sweepWorld) error { return nil }, refused: "label or assignee"},
		"taken off": {act: func(l *sweepWorld) error {
			check(l.t, label("bob")(l))
			return l.ada.RemoveLabel(full, 1, "errand")
		}, refused: "label or assignee"},
		"closed": {act: func(l *sweepWorld) error {
			check(l.t, label("bob")(l))
			return l.ada.Close(full, 1, "")
		}, refused: "is closed"},
		"it has a task": {act: func(l *sweepWorld) error { l.begun("mention"); return label("bob")(l) }, refused: "already working"},
		"no such issue": {number: 7, act: label("bob"), refused: "there is no issue acme/slug#7"},
		"elsewhere":     {repo: "acme/zebra", act: label("bob"), refused: "no access to acme/zebra"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			check(t, c.act(l))
			l.passes(time.Hour)
			l.restart()
			checkSwept(t, l.sweeper.SweepState(t.Context()))
			began := len(l.reported(event.KindTriggered))
			repo, number := full, 1
			if c.repo != "" {
				repo = c.repo
			}
			if c.number != 0 {
				number = c.number
			}
			who, err := l.sweeper.Adopt(t.Context(), repo, number)
			events := l.reported(event.KindTriggered)[began:]
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || len(events) != 0 {
					t.Errorf("got %q, error %v and events %v, want the reason %q", who, err, events, c.refused)
				}
				return
			}
			check(t, err)
			if len(events) != 1 || events[0].At.Before(l.cfg.Now().Add(-time.Minute)) || events[0].Issue().Unvouched || !strings.HasPrefix(who, "acme/slug#1, ") {
				t.Errorf("got %q and events %+v, want one trigger of now", who, events)
			}
			jobs, err := l.Jobs(t.Context(), l.key)
			check(t, err)
			if len(jobs) != 1 || jobs[0].Kind != state.JobVet {
				t.Errorf("got jobs %+v, want one that checks the permission", jobs)
			}
		})
	}
}
