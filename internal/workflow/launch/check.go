package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/gates"
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
func (s *Steps) checkSpec(ctx context.Context, w *step.Attempt, ws *workspace.Workspace, l *state.Launch) (runner.Spec, error) {
	t := w.Task
	if l.RestoreFailure != "" {
		return runner.Spec{}, &step.Problem{Reason: "The work to be checked is lost: " + l.RestoreFailure + ".", Hint: "Comment `retry` to do the work again.", Class: state.ClassVM, Permanent: true}
	}
	// The operator's environment for agents, such as a build cache, serves the checks as well.
	in := work.CheckSpec{Dir: ws.Place.Dir, Head: t.Work.LocalHead, Base: workspace.Base(t), Files: s.Workspaces.TestFiles(t),
		Env: ws.CheckEnv(s.Agent.Env), Gates: gates.Gates(t.Settings.Gates)}
	if in.Gates.Enabled() {
		var err error
		if in.GateBase, err = s.gateBase(ctx, w); err != nil {
			return runner.Spec{}, err
		}
	}
	limit := time.Minute
	for _, c := range t.Settings.Check {
		in.Commands = append(in.Commands, work.CheckCommand{Name: nameOf(c), Command: c.Run, Timeout: c.Timeout, BeforePR: c.BeforePR})
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

// gateBase returns the commit to which gates compare: the newest one of the base that the published branch has. It is not
// read from the VM, which could name its own head.
func (s *Steps) gateBase(ctx context.Context, w *step.Attempt) (string, error) {
	t := w.Task
	if t.Branch.Head == "" {
		return workspace.Base(t), nil
	}
	cmp, err := s.GitHub.ChangedSince(ctx, w.Repo, t.Branch.Base, workspace.Root(t))
	if err != nil {
		return "", fmt.Errorf("find the newest commit of the base in the branch: %w", err)
	}
	return cmp.MergeBase, nil
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
