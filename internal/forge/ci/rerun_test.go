package ci_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/forge/green"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// A job is run again once, however often errand asks; other checks and refusals can be told apart.
func TestRerunCheck(t *testing.T) {
	t.Parallel()
	refused := func(code int, message string) *fakeCI { return &fakeCI{rerun: m{"code": code, "message": message}} }
	const notAccessible = "GitHub does not allow it: Resource not accessible by integration."
	const never, broken = "Unable to retry this workflow run because it was created over a month ago", "GitHub failed with an internal error (500)."
	tests := map[string]struct {
		*fakeCI
		check    green.Check
		posts    int
		want     error // or only its reason
		reason   string
		class    forge.Class
		withheld bool // a permission is missing
	}{
		"a failed job":          {check: failed(), posts: 1}, // the fake lists a newer run of another one
		"it runs":               {fakeCI: &fakeCI{status: "queued"}, check: failed()},
		"it has begun again":    {fakeCI: &fakeCI{newer: []int{8}}, check: failed()},
		"an older run of it":    {fakeCI: &fakeCI{newer: []int{5}}, check: failed(), posts: 1},
		"a commit status":       {check: green.Check{Name: "ci", Status: true}, want: forge.ErrCannotRerun, reason: "GitHub cannot repeat commit statuses.", class: forge.ClassPermanent},
		"no ID":                 {check: green.Check{Name: "build"}, want: forge.ErrCannotRerun, reason: "GitHub does not name the check's ID.", class: forge.ClassPermanent},
		"another App's":         {fakeCI: &fakeCI{app: "quality"}, check: failed(), want: forge.ErrCannotRerun, reason: "GitHub can repeat jobs of GitHub Actions, but no checks of other Apps.", class: forge.ClassPermanent},
		"a deleted check":       {fakeCI: &fakeCI{refused: map[string]int{"/check-runs/7": 404}}, check: failed(), want: forge.ErrCannotRerun, reason: "GitHub does not have the check any more.", class: forge.ClassPermanent},
		"a deleted job":         {fakeCI: refused(404, "Not Found"), check: failed(), posts: 1, want: forge.ErrCannotRerun, reason: "GitHub does not have the job any more.", class: forge.ClassPermanent},
		"too old":               {fakeCI: refused(403, never), check: failed(), posts: 1, want: forge.ErrCannotRerun, reason: "GitHub does not run it again: " + never + ".", class: forge.ClassPermanent},
		"other jobs still run":  {fakeCI: refused(403, "The workflow run containing this job is already running"), check: failed(), posts: 1, want: forge.ErrStillRunning, reason: "Another job of the workflow is still running.", class: forge.ClassTemporary},
		"no permission":         {fakeCI: refused(403, "Resource not accessible by integration"), check: failed(), posts: 1, class: forge.ClassPermanent, withheld: true, reason: notAccessible},
		"GitHub fails":          {fakeCI: refused(502, "Server Error"), check: failed(), posts: 1, class: forge.ClassUnknown, reason: "GitHub failed with an internal error (502)."},
		"GitHub fails to read":  {fakeCI: &fakeCI{refused: map[string]int{"/check-runs/7": 500}}, check: failed(), class: forge.ClassTemporary, reason: broken},
		"the runs are unknown":  {fakeCI: &fakeCI{refused: map[string]int{"/70/check-runs": 500}}, check: failed(), class: forge.ClassTemporary, reason: broken},
		"checks cannot be read": {fakeCI: &fakeCI{refused: map[string]int{"/check-runs/7": 403}}, check: failed(), class: forge.ClassPermanent, withheld: true, reason: notAccessible},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := tt.fakeCI
			if f == nil {
				f = &fakeCI{}
			}
			gh := f.start(t)
			err := gh.RerunCheck(t.Context(), forgetest.Repo(), tt.check)
			if tt.withheld && err != nil { // at first the token may only be older than the permission
				err = gh.RerunCheck(t.Context(), forgetest.Repo(), tt.check)
			}
			f.mu.Lock()
			posts := f.posted
			f.mu.Unlock()
			if tt.withheld {
				posts = min(posts, tt.posts)
			}
			class, _ := forge.Classify(err)
			reason, _ := forge.Explain(err)
			if tt.reason == "" {
				if err != nil {
					t.Fatal(err)
				}
				class, reason = "", ""
			}
			if class != tt.class || reason != tt.reason || posts != tt.posts || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %s %q after %d re-runs: %v", class, reason, posts, err)
			}
			if forge.NotGranted(err) != tt.withheld || errors.Is(err, forge.ErrCannotRerun) != errors.Is(tt.want, forge.ErrCannotRerun) {
				t.Errorf("mistaken for another error: %v", err)
			}
		})
	}
}

