package simgithub_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/webtest"
)

// actionsWorld is a world whose App has a level of access to Actions, with a clock that the test moves, and a failed job.
func actionsWorld(t *testing.T, level string) (w *world, job *github.CheckRun, later func(time.Duration)) {
	t.Helper()
	var moved atomic.Int64
	at := time.Now()
	w = newWorld(t, func(c *simgithub.Config) {
		c.Permissions["actions"], c.Now = level, func() time.Time { return at.Add(time.Duration(moved.Load())) }
	})
	p := w.Pull("octo", "fix", map[string]string{"a": "a"}, "")
	check(t, w.Sim.Job(repo, p.Pull.HeadSHA, simgithub.Job{
		Name: "build", Conclusion: "failure", Step: "Run make", Log: "FAIL: TestX\n", Rerun: "success",
		Annotations: []simgithub.Annotation{{Path: "calc.go", Line: 4, Level: "warning", Message: "a - b"}},
	}))
	w.Settled()
	return w, w.runs("all")[0], func(d time.Duration) { moved.Add(int64(d)) }
}

// runs lists the check runs of the branch fix.
func (w *world) runs(filter string) []*github.CheckRun {
	w.T.Helper()
	list, _, err := w.bot.Checks.ListCheckRunsForRef(w.T.Context(), "octo", "calc", "fix", &github.ListCheckRunsOptions{Filter: &filter})
	check(w.T, err)
	return list.CheckRuns
}

// A job has steps, annotations, and a log at an address that is valid for a minute and needs no token.
func TestJobOfActions(t *testing.T) {
	t.Parallel()
	w, run, later := actionsWorld(t, "read")
	job, _, err := w.bot.Actions.GetWorkflowJobByID(t.Context(), "octo", "calc", run.GetID())
	check(t, err)
	var steps []string
	for _, s := range job.Steps {
		steps = append(steps, s.GetName()+": "+s.GetConclusion())
	}
	want := []string{"Set up job: success", "Run actions/checkout@v4: success", "Run make: failure", "Post Run actions/checkout@v4: success", "Complete job: success"}
	if diff := cmp.Diff(want, steps); diff != "" || job.GetRunAttempt() != 1 || job.GetConclusion() != "failure" {
		t.Errorf("got attempt %d, %s\n%s", job.GetRunAttempt(), job.GetConclusion(), diff)
	}
	annotations, _, err := w.bot.Checks.ListCheckRunAnnotations(t.Context(), "octo", "calc", run.GetID(), nil)
	check(t, err)
	if len(annotations) != 2 || run.GetOutput().GetAnnotationsCount() != 2 || annotations[0].GetMessage() != "a - b" || annotations[1].GetPath() != ".github" {
		t.Errorf("got annotations %v", annotations)
	}
	at, _, err := w.bot.Actions.GetWorkflowJobLogs(t.Context(), "octo", "calc", run.GetID(), 0)
	check(t, err)
	get := func(token string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, at.String(), nil)
		check(t, err)
		if token != "" {
			req.Header.Set("Authorization", token)
		}
		resp, err := webtest.Client().Do(req)
		check(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		check(t, err)
		return resp.StatusCode, string(body)
	}
	status, text := get("")
	if lines := strings.Split(text, "\n"); status != 200 || len(lines) != 9 || !strings.HasSuffix(lines[5], "Z FAIL: TestX") || !strings.HasPrefix(text, "\ufeff2") {
		t.Errorf("got %d: %q", status, text)
	}
	if status, _ := get("token x"); status != 400 {
		t.Errorf("with a token: got %d", status)
	}
	later(61 * time.Second)
	if status, _ := get(""); status != 403 {
		t.Errorf("after a minute: got %d", status)
	}
}

// A re-run is a newer check run in the same suite and the next attempt; GitHub refuses it without the permission, while the workflow runs,
// and after a month.
func TestRerunOfAJob(t *testing.T) {
	t.Parallel()
	w, run, later := actionsWorld(t, "write")
	sha := run.GetHeadSHA()
	rerun := func(id int64, want string) {
		t.Helper()
		_, err := w.bot.Actions.RerunJobByID(t.Context(), "octo", "calc", id)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.Contains(got, want) {
			t.Errorf("got %s, want %q", got, want)
		}
	}
	check(t, w.Sim.CheckRun(repo, sha, "lint", "", ""))
	rerun(run.GetID(), "403 The workflow run containing this job is already running")
	check(t, w.Sim.CheckRun(repo, sha, "lint", "success", ""))
	w.Settled()
	rerun(run.GetID(), "")
	if diff := cmp.Diff([]string{"check_run.created", "check_run.completed", "check_suite.completed"}, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	all := w.runs("all")
	again := all[len(all)-1]
	if again.GetName() != "build" || again.GetConclusion() != "success" || again.GetID() <= run.GetID() || again.GetCheckSuite().GetID() != run.GetCheckSuite().GetID() ||
		again.GetApp().GetSlug() != "github-actions" || len(w.runs("latest")) != 2 {
		t.Errorf("got %v", again)
	}
	job, _, err := w.bot.Actions.GetWorkflowJobByID(t.Context(), "octo", "calc", again.GetID())
	check(t, err)
	if job.GetRunAttempt() != 2 {
		t.Errorf("got attempt %d", job.GetRunAttempt())
	}
	inSuite, _, err := w.bot.Checks.ListCheckRunsCheckSuite(t.Context(), "octo", "calc", run.GetCheckSuite().GetID(), &github.ListCheckRunsOptions{CheckName: run.Name, Filter: github.String("all")})
	check(t, err)
	if inSuite.GetTotal() != 2 {
		t.Errorf("got %d runs of the job", inSuite.GetTotal())
	}

	check(t, w.Sim.Job(repo, sha, simgithub.Job{Workflow: "slow.yml", Name: "slow", Conclusion: "failure"}))
	all = w.runs("all")
	slow := all[len(all)-1]
	rerun(slow.GetID(), "")
	rerun(slow.GetID(), "already running") // until its end is reported
	check(t, w.Sim.Job(repo, sha, simgithub.Job{Workflow: "slow.yml", Name: "slow", Conclusion: "failure"}))
	if n := len(w.runs("all")); n != len(all)+1 {
		t.Errorf("got %d runs after %d: the report did not end the re-run", n, len(all))
	}
	later(31 * 24 * time.Hour)
	rerun(slow.GetID(), "created over a month ago")
	rerun(4711, "404 Not Found")
}

// Other Apps' checks are no jobs, and without the permission no job is repeated.
func TestRerunIsRefused(t *testing.T) {
	t.Parallel()
	w, run, _ := actionsWorld(t, "read")
	check(t, w.Sim.Job(repo, run.GetHeadSHA(), simgithub.Job{Name: "quality", Conclusion: "failure", Foreign: true}))
	other := w.runs("latest")[1]
	if other.GetApp().GetSlug() != "code-quality" {
		t.Errorf("got App %s", other.GetApp().GetSlug())
	}
	if _, _, err := w.bot.Actions.GetWorkflowJobByID(t.Context(), "octo", "calc", other.GetID()); status(err) != 404 {
		t.Errorf("another App's job: got %v", err)
	}
	if _, err := w.bot.Actions.RerunJobByID(t.Context(), "octo", "calc", run.GetID()); err == nil || !strings.Contains(err.Error(), "403 Resource not accessible by integration") {
		t.Errorf("without actions: write: got %v", err)
	}
}
