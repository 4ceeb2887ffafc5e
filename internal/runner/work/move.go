package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ResetSpec is the input of `workspace reset`.
type ResetSpec struct {
	Dir string `json:"dir"`
	Source
	Branch string `json:"branch"`
	// Head is the published commit.
	Head string `json:"head"`
	// Clean also removes untracked files, such as those of a planning run. Ignored files stay.
	Clean bool `json:"clean,omitempty"`
}

// Reset fetches a commit and moves the branch and all tracked files to it. Untracked and ignored files stay unless they
// are in the way or Clean is set. An unfinished git operation is discarded.
func Reset(ctx context.Context, spec ResetSpec) (Place, error) {
	p, err := reset(ctx, spec)
	if err != nil {
		return Place{}, fmt.Errorf("reset workspace %s: %w", spec.Dir, err)
	}
	return p, nil
}

func reset(ctx context.Context, spec ResetSpec) (Place, error) {
	if err := checkNames(spec.Dir, spec.Head, spec.Branch); err != nil {
		return Place{}, err
	}
	r, leave, err := enter(ctx, spec.Dir)
	if err != nil {
		return Place{}, err
	}
	defer leave()
	if err := r.fetch(ctx, spec.Source, spec.Head); err != nil {
		return Place{}, err
	}
	gitDir, err := r.gitDir(ctx)
	if err != nil {
		return Place{}, err
	}
	for _, op := range operations {
		if op.inProgress(gitDir) {
			if _, err := r.run(ctx, op.quit...); err != nil {
				return Place{}, err
			}
		}
	}
	if _, err := r.run(ctx, "symbolic-ref", "HEAD", "refs/heads/"+spec.Branch); err != nil {
		return Place{}, err
	}
	if _, err := r.run(ctx, "reset", "--quiet", "--hard", spec.Head); err != nil {
		return Place{}, err
	}
	if spec.Clean {
		if _, err := r.run(ctx, "clean", "--quiet", "--force", "--force", "-d"); err != nil {
			return Place{}, err
		}
	}
	return readPlace(ctx, r)
}

// RebaseSpec is the input of `workspace rebase`.
type RebaseSpec struct {
	Dir string `json:"dir"`
	Source
	// Base is the commit on which the agent's commits are based, and Onto the new base.
	Base string `json:"base"`
	Onto string `json:"onto"`
	// Message is the message of the commit into which a history with merges is squashed.
	Message string `json:"message,omitempty"`
}

