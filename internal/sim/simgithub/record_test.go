package simgithub_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/record"
)

// recorded returns the records in a folder by kind.
func recorded(t *testing.T, dir string) map[string][]record.Record {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	check(t, err)
	out := map[string][]record.Record{}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		check(t, err)
		var r record.Record
		check(t, json.Unmarshal(raw, &r))
		if r.Kind == "rest" && !strings.Contains(r.Path, "/comments") {
			continue // requests during the set-up of the world
		}
		out[r.Kind] = append(out[r.Kind], r)
	}
	return out
}

func TestOneRecordOfEachShape(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "said")
	w := newWorld(t, func(c *simgithub.Config) { c.Record = dir })
	i := w.Issue("One")
	for range 3 {
		_, _, err := w.bot.Issues.CreateComment(t.Context(), "octo", "calc", i.Number, &github.IssueComment{Body: github.String("Hello.")})
		check(t, err)
	}
	if _, _, err := w.bot.Issues.CreateComment(t.Context(), "octo", "calc", 99, &github.IssueComment{Body: github.String("Hello.")}); err == nil {
		t.Fatal("got no error for a comment on a missing issue")
	}
	for range 2 {
		resp, err := w.bot.Client().Post(w.URL+"/api/graphql", "application/json", strings.NewReader(`{"query":"{viewer{login}}"}`))
		check(t, err)
		check(t, resp.Body.Close())
	}
	w.Settled()

	got := recorded(t, dir)
	if n := len(got["rest"]); n != 2 {
		t.Fatalf("got %d recorded answers about comments, want one of each status: %+v", n, got["rest"])
	}
	for _, r := range got["rest"] {
		if r.Method != http.MethodPost || r.By != "installation" || !strings.Contains(string(r.Request), "Hello.") || len(r.Body) == 0 ||
			r.Header.Get("X-GitHub-Request-Id") == "" || r.Status != http.StatusCreated && r.Status != http.StatusNotFound {
			t.Errorf("got recording %+v", r)
		}
	}
	if n := len(got["graphql"]); n != 1 {
		t.Errorf("got %d recorded answers of GraphQL, want one", n)
	}
	events := map[string]int{}
	for _, r := range got["webhook"] {
		events[r.Event]++
		if r.Header.Get("X-GitHub-Event") != r.Event || len(r.Body) == 0 {
			t.Errorf("got recording %+v", r)
		}
	}
	if events["issue_comment"] != 1 || events["issues"] != 1 {
		t.Errorf("got recorded webhooks %v, want one of issues and one of issue_comment", events)
	}
}
