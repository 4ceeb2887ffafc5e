package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	m := admin.NewMetrics("v1.2.3")
	w := newWorld(t, func(c *admin.Config) { c.Metrics = m })
	run := w.launch(1)
	w.write(run.ID).say(runlog.Event{})
	w.advance(90 * time.Second)
	m.Delivery("issues", true)
	m.Delivery("issues", false)
	m.Delivery("made \"up\"\n", true)
	m.Call("create comment", "", 201, 120*time.Millisecond)
	m.Call("create comment", "temporary", 502, 3*time.Second)
	m.Remaining("rest", 5, 4711)
	m.Polled(1)
	m.Polled(3)
	m.Job("launch", 2*time.Second, nil)
	m.Job("launch", time.Second, errors.New("no"))
	_, body := w.get("/metrics")
	wantLines(t, body,
		`errand_build_info{version="v1.2.3"} 1`,
		`errand_deliveries_total{event="issues",seen="new"} 1`,
		`errand_deliveries_total{event="issues",seen="before"} 1`,
		`errand_deliveries_total{event="other",seen="new"} 1`,
		`errand_github_call_duration_seconds_count{call="create comment",class="ok",status="201"} 1`,
		`errand_github_call_duration_seconds_count{call="create comment",class="temporary",status="502"} 1`,
		`errand_github_remaining{api="rest",installation="5"} 4711`,
		`errand_polls_total 2`,
		`errand_poll_cost_points_total 4`,
		`errand_step_duration_seconds_count{kind="launch",outcome="error"} 1`,
		`errand_step_duration_seconds_bucket{kind="launch",outcome="ok",le="5"} 1`,
		`errand_tasks{phase="preliminary_planning"} 1`,
		`errand_tasks{phase="done"} 0`,
		`errand_runs{kind="preliminary_plan",status="active"} 1`,
		`errand_vms{ended="",kind="bwrap"} 1`,
		`errand_deliveries_poison 0`,
		`errand_job_oldest_due_seconds{lane="talk"} 90`,
	)
	want(t, body, `errand_jobs{kind="react",lane="talk",state="queued"} `, "go_goroutines", "# HELP errand_tasks ")
}

// TestMetricsOfEndedTasks: the usage of ended tasks remains counted.
func TestMetricsOfEndedTasks(t *testing.T) {
	t.Parallel()
	url := serve(t, admin.Config{Store: sample(), Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon }})
	_, body := fetch(t, url+"/metrics", nil)
	wantLines(t, body, `errand_tokens{direction="input"} 648000`, `errand_cost_dollars 11.16`, `errand_jobs{kind="release",lane="work",state="queued"} 1`,
		`errand_job_oldest_due_seconds{lane="work"} 0`, `errand_vms{ended="retry_fresh",kind="plain"} 1`, `errand_deliveries_poison 1`)
}

// TestCostsAreShownEverywhere: the cost of all tasks is on the board, in its JSON and in the metrics.
func TestCostsAreShownEverywhere(t *testing.T) {
	t.Parallel()
	url := serve(t, admin.Config{Store: sample(), Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon },
		Spent: func(context.Context) (day, month state.Money, err error) {
			return state.Money{MicroUSD: 1_500_000, CapMicroUSD: 50_000_000}, state.Money{MicroUSD: 20_000_000}, nil
		}})
	_, body := fetch(t, url+"/status", map[string]string{"Accept": "text/html"})
	want(t, body, "Spent today, of $50.00", "$1.50", "This month<", "$20.00")
	wantNot(t, body, "Spent on open tasks")
	_, body = fetch(t, url+"/status.json", nil)
	want(t, body, `"today": 1.5`, `"day_cap": 50`, `"month": 20`)
	_, body = fetch(t, url+"/metrics", nil)
	wantLines(t, body, `errand_spent_dollars{period="day"} 1.5`, `errand_spent_dollars{period="month"} 20`, `errand_spent_cap_dollars{period="day"} 50`)
}

// TestMetricsWithoutStore: the process's counters are served even if the store cannot be read.
func TestMetricsWithoutStore(t *testing.T) {
	t.Parallel()
	store := sample()
	store.broken = true
	m := admin.NewMetrics("v1")
	m.Polled(1)
	url := serve(t, admin.Config{Store: store, Transcripts: noFiles{}, Metrics: m, Open: true, Now: func() time.Time { return noon }})
	_, body := fetch(t, url+"/metrics", nil)
	wantLines(t, body, "errand_polls_total 1")
	wantNot(t, body, "errand_tasks{")
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	have := map[string]bool{}
	for line := range strings.Lines(text) {
		have[strings.TrimSpace(line)] = true
	}
	for _, line := range lines {
		if !have[line] {
			t.Errorf("missing line %s", line)
		}
	}
	if t.Failed() {
		t.Logf("the text:\n%s", text)
	}
}
