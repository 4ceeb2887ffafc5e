package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

func TestActiveTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	body := w.page("/tasks/acme/shop/1")
	want(t, body, "Prices are rounded twice", "writing the preliminary plan", "Run 1", "Nothing has been written about this run yet.", "vm1", "in use",
		"errand/1-prices", "$0.00 of $10.00", "assigned by @ada", "https://git.example/acme/shop/issues/1", "react", "Queued jobs")
	tr := w.write(run.ID)
	tr.say(runlog.Event{Kind: runlog.KindText, Text: "I <b>look</b>."})
	body = w.page("/tasks/acme/shop/1")
	want(t, body, "I &lt;b&gt;look&lt;/b&gt;.", `data-events="/tasks/acme/shop/1/runs/1/events"`, "Reload the page for newer entries.")
	w.advance(time.Minute)
	w.end(1, run.ID)
	body = w.page("/tasks/acme/shop/1")
	want(t, body, "preliminary plan awaits approval", "Preliminary plan, revision 1", "about to be posted", "1. Round once.", "$0.12", "1200")
	wantNot(t, body, "data-events")
}

func TestTaskWithAllFields(t *testing.T) {
	t.Parallel()
	url := serve(t, admin.Config{Store: sample(), Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon }})
	_, body := fetch(t, url+"/tasks/acme/shop/1", nil)
	want(t, body,
		"cccc3333", "Approved by ada (write) by 👍", "Approved by grace (admin) by command", "With: keep the API", "superseded", "about $0.80", "2225 more characters", // plans
		"crashed", "exit code 3 &lt;tag&gt;", `href="/tasks/acme/shop/1/runs/2"`, "sonnet", // runs
		"because of &lt;event&gt;", "10 min 00 s so far", // history
		"bubblewrap: own files, own processes, no network", "plain folder: not isolated", "a new one was requested", // VMs
		"create comment: 502 &lt;bad gateway&gt;", "claimed", // jobs
		"https://git.example/c/2", "on the pull request", "pull request opened", // comments
		"7-1-2-abcdef", "the run crashed", "1 text", "2 attempts", `value="3"`,
		"step done", "Round once &lt;b&gt;", "Old &lt;i&gt;notes&lt;/i&gt;", "They are old.", "#44", // stored by the agent's tools
	)
	wantNot(t, body, "javascript:")
	_, body = fetch(t, url+"/tasks/acme/shop/5", nil)
	want(t, body, "The agent gave up after 30 turns.", "<code>retry turns=60</code>", "(limit)")
	_, body = fetch(t, url+"/tasks/ACME/Shop/7", nil)
	want(t, body, "Wrong time zone in receipts", "merged", "The task has ended.")
}

// TestSuspendedTask: the page of a task without a VM shows the saved work and the cost of its VMs.
func TestSuspendedTask(t *testing.T) {
	t.Parallel()
	m := sample()
	task := m.tasks[0]
	task.VM, task.Run = nil, nil
	task.VMs = []state.VM{{Name: "errand-1", Provider: "hetzner", Kind: "cx43", CreatedAt: noon.Add(-3 * time.Hour), EndedAt: noon.Add(-90 * time.Minute), EndReason: "asleep", Paid: time.Hour, MicroHour: 26_400, Currency: "EUR"}}
	task.Suspended = &state.SuspendedWork{Mode: settings.SleepArchive, Bytes: 1_234_567, At: noon.Add(-90 * time.Minute)}
	url := serve(t, admin.Config{Store: m, Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon }})
	_, body := fetch(t, url+taskPage(task), map[string]string{"Accept": "text/html"})
	want(t, body, "suspended since", "archive of 1.2 MB", "VMs paid for", "in 1 VM, €0.05", "its task was suspended", "2 h 00 min, €0.05")
	_, body = fetch(t, url+"/status", map[string]string{"Accept": "text/html"})
	want(t, body, "<span>suspended</span>")
	_, body = fetch(t, url+"/status.json", nil)
	want(t, body, `"mode": "archive"`)
}

func taskPage(t *state.Task) string {
	return fmt.Sprintf("/tasks/%s/%d", t.Repo.FullName(), t.Key.Issue)
}

func TestNoSuchTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.launch(1)
	for _, path := range []string{
		"/tasks/acme/shop/2", "/tasks/acme/shop/0", "/tasks/acme/shop/x", "/tasks/acme/other/1", "/tasks/acme/shop/1/runs/2",
		"/tasks/acme/shop/1/runs/x", "/tasks/acme/shop/1/runs/7-2-1", "/tasks/acme/shop/1/runs/1/raw", "/tasks/acme/shop/1/runs/1/at/0",
	} {
		if status, _ := w.get(path); status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

// TestRenamedRepository: tasks are found by the current name of the repository.
func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.launch(1)
	w.apply(1, event.Event{Repo: &state.Repo{ID: 7, Owner: "acme", Name: "store", URL: "https://git.example/acme/store"}, Payload: event.Renamed{}})
	w.page("/tasks/acme/store/1")
	if status, _ := w.get("/tasks/acme/shop/1"); status != http.StatusNotFound {
		t.Errorf("under the old name: status %d", status)
	}
	w.apply(1, event.Event{By: writer, Payload: event.IssueClosed{}})
	w.page("/tasks/acme/store/1")
}

// TestRequestedHostsAreShown: the page shows the requests of the VMs to other hosts and their outcome. Text from VMs is
// escaped.
func TestRequestedHostsAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *admin.Config) {
		c.Reached = func(task state.TaskKey, n int) ([]egress.Request, int, error) {
			if task != (state.TaskKey{Repo: 7, Issue: 1}) {
				t.Errorf("asked for task %s", task)
			}
			return []egress.Request{
				{At: noon, Method: "CONNECT", Host: "registry.test", Port: "443", Allowed: true, Received: 4711},
				{At: noon, Method: "GET", Host: "npm.test", Port: "443", Path: "/shop/<i>left", Allowed: true, Received: 12},
				{At: noon, Method: "GET", Host: "<b>evil", Port: "80", Reason: "it is not on the list"},
			}, 5, nil
		}
	})
	w.trigger(1, "Something")
	want(t, w.page("/tasks/acme/shop/1"), "registry.test:443", "4711 bytes", "npm.test:443/shop/&lt;i&gt;left", "&lt;b&gt;evil:80", "it is not on the list", "2 older rows")
}

// TestStepTotals: the page has totals by step, including the active run; summary.json has all details.
func TestStepTotals(t *testing.T) {
	t.Parallel()
	url := serve(t, admin.Config{Store: sample(), Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon }})
	_, body := fetch(t, url+"/tasks/acme/shop/1", map[string]string{"Accept": "text/html"})
	want(t, body, "By step", `<td data-label="Step">Preliminary plan</td><td data-label="Runs">2</td><td data-label="Took">1 min 20 s</td>`,
		`<td data-label="Step">Implementation</td><td data-label="Runs">1</td><td data-label="Took">9 min 40 s</td>`)
	status, body := fetch(t, url+"/tasks/acme/shop/1/summary.json", nil)
	var s state.Summary
	if err := json.Unmarshal([]byte(body), &s); err != nil || status != 200 || s.Task != "acme/shop#1" || s.Iterations != 4 || len(s.Verdicts) == 0 || len(s.Phases) != 8 {
		t.Errorf("status %d, %v: %s", status, err, body)
	}
	if status, _ := fetch(t, url+"/tasks/acme/shop/99/summary.json", nil); status != 404 {
		t.Errorf("unknown task: status %d", status)
	}
}
