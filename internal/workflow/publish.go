package workflow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/state"
)

// collect reads the changeset from the VM, stores it and has the push gate judge it.
func (s *Steps) collect(ctx context.Context, w *unit) (state.Event, error) {
	if e, woke, err := s.awake(ctx, w); woke || err != nil {
		return e, err
	}
	cs, err := s.readChangeset(ctx, w, workRoot(w.task))
	if r, ok := pushgate.Unreadable(err, s.Scanner); ok {
		w.log.Warn().Str("detail", r.Detail).Msg("refuse a changeset that cannot be read")
		return refusedUnread(w.job.Run, r), nil
	}
	if err != nil {
		return state.Event{}, lostWork(fmt.Errorf("collect the changeset: %w", err))
	}
	return s.judge(ctx, w, cs)
}

// refusedUnread is the refusal of a changeset of which nothing can be kept.
func refusedUnread(run string, r pushgate.Refusal) state.Event {
	return state.Event{Kind: state.EventCollected, Run: run, Work: &state.Work{Run: run},
		Refusals: []state.Refusal{{Rule: r.Rule, Path: r.Path, Detail: r.Detail, Remedy: r.Remedy}}}
}

// lostWork tells people what it means if the VM of unpublished work is gone.
func lostWork(err error) error {
	if !runnerctl.Gone(err) {
		return err
	}
	return &Problem{Reason: "The VM with the work is gone.", Hint: "Comment `retry` to do the work again.", Class: state.ClassVM, Permanent: true, Err: err}
}

// readChangeset reads what the agent's checkout has beyond root, or beyond the published head if the
// agent built on what people pushed meanwhile.
func (s *Steps) readChangeset(ctx context.Context, w *unit, root string) (*changeset.Changeset, error) {
	t := w.task
	if t.VM == nil {
		return nil, &Problem{Reason: "The VM with the work is gone.", Hint: "Comment `retry` to do the work again.", Class: "vm", Permanent: true}
	}
	place, err := s.Runner.Place(ctx, t.VM.Name)
	if err != nil {
		return nil, err
	}
	c := work.CollectSpec{Dir: place.Dir, Base: root, Message: s.commitMessage(t), Leave: s.lentPaths(t)}
	if head := t.Branch.Head; head != root {
		c.Newer = head
	}
	if t.Settings.MergeCommits {
		head, err := s.GitHub.Head(ctx, w.repo, t.Branch.Base)
		if err != nil {
			return nil, err
		}
		c.AllowMerge, w.merges = []string{head}, head
	}
	cs, err := s.Runner.Collect(ctx, t.VM.Name, c)
	if err != nil {
		return nil, err
	}
	for i := range cs.Commits {
		cs.Commits[i].Message = s.published(t, cs.Commits[i].Message)
	}
	return cs, nil
}

// homeOf is where a task's commits belong.
func homeOf(t *state.Task) pushgate.Home {
	return pushgate.Home{Owner: t.Repo.Owner, Name: t.Repo.Name, Issue: t.Key.Issue}
}

// workRoot is the commit that both sides know: the one that the VM's checkout was put on. The
// published head may be newer, if somebody pushed meanwhile.
func workRoot(t *state.Task) string {
	switch {
	case t.Branch.Root != "":
		return t.Branch.Root
	case t.Branch.Head != "":
		return t.Branch.Head
	}
	return t.Branch.BaseSHA
}

// judge stores a changeset and says what the push gate thinks of it.
func (s *Steps) judge(ctx context.Context, w *unit, cs *changeset.Changeset) (state.Event, error) {
	run := w.job.Run
	if cs.Empty() {
		return state.Event{Kind: state.EventCollected, Run: run}, nil
	}
	ref, err := s.Files.SaveChangeset(run, cs)
	if err != nil {
		return state.Event{}, fmt.Errorf("store the changeset: %w", err)
	}
	policy, err := s.gatePolicy(ctx, w, cs)
	if err != nil {
		return state.Event{}, err
	}
	e := state.Event{Kind: state.EventCollected, Run: run, Work: &state.Work{
		Run: run, Ref: ref, Base: cs.Base, LocalHead: cs.Head(), LocalTree: cs.Commits[len(cs.Commits)-1].Tree,
		Commits: len(cs.Commits), Paths: cs.Stats().Paths(), Notes: cs.Notes,
	}}
	for _, r := range pushgate.Judge(cs, policy) {
		e.Refusals = append(e.Refusals, state.Refusal{Rule: r.Rule, Path: r.Path, Detail: r.Detail, Remedy: r.Remedy})
	}
	if note := undoneNote(w.task.Branch.Base, pushgate.Undone(cs, policy)); note != "" {
		e.Work.Notes = append(slices.Clone(e.Work.Notes), note)
	}
	return e, nil
}