// Rebased is the answer of rebase. Without OK, the workspace is unchanged.
type Rebased struct {
	OK bool `json:"ok"`
	Place
	// Conflicts lists the paths with conflicts.
	Conflicts []string `json:"conflicts,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// ErrDirty means that a workspace has uncommitted changes. Collect commits them.
var ErrDirty = errors.New("the workspace has uncommitted changes")

// Rebase moves the agent's commits from Base onto another commit. A conflict is part of the answer, not an error.
func Rebase(ctx context.Context, spec RebaseSpec) (Rebased, error) {
	r, err := rebase(ctx, spec)
	if err != nil {
		return Rebased{}, fmt.Errorf("rebase workspace %s: %w", spec.Dir, err)
	}
	return r, nil
}

func rebase(ctx context.Context, spec RebaseSpec) (Rebased, error) {
	r, leave, err := enter(ctx, spec.Dir)
	if err != nil {
		return Rebased{}, err
	}
	defer leave()
	if err := abortRebase(ctx, r); err != nil {
		return Rebased{}, err
	}
	if err := r.fetch(ctx, spec.Source, spec.Onto); err != nil {
		return Rebased{}, err
	}
	status, err := r.text(ctx, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=none")
	if err != nil {
		return Rebased{}, err
	}
	if status != "" {
		return Rebased{}, ErrDirty
	}
	before, err := r.commit(ctx, "HEAD")
	if err != nil {
		return Rebased{}, err
	}
	if moved, err := r.alreadyMoved(ctx, spec, before); moved || err != nil {
		p, perr := readPlace(ctx, r)
		return Rebased{OK: moved, Place: p}, errors.Join(err, perr)
	}
	var answer Rebased
	if answer.Notes, err = squashMerges(ctx, r, spec, before); err != nil {
		return Rebased{}, err
	}
	as := openRepo(spec.Dir, committerEnv(ctx, r, "")[2:]...) // only the committer's; authors stay
	_, err = as.run(ctx, "rebase", "--quiet", "--no-verify", "--empty=keep", "--no-autosquash",
		"--no-update-refs", "--onto", spec.Onto, spec.Base)
	if err == nil {
		answer.OK = true
		answer.Place, err = readPlace(ctx, r)
		return answer, err
	}
	return undoRebase(ctx, r, before, err)
}

// abortRebase aborts the rebase of a killed process.
func abortRebase(ctx context.Context, r *repo) error {
	gitDir, err := r.gitDir(ctx)
	if err != nil || !operations[0].inProgress(gitDir) {
		return err
	}
	if _, err := r.run(ctx, operations[0].abort...); err != nil {
		return fmt.Errorf("abort the rebase of a killed process: %w", err)
	}
	return nil
}

// alreadyMoved reports whether an earlier call, whose answer was lost, has rebased the commits: Onto is an ancestor of
// head, neither through a merge nor because Base already contained it. Rebasing again would move the commits onto
// themselves.
func (r *repo) alreadyMoved(ctx context.Context, spec RebaseSpec, head string) (bool, error) {
	there, err := r.check(ctx, "merge-base", "--is-ancestor", spec.Onto, head)
	if err != nil || !there {
		return false, err
	}
	if before, err := r.check(ctx, "merge-base", "--is-ancestor", spec.Onto, spec.Base); err != nil || before {
		return false, err
	}
	merges, err := r.text(ctx, "rev-list", "--merges", "--max-count=1", head, "^"+spec.Onto)
	return err == nil && merges == "", err
}

// squashMerges squashes a history with merges, which a rebase would flatten, into one commit.
func squashMerges(ctx context.Context, r *repo, spec RebaseSpec, head string) ([]string, error) {
	merges, err := r.text(ctx, "rev-list", "--merges", "--max-count=1", head, "^"+spec.Base)
	if err != nil || merges == "" {
		return nil, err
	}
	c := &collector{repo: r, spec: CollectSpec{Dir: spec.Dir, Base: spec.Base, Message: spec.Message}}
	chain, err := c.squash(ctx, head, "its history had a merge and had to be moved")
	if err != nil {
		return nil, err
	}
	to := spec.Base
	if len(chain) > 0 {
		to = chain[0].ID
	}
	_, err = r.run(ctx, "reset", "--quiet", "--hard", to)
	return c.notes, err
}

// undoRebase lists the conflicts and restores the workspace.
func undoRebase(ctx context.Context, r *repo, before string, cause error) (Rebased, error) {
	out, err := r.text(ctx, "diff", "--name-only", "--diff-filter=U", "-z")
	if err != nil {
		return Rebased{}, errors.Join(cause, err)
	}
	gitDir, err := r.gitDir(ctx)
	if err != nil {
		return Rebased{}, errors.Join(cause, err)
	}
	if operations[0].inProgress(gitDir) {
		if _, err := r.run(ctx, operations[0].abort...); err != nil {
			return Rebased{}, errors.Join(cause, err)
		}
	}
	if _, err := r.run(ctx, "reset", "--quiet", "--hard", before); err != nil {
		return Rebased{}, errors.Join(cause, err)
	}
	if out = strings.TrimRight(out, "\x00"); out == "" {
		return Rebased{}, cause
	}
	p, err := readPlace(ctx, r)
	return Rebased{Place: p, Conflicts: strings.Split(out, "\x00")}, err
}
