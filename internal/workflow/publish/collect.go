// Package publish brings the agent's commits from the VM to a pull request: it collects and judges them, shows them for
// approval, creates them on GitHub, moves the branch, opens the pull request and answers review threads.
//
// Start with Steps.Collect. The other steps follow in this order: Rebase, Show, Commit, Move, OpenPR or Answer.
package publish

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/approval"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// Steps are the steps that publish a changeset.
type Steps struct {
	GitHub     GitHub
	Runner     Runner
	Files      Files
	Workspaces *workspace.Opener
	Approvals  *approval.Checker
	Settings   *step.RepoSettings
	View       *step.View
	Redact     *trust.Redactor
	Scanner    *secretscan.Scanner
	// Gate has the operator's settings of the push gate.
	Gate settings.Gate
}

// GitHub has the calls of GitHub's API that these steps need.
type GitHub interface {
	IssueSnapshot(ctx context.Context, r forge.Repo, number int, file string) (forge.IssueSnapshot, error)
	Permission(ctx context.Context, r forge.Repo, login string, id int64) (state.Permission, error)

	// Commits, large files and branches.
	step.Heads
	Tree(ctx context.Context, r forge.Repo, commit string) (map[string]forge.TreeEntry, error)
	Blob(ctx context.Context, r forge.Repo, id string) ([]byte, error)
	ChangedSince(ctx context.Context, r forge.Repo, base, head string) (forge.Comparison, error)
	Commit(ctx context.Context, r forge.Repo, id string) (forge.Commit, error)
	LargeFiles(ctx context.Context, r forge.Repo, list []changeset.Pointer) (map[changeset.Pointer]bool, error)
	UploadLargeFiles(ctx context.Context, r forge.Repo, objects map[string][]byte) error
	CreateCommits(ctx context.Context, r forge.Repo, cs *changeset.Changeset, onto string, known map[string]string) (forge.Published, error)
	MoveBranch(ctx context.Context, r forge.Repo, branch, before, after string) error

	// Pull requests and their review threads.
	PRTemplate(ctx context.Context, r forge.Repo, ref string) (string, error)
	OpenPR(ctx context.Context, r forge.Repo, p forge.NewPR) (forge.PR, error)
	PR(ctx context.Context, r forge.Repo, number int) (forge.PR, error)
	Merging(ctx context.Context, r forge.Repo, number int) (forge.Merging, error)
	DequeuePR(ctx context.Context, r forge.Repo, pull string) error
	DisableAutoMerge(ctx context.Context, r forge.Repo, pull string) error
	UpdatePRBranch(ctx context.Context, r forge.Repo, pull, head string, rebase bool) (string, error)
	Installation(ctx context.Context, id int64) (forge.Installation, error)
	PRByHead(ctx context.Context, r forge.Repo, branch string) (*forge.PR, error)
	ReopenPR(ctx context.Context, r forge.Repo, number int) (forge.PR, error)
	ClosePR(ctx context.Context, r forge.Repo, number int) error
	RequestReview(ctx context.Context, r forge.Repo, number int, login string) (string, error)
	Self(ctx context.Context) (forge.App, error)
	Threads(ctx context.Context, r forge.Repo, number int) ([]forge.Thread, error)
	Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error)
	PendingReview(ctx context.Context, r forge.Repo, number int) (*forge.OwnReview, error)
	OwnReview(ctx context.Context, r forge.Repo, node string) (forge.OwnReview, error)
	StartReview(ctx context.Context, r forge.Repo, pull string) (node string, err error)
	AddReply(ctx context.Context, r forge.Repo, review, thread, body string) error
	SubmitReview(ctx context.Context, r forge.Repo, review, body string) error
	DeleteReview(ctx context.Context, r forge.Repo, review string) error
	DeletePendingReply(ctx context.Context, r forge.Repo, node string) error
	ResolveThread(ctx context.Context, r forge.Repo, thread string) error
	Identity(ctx context.Context, r forge.Repo, p state.Person) (name, email string, err error)
	FindReplies(ctx context.Context, r forge.Repo, number int, marker string, since time.Time) ([]forge.Comment, error)
	CommentsSince(ctx context.Context, r forge.Repo, number int, since time.Time) ([]forge.Comment, error)
	DeleteReply(ctx context.Context, r forge.Repo, id int64) error
}

// Runner reads and rebases commits on a VM. Both may be called again.
type Runner interface {
	Collect(ctx context.Context, vm string, spec work.CollectSpec) (*changeset.Changeset, error)
	Rebase(ctx context.Context, vm string, spec work.RebaseSpec) (work.Rebased, error)
}

// Files stores changesets, which are too large for the store.
type Files interface {
	SaveChangeset(run string, cs *changeset.Changeset) (ref string, err error)
	LoadChangeset(ref string) (*changeset.Changeset, error)
	SaveDiff(ref, diff string) error
}