// gatePolicy is what the repository's settings and its base tree mean for the push gate.
func (s *Steps) gatePolicy(ctx context.Context, w *unit, cs *changeset.Changeset) (pushgate.Policy, error) {
	p := pushgate.Policy{Scanner: s.Scanner, Operator: pushgate.Settings(s.Gate), Lent: s.tests(w.task).Files}
	own, err := s.currentGate(ctx, w)
	if err != nil {
		return p, err
	}
	p.Repository = pushgate.Settings(own)
	base, err := s.GitHub.Tree(ctx, w.repo, cs.Base)
	if err != nil {
		return p, fmt.Errorf("read the base tree: %w", err)
	}
	p.Base = gateTree(base)
	p.Content = func(blob string) ([]byte, bool) {
		data, err := s.GitHub.Blob(ctx, w.repo, blob)
		return data, err == nil
	}
	if p.LFSObjects, err = s.largeFiles(ctx, w, cs); err != nil {
		return p, err
	}
	// The only merge that is allowed brings in a commit that readChangeset read from the base branch: what
	// the changeset names was said by the VM.
	if w.merges == "" || secondParent(cs) != w.merges {
		return p, nil
	}
	m, err := s.mergeOf(ctx, w, cs.Base, w.merges)
	if err != nil {
		return p, err
	}
	p.Merge = pushgate.Merge{Commit: w.merges, Tree: gateTree(m.theirs), Fork: gateTree(m.fork)}
	return p, nil
}

func gateTree(entries map[string]forge.TreeEntry) pushgate.Tree {
	tree := make(pushgate.Tree, len(entries))
	for path, e := range entries {
		tree[path] = pushgate.Entry{Mode: changeset.Mode(e.Mode), Blob: e.ID}
	}
	return tree
}

// commit makes the changeset's objects on GitHub. Objects are named by their content, so a repeated
// attempt makes nothing twice that anybody could see; what was made is not made again.
func (s *Steps) commit(ctx context.Context, w *unit) (state.Event, error) {
	set := *w.task.Work
	cs, err := s.Files.LoadChangeset(set.Ref)
	if err != nil {
		return state.Event{}, fmt.Errorf("load the changeset: %w", err)
	}
	if e, ok, err := s.mayPublish(ctx, w, cs); !ok || err != nil {
		return e, err
	}
	if _, err := s.attempted(ctx, w); err != nil {
		return state.Event{}, err
	}
	if err := s.uploadLargeFiles(ctx, w, cs); err != nil {
		return state.Event{}, fmt.Errorf("upload large files: %w", err)
	}
	out, err := s.GitHub.CreateCommits(ctx, w.repo, cs, cs.Base, maps.Clone(set.IDs))
	if errors.Is(err, forge.ErrTreeMismatch) {
		return state.Event{}, &Problem{Reason: "GitHub built another tree from the commits than the VM says it had, so nothing was published.",
			Hint: "Comment `retry fresh` to do the work again on a new VM.", Class: "github", Permanent: true, Err: err}
	}
	if err != nil {
		return state.Event{}, fmt.Errorf("make the commits on GitHub: %w", err)
	}
	set.IDs, set.Head, set.Tree = out.IDs, out.Head, out.Tree
	return state.Event{Kind: state.EventCommitted, Work: &set}, nil
}

// move puts the branch on the published head. It holds only if the branch is where we left it.
func (s *Steps) move(ctx context.Context, w *unit) (state.Event, error) {
	t := w.task
	if _, err := s.attempted(ctx, w); err != nil {
		return state.Event{}, err
	}
	err := s.GitHub.MoveBranch(ctx, w.repo, t.Branch.Name, t.Branch.Head, t.Work.Head)
	var moved *forge.MovedError
	switch {
	case errors.As(err, &moved) && moved.Head == t.Work.Head: // an earlier attempt did it
	case errors.As(err, &moved) && t.Branch.Head == "":
		return state.Event{}, &Problem{Reason: fmt.Sprintf("The branch `%s` exists already and is not errand's.", t.Branch.Name),
			Hint: "Rename or delete that branch, then comment `retry`.", Class: "github", Permanent: true, Err: err}
	case errors.As(err, &moved) && moved.Head == "":
		return state.Event{}, &Problem{Reason: fmt.Sprintf("The branch `%s` was deleted.", t.Branch.Name),
			Hint: restoreBranch(t), Class: "github", Permanent: true, Err: err}
	case errors.As(err, &moved):
		return state.Event{Kind: state.EventOvertaken, Run: t.Work.Run, Head: moved.Head}, nil
	case err != nil:
		return state.Event{}, fmt.Errorf("move the branch: %w", err)
	}
	s.resetVM(ctx, w)
	return state.Event{Kind: state.EventMoved, Run: t.Work.Run}, nil
}

