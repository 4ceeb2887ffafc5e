package admin_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

func TestTaskOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.launch(1)
	body := w.page("/tasks/acme/shop/1")
	want(t, body, "Prices are rounded twice", "writing the preliminary plan", "Run 1", "Nothing has been written about this run yet.", "vm1", "in use",
		"errand/1-prices", "$0.00 of $10.00", "assigned by @ada", "https://git.example/acme/shop/issues/1", "react", "Queued jobs")
	tr := w.write(run.ID)
	tr.say(runlog.Event{Kind: runlog.KindText, Text: "I <b>look</b>."})
	body = w.page("/tasks/acme/shop/1")
	want(t, body, "I &lt;b&gt;look&lt;/b&gt;.", `data-events="/tasks/acme/shop/1/runs/1/events"`, "Reload the page to see what came since.")
	w.advance(time.Minute)
	w.end(1, run.ID)
	body = w.page("/tasks/acme/shop/1")
	want(t, body, "preliminary plan awaits approval", "Preliminary plan, revision 1", "about to be posted", "1. Round once.", "$0.12", "1200")
	wantNot(t, body, "data-events")
}

func TestTaskInFull(t *testing.T) {
	t.Parallel()
	url := serve(t, admin.Config{Store: sample(), Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon }})
	_, body := fetch(t, url+"/tasks/acme/shop/1", nil)
	want(t, body,
		"cccc3333", "Approved by ada (write) by 👍", "With: keep the API", "superseded", "about $0.80", "2225 more characters", // plans
		"crashed", "exit code 3 &lt;tag&gt;", `href="/tasks/acme/shop/1/runs/2"`, "sonnet", // runs
		"because of &lt;event&gt;", "10 min 00 s so far", // history
		"bubblewrap: own files, own processes, no network", "plain folder: not isolated", "retry fresh", // VMs
		"create comment: 502 &lt;bad gateway&gt;", "claimed", // jobs
		"https://git.example/c/2", "on the pull request", "pull request opened", // comments
		"7-1-2-abcdef", "the run crashed", "1 text", "2 attempts", `value="3"`,
	)
	_, body = fetch(t, url+"/tasks/acme/shop/5", nil)
	want(t, body, "The agent gave up after 30 turns.", "<code>retry turns=60</code>", "(limit)")
	_, body = fetch(t, url+"/tasks/ACME/Shop/7", nil)
	want(t, body, "Wrong time zone in receipts", "merged", "Over.")
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

// TestRenamedRepository: what counts is how a repository is called now.
func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.launch(1)
	w.apply(1, state.Event{Kind: state.EventRenamed, Repo: &state.Repo{ID: 7, Owner: "acme", Name: "store", URL: "https://git.example/acme/store"}})
	w.page("/tasks/acme/store/1")
	if status, _ := w.get("/tasks/acme/shop/1"); status != http.StatusNotFound {
		t.Errorf("under the old name: status %d", status)
	}
	w.apply(1, state.Event{Kind: state.EventIssueClosed, By: writer})
	w.page("/tasks/acme/store/1")
}

// TestHostsThatWereAskedFor: the page says what the VMs wanted to reach, and what came of it. What a VM says
// is text.
func TestHostsThatWereAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *admin.Config) {
		c.Reached = func(task state.TaskKey, n int) ([]egress.Request, int, error) {
			if task != (state.TaskKey{Repo: 7, Issue: 1}) {
				t.Errorf("asked for task %s", task)
			}
			return []egress.Request{
				{At: noon, Method: "CONNECT", Host: "registry.test", Port: "443", Allowed: true, Received: 4711},
				{At: noon, Method: "GET", Host: "<b>evil", Port: "80", Reason: "it is not on the list"},
			}, 5, nil
		}
	})
	w.trigger(1, "Something")
	want(t, w.page("/tasks/acme/shop/1"), "registry.test:443", "4711 bytes", "&lt;b&gt;evil:80", "it is not on the list", "3 older rows")
}
