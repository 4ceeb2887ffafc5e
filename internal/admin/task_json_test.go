package admin_test

import (
	"context"
	"flag"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// actionsOf is an audit log with these actions.
type actionsOf []store.Action

func (actionsOf) Add(context.Context, store.Action) error { return nil }

func (l actionsOf) List(_ context.Context, n int, keep func(store.Action) bool) (list []store.Action, _ error) {
	for _, a := range l {
		if len(list) < n && keep(a) {
			list = append(list, a)
		}
	}
	return list, nil
}

// listed serves the sample with a suspended task of another repository and an audit log.
func listed(t *testing.T) string {
	t.Helper()
	m := sample()
	other := sampleTask(9, "Texts overlap \x1b[2J\u009b2J\u202e", state.PhaseAwaitingPlanApproval)
	other.Repo.Name, other.Key.Repo = "web", 8
	other.Suspended = &state.SuspendedWork{Mode: settings.SleepArchive, At: noon.Add(-time.Hour)}
	other.Plans = []state.Plan{{Kind: state.PlanThorough, Revision: 1, Hash: "dddd4444", Comment: 5, Made: noon}}
	m.tasks = append(m.tasks, other)
	return serve(t, admin.Config{
		Store: m, Transcripts: noFiles{}, Open: true, Version: "v1.2.3", Now: func() time.Time { return noon },
		Act: func(context.Context, *state.Task, state.Person, state.Order, store.Action) (store.Action, error) {
			return store.Action{}, nil
		},
		Audit: actionsOf{
			{ID: "a", At: noon.Add(-time.Minute), By: "token", From: "127.0.0.1:5", Task: m.tasks[0].Key, Subject: "acme/shop#1", Command: "stop", Refused: true, Result: "no agent is running"},
			{ID: "b", At: noon.Add(-time.Hour), By: "token", Task: m.tasks[1].Key, Subject: "acme/shop#2", Command: "cancel", Result: "canceled"},
		},
	})
}

// TestTaskPageNamesChecks: the page of a task says why its checks are as they are, and which fail without being required.
func TestTaskPageNamesChecks(t *testing.T) {
	t.Parallel()
	_, body := fetch(t, listed(t)+"/tasks/acme/shop/4", nil)
	for _, want := range []string{"checks success", "all 2 required checks succeeded", "not required, but failing: lint"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestTaskJSON: task.json and status.json have the documented form, which the command line reads from the same golden files.
func TestTaskJSON(t *testing.T) {
	t.Parallel()
	url := listed(t)
	for file, path := range map[string]string{"task.json": "/tasks/acme/shop/1/task.json", "status.json": "/status.json"} {
		status, body := fetch(t, url+path, nil)
		if status != http.StatusOK {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
		if *update {
			if err := os.WriteFile("testdata/"+file, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(golden), body); diff != "" {
			t.Errorf("%s (-want +got; -update rewrites it):\n%s", file, diff)
		}
	}
	for _, path := range []string{"/tasks/acme/shop/99/task.json", "/tasks/acme/shop/0/task.json", "/tasks/acme/none/1/task.json"} {
		if status, _ := fetch(t, url+path, nil); status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

// TestStatusOfRepository: with ?repo=, status.json has the open and the ended tasks of one repository only.
func TestStatusOfRepository(t *testing.T) {
	t.Parallel()
	url := listed(t)
	for query, want := range map[string]struct{ tasks, open string }{
		"":                        {"acme/shop acme/web", `"open": 7,`},
		"repo=acme/web":           {"acme/web", `"open": 1,`},
		"repo=ACME/Shop&limit=2":  {"acme/shop", `"open": 6,`},
		"repo=acme/we&offset=0":   {"", `"open": 0,`},
		"repo=acme/web&offset=99": {"", `"open": 1,`},
	} {
		_, body := fetch(t, url+"/status.json?"+query, nil)
		var got []string
		for _, repo := range []string{"acme/shop", "acme/web"} {
			if strings.Contains(body, `"repo": "`+repo+`"`) {
				got = append(got, repo)
			}
		}
		if strings.Join(got, " ") != want.tasks || !strings.Contains(body, want.open) {
			t.Errorf("%q: tasks of %q, want %q and %s in:\n%s", query, got, want.tasks, want.open, body)
		}
	}
}

// TestAwaitedIsNamed: every phase that waits for people names what it waits for, and no other one does.
func TestAwaitedIsNamed(t *testing.T) {
	t.Parallel()
	m := &memory{}
	for i, phase := range state.Phases() {
		m.tasks = append(m.tasks, sampleTask(i+1, string(phase), phase))
	}
	queued := sampleTask(90, "in the queue", state.PhaseImplementing)
	queued.Waiting = &state.Waiting{Kind: state.WaitVM, Place: 2}
	m.tasks = append(m.tasks, queued)
	url := serve(t, admin.Config{Store: m, Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon }})
	for _, task := range m.tasks {
		_, body := fetch(t, url+taskPage(task)+"/task.json", nil)
		people := !task.Ended() && !task.Phase.Working() && task.Phase != state.PhaseInterrupted && !task.Phase.AwaitsApproval() || task.Waiting != nil
		if got := strings.Contains(body, `"awaits": "`); got != people {
			t.Errorf("%s: awaits is present: %v, want %v", task.Phase, got, people)
		}
		if task.Waiting != nil && !strings.Contains(body, `"awaits": "a VM (2nd in the queue)"`) {
			t.Errorf("the place in the queue is missing:\n%s", body)
		}
	}
}
