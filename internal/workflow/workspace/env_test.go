package workspace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// More specific values take precedence, and the operator's over the repository's.
func TestWithVariables(t *testing.T) {
	t.Parallel()
	o := &Opener{TestsFor: func(repo string) Tests {
		return Tests{Env: map[string]string{"TEST": "of " + repo, "BOTH": "test"}}
	}}
	task := &state.Task{TaskIssue: state.TaskIssue{Repo: state.Repo{Owner: "acme", Name: "app"}, Settings: settings.Settings{Env: map[string]string{"REPO": "r", "AGENT": "repo", "BOTH": "repo"}}}}
	env := map[string]string{"AGENT": "agent", "BOTH": "agent"}
	got := o.withVariables(task, env)
	if diff := cmp.Diff(map[string]string{"REPO": "r", "AGENT": "agent", "BOTH": "test", "TEST": "of acme/app"}, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if len(env) != 2 || len(task.Settings.Env) != 3 {
		t.Error("the input was changed")
	}
	if got := (&Opener{}).withVariables(&state.Task{}, nil); got == nil || len(got) != 0 {
		t.Errorf("without variables: got %v", got)
	}
}
