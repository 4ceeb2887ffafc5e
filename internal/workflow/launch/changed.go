package launch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// lastAgentRun is the last run in which an agent was at work, nil if there was none.
func lastAgentRun(t *state.Task) *state.Run {
	for i := len(t.Runs) - 1; i >= 0; i-- {
		if r := &t.Runs[i]; r.Kind != state.RunCheck && !r.Started.IsZero() {
			return r
		}
	}
	return nil
}

// changed lists, a line each, the differences since the agent's last run: another VM or path, commits by
// people, a newer base, a failed attempt. It is empty for a task's first run.
func (s *Steps) changed(ctx context.Context, w *step.Attempt, ws *workspace.Workspace, l *state.Launch) []string {
	t, last := w.Task, lastAgentRun(w.Task)
	if last == nil {
		return nil
	}
	lines := otherVM(t, last, l, ws.Place)
	if l.VMHead != "" && t.Branch.VMHead != "" && l.VMHead != t.Branch.VMHead {
		lines = append(lines, s.movedOn(ctx, w, t.Branch.VMHead, l.VMHead))
		if mayBeOwn(w) {
			lines = append(lines, "errand lost its data, and was restored from a backup that does not know your last work. "+
				"Check which requests the commits on the branch address already.")
		}
	}
	if text := pushedMeanwhile(t, l); text != "" {
		lines = append(lines, text)
	}
	if text := s.baseMoved(ctx, w, last); text != "" {
		lines = append(lines, text)
	}
	if last.Adapter != "" && l.Adapter != "" && last.Adapter != l.Adapter {
		lines = append(lines, "Another agent ("+last.Adapter+") made the last run: you do not remember its work, but the checkout contains it.")
	}
	if t.Run.Repeat != "" {
		lines = append(lines, "The last attempt failed: "+t.Run.Repeat)
	}
	return lines
}

// otherVM describes the effects of a change of VMs on the files and processes of the agent.
func otherVM(t *state.Task, last *state.Run, l *state.Launch, place runnerctl.Place) []string {
	if last.VM == "" || last.VM == l.VM.Name {
		return nil
	}
	if !l.VM.Contains(last.VM) {
		if l.RestoreFailure != "" {
			return []string{"This VM is not the one of the last run, whose work could not be restored: " + l.RestoreFailure + ". Unpublished work and files outside the checkout are lost."}
		}
		return []string{"This VM is not the one of the last run: files outside the checkout are gone."}
	}
	a := t.Suspended
	if a == nil || a.Mode == settings.SleepSnapshot {
		return []string{"This VM is not the one of the last run, but has the same files. Processes of the last run are gone."}
	}
	text := "This VM is not the one of the last run. The checkout was restored with all changes in it; processes, ignored files and files outside the checkout are gone."
	if len(t.Settings.Keep) > 0 {
		text += " Also restored: " + strings.Join(t.Settings.Keep, ", ") + "."
	}
	lines := []string{text}
	if a.Dir != "" && a.Dir != place.Dir {
		lines = append(lines, fmt.Sprintf("The checkout is now at %s; it was at %s.", place.Dir, a.Dir))
	}
	if len(a.Omitted) > 0 {
		lines = append(lines, "Not restored: "+strings.Join(a.Omitted, "; ")+".")
	}
	return lines
}

// movedOn describes the published commit on which the checkout is based now, and how many commits are new, as far as
// GitHub tells. Both commits are published ones.
func (s *Steps) movedOn(ctx context.Context, w *step.Attempt, before, now string) string {
	where := "the base"
	if w.Task.Branch.Head != "" {
		where = "the branch"
	}
	text := fmt.Sprintf("The checkout is now based on %s instead of %s: ", now, before)
	cmp, err := s.GitHub.ChangedSince(ctx, w.Repo, before, now)
	if err != nil || cmp.BehindBy > 0 || cmp.AheadBy == 0 { // rewritten
		return text + "it contains commits by people or a newer base."
	}
	var files []string
	for _, f := range cmp.Files[:min(len(cmp.Files), 10)] {
		files = append(files, f.Path)
	}
	if more := len(cmp.Files) - len(files); more > 0 {
		files = append(files, fmt.Sprintf("and %d more", more))
	}
	who := "people"
	if mayBeOwn(w) {
		who = "you or people"
	}
	commits := step.Count(cmp.AheadBy, "commit")
	if b := w.Task.Branch; b.Updated == now {
		return text + fmt.Sprintf("GitHub merged the base %s into the branch, %s, which changed %s.", b.Base, commits, strings.Join(files, ", "))
	}
	return text + fmt.Sprintf("%s pushed %s to %s, which changed %s.", who, commits, where, strings.Join(files, ", "))
}

// mayBeOwn reports whether unknown commits on the branch may be errand's own, from after the backup from which it was restored.
func mayBeOwn(w *step.Attempt) bool { return !w.Job.Restored.IsZero() && w.Task.Branch.Head != "" }

// pushedMeanwhile reports that people pushed commits on which the unpublished work is not based yet. It is empty if
// nobody did, or if the agent is asked to resolve a conflict with them.
func pushedMeanwhile(t *state.Task, l *state.Launch) string {
	head := t.Branch.Head
	conflict := func(f state.Feedback) bool { return f.Kind == state.FeedbackConflict && f.Base == "" }
	if l.Root != "" || l.VMHead == "" || head == "" || l.VMHead == head || slices.ContainsFunc(t.Feedback, conflict) {
		return ""
	}
	return fmt.Sprintf("Somebody pushed to the branch, which is now at %s. The checkout does not contain those commits: errand rebases yours onto them after the run.", head)
}

// soonAfter is how long after a run the base is not compared again: it rarely changes, and a merge shows conflicts
// anyway.
const soonAfter = time.Hour

// baseMoved describes the commits of the base that the published branch does not have. It is empty if there are none or
// GitHub does not answer.
func (s *Steps) baseMoved(ctx context.Context, w *step.Attempt, last *state.Run) string {
	b := w.Task.Branch
	if b.Head == "" || s.Now().Sub(last.Ended) < soonAfter { // without a head it begins at the newest anyway
		return ""
	}
	cmp, err := s.GitHub.ChangedSince(ctx, w.Repo, b.Head, b.Base)
	if err != nil {
		w.Log.Warn().Err(err).Msg("failed to compare the branch with its base")
		return ""
	}
	if cmp.AheadBy == 0 {
		return ""
	}
	return fmt.Sprintf("The base %s has moved: it has %s that the branch does not have.", b.Base, step.Count(cmp.AheadBy, "commit"))
}