// All pages of the runs of a suite are searched for a newer one.
func TestRerunOnALaterPage(t *testing.T) {
	t.Parallel()
	g := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		run := (&fakeCI{}).run(7)
		switch {
		case strings.HasSuffix(r.URL.Path, "/check-runs/7"):
			forgetest.Answer(w, http.StatusOK, run)
		case r.URL.Query().Get("page") == "3":
			forgetest.Answer(w, http.StatusOK, m{"check_runs": []m{run}})
		case r.URL.Query().Get("page") == "2":
			run["id"] = 8
			w.Header().Set("Link", fmt.Sprintf(`<%s?page=3>; rel="next"`, r.URL.Path))
			forgetest.Answer(w, http.StatusOK, m{"check_runs": []m{run}})
		case r.Method == http.MethodGet && r.URL.Query().Get("filter") == "all" && r.URL.Query().Get("check_name") == "build":
			w.Header().Set("Link", fmt.Sprintf(`<%s?page=2>; rel="next"`, r.URL.Path))
			forgetest.Answer(w, http.StatusOK, m{"check_runs": []m{run}})
		default:
			t.Errorf("%s %s was requested", r.Method, r.URL)
		}
	})
	if err := forgetest.New(t, g.URL).RerunCheck(t.Context(), forgetest.Repo(), failed()); err != nil {
		t.Error(err)
	}
}

// Against the simulator: a failed job is explained, run again once, and refused without the permission.
func TestSimulatedJob(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	sha := forgetest.Must(w.As("wendy").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "fix/a", Message: "Fix", Files: map[string]string{"a": "a"}}))(t)
	report := func(j simgithub.Job) {
		t.Helper()
		if err := w.Job(forgetest.FullName, sha, j); err != nil {
			t.Fatal(err)
		}
	}
	report(simgithub.Job{Name: "build", Conclusion: "failure", Step: "Run make", Log: "\x1b[31mFAIL\x1b[0m: TestX\n", Annotations: []simgithub.Annotation{{Path: "a", Line: 1, Level: "warning", Message: "odd"}}})
	report(simgithub.Job{Name: "quality", Foreign: true, Conclusion: "failure", Summary: "3 issues"})
	if err := w.Status(forgetest.FullName, sha, "ci/old", "error", "broken"); err != nil {
		t.Fatal(err)
	}
	list := forgetest.Must(w.Forge.CommitChecks(t.Context(), w.Repo, "fix/a"))(t)
	if len(list) != 3 || list[0].Name != "build" || list[1].Name != "ci/old" || list[2].Name != "quality" {
		t.Fatalf("got %+v", list)
	}
	causes := []green.Cause{
		{Step: "Run make", Log: "##[group]Run make\n##[endgroup]\nFAIL: TestX\n##[error]Process completed with exit code 1.",
			Annotations: []green.Annotation{{Level: "failure", Message: "Process completed with exit code 1."}, {Path: "a", Line: 1, Level: "warning", Message: "odd"}}},
		{Title: "broken"}, {Title: "quality", Summary: "3 issues"},
	}
	for i, c := range list {
		got := forgetest.Must(w.Forge.FailedCheck(t.Context(), w.Repo, c, true))(t)
		causes[i].Check, causes[i].URL = c, c.URL
		if diff := cmp.Diff(causes[i], got); diff != "" {
			t.Error(diff)
		}
	}
	if err := w.Forge.RerunCheck(t.Context(), w.Repo, list[0]); !forge.NotGranted(err) {
		t.Errorf("without the permission: got %v", err)
	}
	more := w.App().Permissions
	more["actions"] = "write"
	w.GrantPermissions("octo", more)
	again := w.Another(t)
	for range 3 {
		if err := again.RerunCheck(t.Context(), w.Repo, list[0]); err != nil {
			t.Error(err)
		}
	}
	if list := forgetest.Must(again.CommitChecks(t.Context(), w.Repo, sha))(t); len(list) != 3 || list[0].State != green.Pending {
		t.Errorf("got %+v", list)
	}
	report(simgithub.Job{Name: "build", Conclusion: "success"})
	if err := again.RerunCheck(t.Context(), w.Repo, list[0]); err != nil {
		t.Error(err)
	}
	if list := forgetest.Must(again.CommitChecks(t.Context(), w.Repo, sha))(t); list[0].State != green.Success || len(list) != 3 {
		t.Errorf("got %+v", list)
	}
}
