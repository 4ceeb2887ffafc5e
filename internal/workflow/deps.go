package workflow

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/state"
)

// Store is what steps need of the store.
type Store interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	MarkAttempted(ctx context.Context, job string, epoch int64) error
	MarkLaunch(ctx context.Context, job string, epoch int64, l state.Launch) error
}

// GitHub is what steps need of GitHub; *forge.Forge has it all.
type GitHub interface {
	self
	people
	talker
	reader
	issues
	publisher
	largeFiles
	pulls
	reviews
	relations
}

type self interface {
	Self(ctx context.Context) (forge.App, error)
	Installation(ctx context.Context, id int64) (forge.Installation, error)
}

type people interface {
	Permission(ctx context.Context, r forge.Repo, login string, id int64) (state.Permission, error)
	React(ctx context.Context, r forge.Repo, t forge.Target, content string) error
}

type talker interface {
	CreateComment(ctx context.Context, r forge.Repo, number int, body string) (forge.Comment, error)
	EditComment(ctx context.Context, r forge.Repo, id int64, body string) (forge.Comment, error)
	FindComments(ctx context.Context, r forge.Repo, number int, marker string, since time.Time) ([]forge.Comment, error)
	DeleteComment(ctx context.Context, r forge.Repo, id int64) error
	Minimize(ctx context.Context, installation int64, node string) error
}

type reader interface {
	Head(ctx context.Context, r forge.Repo, branch string) (string, error)
	CommitFiles(ctx context.Context, r forge.Repo, commit string, files []string) (forge.CommitFiles, error)
	ChangedSince(ctx context.Context, r forge.Repo, base, head string) (forge.Comparison, error)
}

type issues interface {
	CommentAndHead(ctx context.Context, r forge.Repo, node, branch string) (said *forge.Comment, head string, err error)
	Comment(ctx context.Context, r forge.Repo, id int64) (forge.Comment, error)
	PlanSnapshot(ctx context.Context, r forge.Repo, comment, said, branch string) (forge.PlanSnapshot, error)
	IssueSnapshot(ctx context.Context, r forge.Repo, number int, file string) (forge.IssueSnapshot, error)
	Issue(ctx context.Context, r forge.Repo, number int) (forge.Issue, error)
	creator
}

type creator interface {
	CreateIssue(ctx context.Context, r forge.Repo, title, body string) (forge.Issue, error)
	PullText(ctx context.Context, r forge.Repo, number int) (forge.PullText, error)
	FindIssues(ctx context.Context, r forge.Repo, marker string, since time.Time) ([]forge.Issue, error)
}

type publisher interface {
	CreateCommits(ctx context.Context, r forge.Repo, cs *changeset.Changeset, onto string, known map[string]string) (forge.Published, error)
	MoveBranch(ctx context.Context, r forge.Repo, branch, before, after string) error
	Tree(ctx context.Context, r forge.Repo, commit string) (map[string]forge.TreeEntry, error)
	Blob(ctx context.Context, r forge.Repo, id string) ([]byte, error)
}

type largeFiles interface {
	LargeFiles(ctx context.Context, r forge.Repo, list []changeset.Pointer) (map[changeset.Pointer]bool, error)
	UploadLargeFiles(ctx context.Context, r forge.Repo, objects map[string][]byte) error
}

type pulls interface {
	OpenPR(ctx context.Context, r forge.Repo, p forge.NewPR) (forge.PR, error)
	PRTemplate(ctx context.Context, r forge.Repo, ref string) (string, error)
	PR(ctx context.Context, r forge.Repo, number int) (forge.PR, error)
	Checks(ctx context.Context, r forge.Repo, sha string) (forge.Checks, error)
	RequestReview(ctx context.Context, r forge.Repo, number int, login string) (string, error)
}

