package launch

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// checkSpec returns the command that runs the repository's checks on the changeset's head, detached like an
// agent's run.
func (s *Steps) checkSpec(t *state.Task, ws *workspace.Workspace, l *state.Launch) (runner.Spec, error) {
	if l.RestoreFailure != "" {
		return runner.Spec{}, &step.Problem{Reason: "The work to be checked is lost: " + l.RestoreFailure + ".", Hint: "Comment `retry` to do the work again.", Class: state.ClassVM, Permanent: true}
	}
	// The operator's environment for agents, such as a build cache, serves the checks as well.
	in := work.CheckSpec{Dir: ws.Place.Dir, Head: t.Work.LocalHead, Base: workspace.Base(t), Files: s.Workspaces.TestFiles(t),
		Env: ws.CheckEnv(s.Agent.Env)}
	limit := time.Minute
	for _, c := range t.Settings.Check {
		in.Commands = append(in.Commands, work.CheckCommand{Name: nameOf(c), Command: c.Run, Timeout: c.Timeout})
		limit += max(c.Timeout, 10*time.Minute)
	}
	stdin, err := jsonOf(in)
	if err != nil {
		return runner.Spec{}, err
	}
	head := runlog.Header{Run: t.Run.ID, Task: taskName(t), Step: string(t.Run.Kind), Started: s.Now()}
	if err := s.Files.BeginTranscript(t.Run.ID, head); err != nil {
		return runner.Spec{}, err
	}
	return runner.Spec{ID: t.Run.ID, Argv: []string{"{runner}", "check"}, Dir: ws.Place.Dir, Stdin: stdin, Duration: limit, Isolation: "subreaper"}, nil
}

func nameOf(c settings.Command) string {
	if c.Name != "" {
		return c.Name
	}
	return c.Run
}

// jsonOf encodes a value that cannot fail to encode but by a defect.
func jsonOf(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode %T: %w", v, err)
	}
	return string(data), nil
}
