package purge

import (
	"testing"

	"github.com/errand-bot/errand/state"
)

// TestIsAbout: a webhook is about a task if it names its issue, one of its pull requests or its branch, in its repository.
func TestIsAbout(t *testing.T) {
	t.Parallel()
	task := &state.Task{Key: state.TaskKey{Repo: 7, Issue: 1}}
	task.PR, task.Branch.Name = &state.PR{Number: 5}, "errand/1-x"
	task.Replaced = []state.ReplacedPR{{Number: 4}, {Branch: "errand/1-y"}}
	for name, c := range map[string]struct {
		payload string
		about   bool
	}{
		"the issue":                {`{"repository": {"id": 7}, "issue": {"number": 1}}`, true},
		"its pull request":         {`{"repository": {"id": 7}, "pull_request": {"number": 5}}`, true},
		"a comment on it":          {`{"repository": {"id": 7}, "issue": {"number": 5}}`, true},
		"an earlier pull request":  {`{"repository": {"id": 7}, "pull_request": {"number": 4}}`, true},
		"its branch":               {`{"repository": {"id": 7}, "ref": "refs/heads/errand/1-x"}`, true},
		"a check of its branch":    {`{"repository": {"id": 7}, "check_run": {"check_suite": {"head_branch": "errand/1-x"}}}`, true},
		"a suite of its PR":        {`{"repository": {"id": 7}, "check_suite": {"pull_requests": [{"number": 9}, {"number": 5}]}}`, true},
		"another repository":       {`{"repository": {"id": 77}, "issue": {"number": 1}}`, false},
		"another issue":            {`{"repository": {"id": 7}, "issue": {"number": 12}}`, false},
		"another branch":           {`{"repository": {"id": 7}, "ref": "refs/heads/errand/1-xy"}`, false},
		"a check of nothing":       {`{"repository": {"id": 7}, "check_run": {"check_suite": {"head_branch": ""}, "pull_requests": [{}]}}`, false},
		"the repository itself":    {`{"repository": {"id": 7}}`, false},
		"something else than JSON": {`secret`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := isAbout(task, []byte(c.payload)); got != c.about {
				t.Errorf("got %t, want %t", got, c.about)
			}
		})
	}
	if isAbout(&state.Task{Key: task.Key}, []byte(`{"repository": {"id": 7}, "ref": ""}`)) {
		t.Error("a webhook without a branch is about a task without one")
	}
}