// branchGone explains an error by the branch that somebody deleted, if that is so: trying again does
// not help then.
func (s *Steps) branchGone(ctx context.Context, w *unit, cause error) error {
	t := w.task
	if t.Branch.Head == "" {
		return cause
	}
	if _, err := s.GitHub.Head(ctx, w.repo, t.Branch.Name); !errors.Is(err, forge.ErrNotFound) {
		return cause
	}
	return &Problem{Reason: fmt.Sprintf("The branch `%s` was deleted.", t.Branch.Name), Hint: restoreBranch(t), Class: "github", Permanent: true, Err: cause}
}

// restoreBranch says how a task whose branch was deleted goes on.
func restoreBranch(t *state.Task) string {
	if t.PR != nil {
		return "Restore it, then comment `retry`."
	}
	return "Restore it and comment `retry`, or comment `replan` to begin anew."
}

// resetVM puts the VM's checkout on the published head. Best effort: the next run's launch does it
// again.
func (s *Steps) resetVM(ctx context.Context, w *unit) {
	if w.task.VM == nil {
		return
	}
	if err := s.resetTo(ctx, w, w.task.Branch.Name, w.task.Work.Head); err != nil {
		w.log.Warn().Err(err).Msg("reset the VM's checkout to the published head")
	}
}

// resetTo fetches a published commit of a branch on the VM and puts the checkout on it.
func (s *Steps) resetTo(ctx context.Context, w *unit, from, commit string) error {
	vm := w.task.VM.Name
	place, err := s.Runner.Place(ctx, vm)
	if err != nil {
		return err
	}
	if err := s.Tether.Ensure(ctx, vm, w.task.Key); err != nil {
		return fmt.Errorf("attach the tether: %w", err)
	}
	return s.Runner.Reset(ctx, vm, work.ResetSpec{Dir: place.Dir, Source: s.source(w.task, vm, place, from), Branch: w.task.Branch.Name, Head: commit})
}

// rebase puts the VM's commits onto what somebody pushed, and judges the result like a new changeset.
func (s *Steps) rebase(ctx context.Context, w *unit) (state.Event, error) {
	t, onto := w.task, w.job.Args["onto"]
	if onto == "" {
		onto = t.Branch.Head
	}
	if e, woke, err := s.awake(ctx, w); woke || err != nil {
		return e, err
	}
	if t.VM == nil {
		return state.Event{}, &Problem{Reason: "The VM with the work is gone.", Hint: "Comment `retry` to do the work again.", Class: "vm", Permanent: true}
	}
	place, err := s.Runner.Place(ctx, t.VM.Name)
	if err != nil {
		return state.Event{}, lostWork(err)
	}
	if err := s.Tether.Ensure(ctx, t.VM.Name, t.Key); err != nil {
		return state.Event{}, fmt.Errorf("attach the tether: %w", err)
	}
	out, err := s.Runner.Rebase(ctx, t.VM.Name, work.RebaseSpec{
		Dir: place.Dir, Source: s.source(t, t.VM.Name, place, t.Branch.Name), Base: t.Work.Base, Onto: onto, Message: s.commitMessage(t),
	})
	if err != nil {
		return state.Event{}, lostWork(fmt.Errorf("rebase onto what was pushed: %w", err))
	}
	if !out.OK {
		return state.Event{Kind: state.EventConflict, Run: t.Work.Run, Head: onto, Paths: out.Conflicts}, nil
	}
	cs, err := s.readChangeset(ctx, w, onto)
	if r, ok := pushgate.Unreadable(err, s.Scanner); ok {
		w.log.Warn().Str("detail", r.Detail).Msg("refuse a rebased changeset that cannot be read")
		return refusedUnread(w.job.Run, r), nil
	}
	if err != nil {
		return state.Event{}, fmt.Errorf("collect the rebased changeset: %w", err)
	}
	return s.judge(ctx, w, cs)
}
