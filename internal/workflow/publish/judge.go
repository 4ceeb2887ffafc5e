package publish

import (
	"context"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// judge stores a changeset and returns the push gate's decision about it.
func (s *Steps) judge(ctx context.Context, w *step.Attempt, cs *changeset.Changeset, merged string) (event.Event, error) {
	run := w.Job.Run
	if cs.Empty() {
		return event.Event{Run: run, Payload: event.Collected{}}, nil
	}
	ref, err := s.Files.SaveChangeset(run, cs)
	if err != nil {
		return event.Event{}, fmt.Errorf("store the changeset: %w", err)
	}
	policy, err := s.gatePolicy(ctx, w, cs, merged)
	if err != nil {
		return event.Event{}, err
	}
	out := event.Collected{Work: &state.Work{
		Run: run, Ref: ref, Base: cs.Base, LocalHead: cs.Head(), LocalTree: cs.Commits[len(cs.Commits)-1].Tree,
		Commits: len(cs.Commits), Paths: cs.Stats().Paths(), Notes: cs.Notes,
	}}
	for _, r := range pushgate.Judge(cs, policy) {
		out.Refusals = append(out.Refusals, state.Refusal(r))
	}
	if note := undoneNote(w.Task.Branch.Base, pushgate.Undone(cs, policy)); note != "" {
		out.Work.Notes = append(slices.Clone(out.Work.Notes), note)
	}
	return event.Event{Run: run, Payload: out}, nil
}

// gatePolicy returns the push gate's policy for a changeset: both sides' settings, the base tree and large files.
func (s *Steps) gatePolicy(ctx context.Context, w *step.Attempt, cs *changeset.Changeset, merged string) (pushgate.Policy, error) {
	p := pushgate.Policy{Scanner: s.Scanner, Operator: pushgate.Settings(s.Gate), LentFiles: s.Workspaces.Tests(w.Task).Files}
	own, err := s.currentGate(ctx, w)
	if err != nil {
		return p, err
	}
	p.Repository = pushgate.Settings(own)
	base, err := s.GitHub.Tree(ctx, w.Repo, cs.Base)
	if err != nil {
		return p, fmt.Errorf("read the base tree: %w", err)
	}
	p.Base = gateTree(base)
	p.Content = func(blob string) ([]byte, bool) {
		data, err := s.GitHub.Blob(ctx, w.Repo, blob)
		return data, err == nil
	}
	if p.LFSObjects, err = s.largeFiles(ctx, w, cs); err != nil {
		return p, err
	}
	// The only merge that is allowed brings in the commit that ReadChangeset read from the base branch: the parents
	// in the changeset are the VM's claims.
	if merged == "" || secondParent(cs) != merged {
		return p, nil
	}
	m, err := s.mergeOf(ctx, w, cs.Base, merged)
	if err != nil {
		return p, err
	}
	p.Merge = pushgate.Merge{Commit: merged, Tree: gateTree(m.theirs), Fork: gateTree(m.fork)}
	return p, nil
}

func gateTree(entries map[string]forge.TreeEntry) pushgate.Tree {
	tree := make(pushgate.Tree, len(entries))
	for path, e := range entries {
		tree[path] = pushgate.Entry{Mode: changeset.Mode(e.Mode), Blob: e.ID}
	}
	return tree
}

// currentGate returns the repository's settings of the gate. They are read again if the gate has refused something of
// the task: a refusal suggests changes of the repository's file.
func (s *Steps) currentGate(ctx context.Context, w *step.Attempt) (settings.Gate, error) {
	t := w.Task
	if len(t.GateRefusals) == 0 {
		return step.RepositoryGate(t.Settings), nil
	}
	out, err := s.GitHub.IssueSnapshot(ctx, w.Repo, t.Key.Issue, step.ConfigFile)
	if err != nil {
		return settings.Gate{}, fmt.Errorf("read the repository's push-gate settings: %w", err)
	}
	repoSettings, waiting := s.Settings.Of(t.Repo.FullName(), out)
	if waiting != nil && waiting.Kind == state.WaitConfig {
		return step.RepositoryGate(t.Settings), nil // a file that cannot be used changes nothing
	}
	return step.RepositoryGate(repoSettings), nil
}
