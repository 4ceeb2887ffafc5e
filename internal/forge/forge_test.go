package forge_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/state"
)

func TestRepoOf(t *testing.T) {
	t.Parallel()
	task := &state.Task{TaskIssue: state.TaskIssue{Installation: 7, Repo: state.Repo{ID: 70, Owner: "octo", Name: "app"}}}
	if got := forge.RepoOf(task); got != forgetest.Repo() {
		t.Errorf("got %+v", got)
	}
	if got := forgetest.New(t, "https://git.example.org").GitURL(forgetest.Repo()); got != "https://git.example.org/octo/app.git" {
		t.Errorf("got %s", got)
	}
}
