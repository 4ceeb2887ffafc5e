package ci_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/forge/green"
)

// The checks of a branch are those of its newest commit, of every check the newest run.
func TestCommitChecks(t *testing.T) {
	t.Parallel()
	pages, hidden := map[string][]m{}, map[string]bool{}
	g := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		what := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		switch {
		case !strings.HasSuffix(r.URL.EscapedPath(), "/commits/release%2F1.x/"+what):
			t.Errorf("%s was requested", r.URL)
		case hidden[what]:
			forgetest.Answer(w, http.StatusForbidden, m{"message": "Resource not accessible by integration"})
		case r.URL.Query().Get("page") == "1" && len(pages[what]) > 1:
			w.Header().Set("Link", fmt.Sprintf(`<%s?page=2>; rel="next"`, r.URL.Path))
			forgetest.Answer(w, http.StatusOK, m{"check_runs": pages[what][:1], "statuses": pages[what][:1]})
		default:
			last := pages[what][max(0, len(pages[what])-1):]
			forgetest.Answer(w, http.StatusOK, m{"check_runs": last, "statuses": last})
		}
	})
	run := func(id, app int, conclusion string) m {
		return m{"id": id, "name": "build", "status": "completed", "conclusion": conclusion, "app": m{"id": app}, "html_url": "https://github.example/1",
			"check_suite": m{"id": 3}, "started_at": "2026-01-02T03:04:05Z", "completed_at": "2026-01-02T03:05:05Z", "output": m{"title": "1 failed"}}
	}
	pages["check-runs"] = []m{run(8, 15368, "failure"), run(7, 15368, "success")}
	pages["status"] = []m{{"context": "ci", "state": "error", "description": "broken", "created_at": "2026-01-02T03:04:05Z"},
		{"context": "lint", "state": "pending", "created_at": "2026-01-02T03:04:05Z"}}
	f := forgetest.New(t, g.URL)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	build := green.Check{ID: 8, Name: "build", App: 15368, Group: "3", State: green.Failure, Result: "failure", Started: at, Changed: at.Add(time.Minute),
		URL: "https://github.example/1", Summary: "1 failed"}
	broken := green.Check{Name: "ci", Status: true, State: green.Failure, Result: "error", Started: at, Changed: at, Summary: "broken"}
	lint := green.Check{Name: "lint", Status: true, State: green.Pending, Result: "pending", Started: at, Changed: at}
	want := func(list ...green.Check) {
		t.Helper()
		got := forgetest.Must(f.CommitChecks(t.Context(), forgetest.Repo(), "release/1.x"))(t)
		if diff := cmp.Diff(list, got, cmp.Transformer("UTC", time.Time.UTC)); diff != "" {
			t.Error(diff)
		}
	}
	want(build, broken, lint)
	hidden["status"] = true
	want(build)
	hidden["check-runs"] = true
	want([]green.Check{}...)
	if _, err := forgetest.New(t, forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) {
		forgetest.Answer(w, http.StatusUnprocessableEntity, m{"message": "No commit found for SHA: gone"})
	}).URL).CommitChecks(t.Context(), forgetest.Repo(), "gone"); err == nil || !strings.HasPrefix(err.Error(), "list checks of gone in octo/app: ") {
		t.Errorf("got %v", err)
	}
}
