package workflow

import (
	"context"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/state"
)

// Store is what steps need of the store.
type Store interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	MarkAttempted(ctx context.Context, job string, epoch int64) error
}

// GitHub is what steps need of GitHub; *forge.Forge has it all.
type GitHub interface {
	self
	people
	talker
	reader
	issues
	publisher
	pulls
	reviews
}

type self interface {
	Self(ctx context.Context) (forge.App, error)
}

type people interface {
	Permission(ctx context.Context, r forge.Repo, login string, id int64) (state.Permission, error)
	React(ctx context.Context, r forge.Repo, t forge.Target, content string) error
	Thumbs(ctx context.Context, installation int64, nodes []string) (forge.Thumbs, error)
}

type talker interface {
	CreateComment(ctx context.Context, r forge.Repo, number int, body string) (forge.Posted, error)
	EditComment(ctx context.Context, r forge.Repo, id int64, body string) (forge.Posted, error)
	FindComments(ctx context.Context, r forge.Repo, number int, marker string, since time.Time) ([]forge.Posted, error)
	DeleteComment(ctx context.Context, r forge.Repo, id int64) error
	Minimise(ctx context.Context, installation int64, node string) error
}

type reader interface {
	File(ctx context.Context, r forge.Repo, ref, path string) ([]byte, error)
	OrgFile(ctx context.Context, r forge.Repo, path string) ([]byte, error)
	Head(ctx context.Context, r forge.Repo, branch string) (string, error)
	ChangedSince(ctx context.Context, r forge.Repo, base, head string) (forge.Comparison, error)
}

type issues interface {
	Comment(ctx context.Context, r forge.Repo, id int64) (forge.CommentView, error)
	IssueText(ctx context.Context, r forge.Repo, node string) (forge.CommentView, error)
	IssueComments(ctx context.Context, r forge.Repo, number int) ([]forge.CommentView, error)
	Issue(ctx context.Context, r forge.Repo, number int) (forge.Issue, error)
}

type publisher interface {
	Commit(ctx context.Context, r forge.Repo, cs *changeset.Changeset, onto string, known map[string]string) (forge.Committed, error)
	Move(ctx context.Context, r forge.Repo, branch, before, after string) error
	Tree(ctx context.Context, r forge.Repo, commit string) (map[string]forge.TreeEntry, error)
	Blob(ctx context.Context, r forge.Repo, id string) ([]byte, error)
}

type pulls interface {
	OpenPR(ctx context.Context, r forge.Repo, p forge.NewPR) (forge.PR, error)
	PRByHead(ctx context.Context, r forge.Repo, branch string) (*forge.PR, error)
	PR(ctx context.Context, r forge.Repo, number int) (forge.PR, error)
	RequestReview(ctx context.Context, r forge.Repo, number int, login string) (string, error)
}

type reviews interface {
	Threads(ctx context.Context, r forge.Repo, number int) ([]forge.Thread, error)
	ReplyInThread(ctx context.Context, r forge.Repo, pr int, top int64, body string) (forge.Posted, error)
	LinkedPRs(ctx context.Context, r forge.Repo, number int) ([]forge.LinkedPR, error)
	Blockers(ctx context.Context, r forge.Repo, number int) ([]forge.Blocker, error)
}

// VMs gives each task its VM.
type VMs interface {
	// Acquire returns the task's VM, ready to be reached, and makes it if there is none. It may be
	// called again after any failure. An error with `NoCapacity() string` means: wait.
	Acquire(ctx context.Context, t *state.Task) (state.VM, error)
	Release(ctx context.Context, vm, why string) error
}

// Runner is what errand-runner does on a VM for us. Each method may be called again.
type Runner interface {
	Prepare(ctx context.Context, vm string, w Workspace) (head string, err error)
	Start(ctx context.Context, vm string, spec runner.Spec) error
	Stop(ctx context.Context, vm, run, why string) error
	Collect(ctx context.Context, vm string, c Collect) (*changeset.Changeset, error)
	Rebase(ctx context.Context, vm, onto, base string) (conflicts []string, err error)
	Reset(ctx context.Context, vm string, w Workspace) error
}

// Workspace is the checkout that a run needs.
type Workspace struct {
	Task   *state.Task
	Branch string
	Commit string // where it is to stand
}

// Collect says what to read from a checkout.
type Collect struct {
	Base        string
	AllowMerges []string
	Message     string // of a commit for what was left uncommitted
}

// Files keeps what is too large for the store.
type Files interface {
	SaveChangeset(run string, cs *changeset.Changeset) (ref string, err error)
	LoadChangeset(ref string) (*changeset.Changeset, error)
	BeginTranscript(run string, h runlog.Header) error
}