// Collect reads the changeset from the VM, stores it and has the push gate judge it.
func (s *Steps) Collect(ctx context.Context, w *step.Attempt) (event.Event, error) {
	if e, restored, err := s.Workspaces.Restore(ctx, w); restored || err != nil {
		return e, err
	}
	cs, merged, err := s.ReadChangeset(ctx, w, workspace.Root(w.Task))
	if r, ok := pushgate.Unreadable(err, s.Scanner); ok {
		w.Log.Warn().Str("detail", r.Detail).Msg("changeset refused: it cannot be read")
		return refusedUnread(w.Job.Run, r), nil
	}
	if err != nil {
		return event.Event{}, lostWork(fmt.Errorf("collect the changeset: %w", err))
	}
	return s.judge(ctx, w, cs, merged)
}

// refusedUnread is the refusal of a changeset of which nothing can be kept.
func refusedUnread(run string, r pushgate.Refusal) event.Event {
	return event.Event{Run: run, Payload: event.Collected{Work: &state.Work{Run: run}, Refusals: []state.Refusal{state.Refusal(r)}}}
}

// lostWork turns an error that means that the VM of unpublished work is gone into a Problem.
func lostWork(err error) error {
	if !runnerctl.Gone(err) {
		return err
	}
	return vmGone(err)
}

// vmGone returns the Problem of unpublished work whose VM is gone.
func vmGone(cause error) error {
	return &step.Problem{Reason: "The VM with the work is gone.", Hint: "Comment `retry` to do the work again.", Class: state.ClassVM, Permanent: true, Err: cause}
}

// ReadChangeset reads the commits that the agent's checkout has in addition to root, or to the published head if the
// agent built on commits that people pushed meanwhile. merged is the one commit of the base branch that they may merge
// in, empty for none.
func (s *Steps) ReadChangeset(ctx context.Context, w *step.Attempt, root string) (cs *changeset.Changeset, merged string, err error) {
	t := w.Task
	if t.VM == nil {
		return nil, "", vmGone(nil)
	}
	ws, err := s.Workspaces.Open(ctx, t)
	if err != nil {
		return nil, "", err
	}
	c := work.CollectSpec{Dir: ws.Place.Dir, Base: root, Message: s.commitMessage(t), Leave: s.Workspaces.TestPaths(t)}
	if head := t.Branch.Head; head != root {
		c.Newer = head
	}
	if c.AllowMerge, err = s.mergeable(ctx, w); err != nil {
		return nil, "", err
	}
	if cs, err = s.Runner.Collect(ctx, t.VM.Name, c); err != nil {
		return nil, "", err
	}
	if parent := secondParent(cs); slices.Contains(c.AllowMerge, parent) {
		merged = parent
	} else if len(c.AllowMerge) > 0 {
		merged = c.AllowMerge[0]
	}
	lines, err := s.trailers(ctx, w)
	if err != nil {
		return nil, "", err
	}
	for i := range cs.Commits {
		cs.Commits[i].Message = s.published(t, cs.Commits[i].Message, lines)
	}
	return cs, merged, nil
}

// Rebase puts the VM's commits onto commits that somebody pushed, and judges the result like a new changeset.
func (s *Steps) Rebase(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t, onto := w.Task, w.Job.Args.Onto
	if onto == "" {
		onto = t.Branch.Head
	}
	answered, err := step.FindAnswered(ctx, s.GitHub, w)
	if err != nil {
		return event.Event{}, err
	}
	if len(answered) > 0 { // the lost errand also pushed this work, so it would conflict with later rounds
		return event.Event{Run: t.Work.Run, Payload: event.AnswersFound{IDs: answered}}, nil
	}
	if e, restored, err := s.Workspaces.Restore(ctx, w); restored || err != nil {
		return e, err
	}
	if t.VM == nil {
		return event.Event{}, vmGone(nil)
	}
	ws, err := s.Workspaces.Open(ctx, t)
	if err != nil {
		return event.Event{}, lostWork(err)
	}
	if err := ws.Attach(ctx); err != nil {
		return event.Event{}, err
	}
	out, err := s.Runner.Rebase(ctx, t.VM.Name, work.RebaseSpec{
		Dir: ws.Place.Dir, Source: ws.Source(t.Branch.Name), Base: t.Work.Base, Onto: onto, Message: s.commitMessage(t),
	})
	if err != nil {
		return event.Event{}, lostWork(fmt.Errorf("rebase onto the pushed commits: %w", err))
	}
	if !out.OK {
		return event.Event{Run: t.Work.Run, Payload: event.Conflict{Head: onto, Paths: out.Conflicts}}, nil
	}
	cs, merged, err := s.ReadChangeset(ctx, w, onto)
	if r, ok := pushgate.Unreadable(err, s.Scanner); ok {
		w.Log.Warn().Str("detail", r.Detail).Msg("rebased changeset refused: it cannot be read")
		return refusedUnread(w.Job.Run, r), nil
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("collect the rebased changeset: %w", err)
	}
	return s.judge(ctx, w, cs, merged)
}