type reviews interface {
	Threads(ctx context.Context, r forge.Repo, number int) ([]forge.Thread, error)
	ReplyInThread(ctx context.Context, r forge.Repo, pr int, top int64, body string) (forge.Comment, error)
	FindReplies(ctx context.Context, r forge.Repo, number int, marker string, since time.Time) ([]forge.Comment, error)
	DeleteReply(ctx context.Context, r forge.Repo, id int64) error
}

type relations interface {
	Branches(ctx context.Context, r forge.Repo, prefix string) ([]forge.Branch, error)
	IssueState(ctx context.Context, installation int64, owner, name string, number int) (open bool, err error)
	Blockers(ctx context.Context, r forge.Repo, number int) ([]forge.Blocker, error)
}

// VMs gives each task its VM.
type VMs interface {
	// Acquire returns the task's VM, ready to be reached, and makes it if there is none. It may be
	// called again after any failure. ErrNoVM means: wait; a *vm.LimitError says which limit is reached. A new VM of a task whose Wakes is a
	// snapshot is made from that, or the error is ErrNoSnapshot; a VM that is off is switched on.
	Acquire(ctx context.Context, t *state.Task) (state.VM, error)
	Release(ctx context.Context, vm, why string) error
}

// Sleeper keeps the disks of VMs as images.
type Sleeper interface {
	// Snapshot switches a VM off and returns the image of its disk when it can be used. It takes as long as
	// that takes; after any failure, or the end of ctx, it may be called again and goes on. The VM stays.
	Snapshot(ctx context.Context, vm string) (ref string, bytes int64, err error)
	// DeleteSnapshot deletes an image; deleting what is gone is no error.
	DeleteSnapshot(ctx context.Context, ref string) error
}

// Runner is what errand-runner does on a VM for us; *runnerctl.Controller has it all. Each method
// may be called again.
type Runner interface {
	Place(ctx context.Context, vm string) (runnerctl.Place, error)
	checkouts
	lender
	runs
	packer
}

type packer interface {
	Pack(ctx context.Context, vm string, spec pack.Spec, w io.Writer) (pack.Manifest, error)
	Unpack(ctx context.Context, vm string, spec pack.UnpackSpec, r io.Reader) (pack.Manifest, error)
}

type runs interface {
	Start(ctx context.Context, vm string, spec runner.Spec) error
	Knows(ctx context.Context, vm, run string) (bool, error)
	Stop(ctx context.Context, vm, run, why string) error
}

type checkouts interface {
	Prepare(ctx context.Context, vm string, spec work.PrepareSpec) (work.Place, error)
	Reset(ctx context.Context, vm string, spec work.ResetSpec) error
	Rebase(ctx context.Context, vm string, spec work.RebaseSpec) (work.Rebased, error)
	Collect(ctx context.Context, vm string, spec work.CollectSpec) (*changeset.Changeset, error)
}

// lender gives files to a checkout that are no part of the repository, and takes them back.
type lender interface {
	Lend(ctx context.Context, vm string, spec work.LendSpec) (work.Lent, error)
}

// Tether is the VM's way out.
type Tether interface {
	// Ensure has it attached, and waits until it is.
	Ensure(ctx context.Context, vm string, task state.TaskKey) error
	Forget(vm string)
	// RunToken and VMToken are what a run and the runner itself show there.
	RunToken(run string) string
	VMToken(vm string) string
}

// Files keeps what is too large for the store.
type Files interface {
	SaveChangeset(run string, cs *changeset.Changeset) (ref string, err error)
	LoadChangeset(ref string) (*changeset.Changeset, error)
	SaveDiff(ref, diff string) error
	BeginTranscript(run string, h runlog.Header) error
	sleeps
}

// sleeps are the archives of work that was put away; *archive.Dir has them.
type sleeps interface {
	SaveSleep(task string, fill func(io.Writer) (pack.Manifest, error)) (archive.Sleep, error)
	OpenSleep(ref, digest string) (*os.File, error)
	DeleteSleep(ref string) error
}
