package launch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
)

// saveUnknownWork ends the runs on a VM that a store from a backup does not know, and saves their unpublished commits: errand started
// them after the backup, and the run that begins now would disturb them and discard their work. The store knows every later run.
func (s *Steps) saveUnknownWork(ctx context.Context, w *step.Attempt, ws *workspace.Workspace, l *state.Launch) error {
	t, vm := w.Task, ws.VM.Name
	if w.Job.Restored.IsZero() {
		return nil
	}
	ids, err := s.Runner.Runs(ctx, vm)
	if err != nil {
		return fmt.Errorf("list the runs on VM %s: %w", vm, err)
	}
	unknown := unknownRuns(t, ids)
	if len(unknown) == 0 {
		return nil
	}
	const why = "errand was restored from a backup that does not know this run"
	for _, id := range unknown {
		if err := s.Runner.Stop(ctx, vm, id, why); err != nil {
			return fmt.Errorf("end run %s, which the backup does not know: %w", id, err)
		}
	}
	newest := unknown[len(unknown)-1]
	base := workspace.Root(t)
	if base == "" { // the backup was made before the first launch
		if base, err = s.baseHead(ctx, w); err != nil {
			return fmt.Errorf("find the base's newest commit: %w", err)
		}
	}
	cs, err := s.Runner.Collect(ctx, vm, work.CollectSpec{
		Dir: ws.Place.Dir, Base: base, Message: "Work of run " + newest, Leave: s.Workspaces.TestPaths(t),
	})
	switch {
	case err != nil && (w.Job.Try() < 3 || runnerctl.Gone(err)):
		return fmt.Errorf("save the work of run %s, which the backup does not know: %w", newest, err)
	case err != nil:
		return &step.Problem{
			Reason: "The VM has work from before errand was restored from a backup, and it cannot be saved.", Class: state.ClassVM, Permanent: true, Err: err,
			Hint: "Comment `retry fresh` to continue on a new VM without this work. The operator can save it before that.",
		}
	case cs.Empty():
		return nil
	}
	ref, err := s.Files.SaveChangeset(newest+"-saved", cs)
	if err != nil {
		return fmt.Errorf("save the work of run %s, which the backup does not know: %w", newest, err)
	}
	w.Log.Warn().Str("vm", vm).Strs("runs", unknown).Str("changeset", ref).Msg("saved the commits of runs that the backup does not know")
	l.Saved = &state.SavedWork{Run: newest, Ref: ref, At: s.Now(), Reason: why}
	return nil
}

// maxUnknownRuns is the maximum number of unknown runs that are ended on a VM. A task starts about twenty without a person's action.
const maxUnknownRuns = 100

// unknownRuns returns those of the runs on a VM that are newer than all that the task knows, in the order of their numbers. The run that
// is being launched is none of them.
func unknownRuns(t *state.Task, ids []string) (unknown []string) {
	prefix := fmt.Sprintf("%d-%d-", t.Key.Repo, t.Key.Issue)
	known := 0
	for i := range t.Runs {
		known = max(known, t.Runs[i].Seq)
	}
	number := func(id string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(id, prefix))
		if err != nil || id != prefix+strconv.Itoa(n) {
			return 0
		}
		return n
	}
	for _, id := range ids {
		if n := number(id); n > known && n != t.Run.Seq {
			unknown = append(unknown, id)
		}
	}
	slices.SortFunc(unknown, func(a, b string) int { return number(a) - number(b) })
	return unknown[max(0, len(unknown)-maxUnknownRuns):] // nothing confirms what the VM says
}
