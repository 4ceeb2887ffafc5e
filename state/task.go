package state

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/state/kv/blob"
	"github.com/errand-bot/errand/state/settings"
)

// TaskKey identifies a task permanently: repositories are renamed and transferred, but their ids stay.
type TaskKey struct {
	Repo  int64 `json:"repo"`  // the repository's database id
	Issue int   `json:"issue"` // the issue's number
}

// String returns "REPO/ISSUE", the form used in keys and logs. ParseTaskKey reads it back.
func (k TaskKey) String() string { return fmt.Sprintf("%d/%d", k.Repo, k.Issue) }

// IsZero reports whether the key is empty.
func (k TaskKey) IsZero() bool { return k == TaskKey{} }

// ParseTaskKey parses the result of TaskKey.String.
func ParseTaskKey(s string) (TaskKey, error) {
	repo, issue, ok := strings.Cut(s, "/")
	r, err1 := strconv.ParseInt(repo, 10, 64)
	i, err2 := strconv.Atoi(issue)
	if !ok || err1 != nil || err2 != nil || r <= 0 || i <= 0 {
		return TaskKey{}, fmt.Errorf("parse task key %q: want REPOSITORY_ID/ISSUE_NUMBER", s)
	}
	return TaskKey{Repo: r, Issue: i}, nil
}

// Task is the bot's work on one issue. Only machine.Next changes it.
//
// Its fields are grouped by subject in embedded structs, so that code reads t.PR and not t.TaskChanges.PR. In JSON all
// of them are fields of the task itself.
type Task struct {
	Key TaskKey `json:"key"`
	// Version grows by one with every applied event; Visible with those that people can see.
	// The status comment records the Visible that it shows.
	Version int64 `json:"version"`
	Visible int64 `json:"visible"`
	// Gen numbers the lives of the task: a new trigger after its end begins the next one.
	Gen    int       `json:"gen"`
	Purged time.Time `json:"purged,omitzero"` // when the operator had the texts of the ended task deleted

	TaskIssue
	TaskPhase
	TaskPlans
	TaskOrders
	TaskRuns
	TaskVMs
	TaskChanges
	TaskComments

	Money Money `json:"money"`
}

// TaskIssue is the issue of a task, with the text and settings that were read for it.
type TaskIssue struct {
	Installation int64  `json:"installation"` // the installation of the GitHub App that reaches the repository
	Repo         Repo   `json:"repo"`
	IssueNode    string `json:"issue_node"` // GraphQL id
	Author       Person `json:"author"`     // of the issue
	// Locked is set while the issue's conversation is locked: no App may comment there.
	Locked bool `json:"locked,omitempty"`

	Trigger  Trigger           `json:"trigger"`
	Frozen   Frozen            `json:"frozen"`
	Settings settings.Settings `json:"settings"`
	Context  Context           `json:"context"`
	// Attachments are the files that the visible texts link to, in the order in which they were found.
	Attachments []Attachment `json:"attachments,omitempty"`
	Ticket      string       `json:"ticket,omitempty"` // replaces {key} in the names of branches and the messages of commits
}

// TaskPhase is how far a task has come.
type TaskPhase struct {
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"` // when Phase began
	// Resume is the phase to return to from awaiting_answer, interrupted and failed.
	Resume Phase `json:"resume,omitempty"`
	// Step is the job that is under way in this phase, or StepRun while an agent runs. A retry
	// enqueues it again.
	Step JobKind `json:"step,omitempty"`
	// Waiting is the condition, other than an action of people, that the task waits for. It is not a phase.
	Waiting *Waiting `json:"waiting,omitempty"`
	// PausedSince is since when the task waited for a pause, while it checks again whether that is in effect and Waiting is nil.
	PausedSince time.Time `json:"paused_since,omitzero"`
	// Outages counts how often in a row the task was interrupted because a step was impossible for the time being.
	Outages int           `json:"outages,omitempty"`
	History []PhaseChange `json:"history"`
	End     *End          `json:"end,omitempty"`
}

// TaskPlans holds the plans of a task, with the approval, the feedback and the open question.
type TaskPlans struct {
	Plans []Plan `json:"plans,omitempty"`
	// UsedHashes holds the short hashes of the revisions of earlier lives: no revision of this life gets one of them.
	UsedHashes []string   `json:"names,omitempty"`
	Approval   *Approval  `json:"approval,omitempty"` // the newest valid one
	Feedback   []Feedback `json:"feedback,omitempty"` // the next run has to answer it
	Question   *Question  `json:"question,omitempty"` // open while in awaiting_answer
	// Asked is the agent's question while a run considers comments on it: the run may leave it open.
	Asked *Question `json:"asked,omitempty"`
	// Gathering is set while comments on the newest plan or changes, or on the open question, are gathered.
	Gathering *Gathering `json:"gathering,omitempty"`
	// Held lists the approvals of the newest plan that wait until the comments on it have been considered, oldest first.
	Held    []Candidate `json:"held,omitempty"`
	Outcome Outcome     `json:"outcome,omitempty"`
}

// TaskOrders holds the choices of people for the next runs.
type TaskOrders struct {
	Model        string `json:"model,omitempty"`
	Turns        int    `json:"turns,omitempty"`         // replaces Limits.Turns
	IgnoreLimits bool   `json:"insist,omitempty"`        // after `retry`: the next run ignores a known limit of the model provider
	Fresh        bool   `json:"fresh,omitempty"`         // the next launch takes a new VM and session
	MoreVMHours  int    `json:"more_vm_hours,omitempty"` // by `budget +12h`, in addition to the operator's limit
	// UnattendedLaunches counts launches since the last action of a person with write access.
	UnattendedLaunches int `json:"unasked,omitempty"`
}

// TaskRuns holds the runs of a task and what their agents reported through errand's tools.
type TaskRuns struct {
	Run      *Run          `json:"run,omitempty"`      // the active run, nil between runs
	Runs     []Run         `json:"runs,omitempty"`     // ended runs, oldest first
	RunSeq   int           `json:"run_seq"`            // the number of the newest run
	Active   time.Duration `json:"active"`             // the time that agents worked since the last `retry`, for the limit; AgentTime is the total
	Notes    []Note        `json:"notes,omitempty"`    // to be repeated in later prompts
	Proposed []Proposal    `json:"proposed,omitempty"` // issues that agents propose
}

// TaskVMs holds the VMs of a task.
type TaskVMs struct {
	VM  *VM  `json:"vm,omitempty"`  // the present one
	VMs []VM `json:"vms,omitempty"` // ended ones
	// Suspended is the work that was last saved from a VM.
	Suspended *SuspendedWork `json:"asleep,omitempty"`
}

// TaskComments records which comments errand wrote and which actions of people it has seen.
type TaskComments struct {
	Status StatusComment `json:"status"`
	// UnknownOutcomes maps the keys of jobs that gave up, although their effect may exist, to the times when the jobs were made.
	UnknownOutcomes map[string]time.Time `json:"doubts,omitempty"`
	Posted          []Posted             `json:"posted,omitempty"`
	PostedOnce      []string             `json:"answered,omitempty"` // the replies that are posted once per revision and reason
	Ignored         int                  `json:"ignored,omitempty"`  // attempts of people without permission
	// SeenIDs holds the ids of comments, reviews, reactions and answered feedback that were taken into account, newest last, of
	// people who may direct errand. SeenUntrustedIDs holds those of others, which have no effect, bounded to 500.
	SeenIDs          []string `json:"seen,omitempty"`
	SeenUntrustedIDs []string `json:"passed,omitempty"`
}

// Repo is a repository under its present name.
type Repo struct {
	ID            int64  `json:"id"`
	Owner         string `json:"owner"`
	Name          string `json:"name"`
	DefaultBranch string `json:"default_branch"`
	Private       bool   `json:"private,omitempty"`
	URL           string `json:"url,omitempty"` // its page, https://HOST/OWNER/NAME
}

// FullName returns OWNER/NAME.
func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

// Person is a GitHub account, identified by ID: logins are renamed and reused.
type Person struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Bot   bool   `json:"bot,omitempty"`
	// Operator is set for commands that were given on errand's pages or by its program instead of GitHub: by the operator, who has
	// no account, so ID and Login are empty, or by a person who signed in.
	Operator bool `json:"operator,omitempty"`
}

// Permission is a permission as GitHub's collaborator API reports it: admin, write, read or none. (It reports
// maintain as write and triage as read.) The empty string means that it has not been read yet.
type Permission string

// The permissions of a person on a repository.
const (
	PermissionAdmin Permission = "admin"
	PermissionWrite Permission = "write"
	PermissionRead  Permission = "read"
	PermissionNone  Permission = "none"
)

// CanWrite reports whether the person may give errand instructions.
func (p Permission) CanWrite() bool { return p == PermissionAdmin || p == PermissionWrite }

// TriggerVia is the way in which a task was requested.
type TriggerVia string

// The ways to request a task.
const (
	TriggerAssigned TriggerVia = "assigned"
	TriggerLabel    TriggerVia = "label"
	TriggerMention  TriggerVia = "mention"
	TriggerSweep    TriggerVia = "sweep"    // a sweep found the request, because its webhook was lost
	TriggerOperator TriggerVia = "operator" // the operator began a task, or continued or restarted an ended one
)

// Trigger is the action of a person that started a task.
type Trigger struct {
	By  Person     `json:"by"`
	Via TriggerVia `json:"via"`
	At  time.Time  `json:"at"`
	// Again is when the same trigger was last given again. An earlier removal does not cancel the task.
	Again time.Time `json:"again,omitzero"`
	// Base is the branch named in the trigger ("base: NAME"), empty for the configured one.
	Base string `json:"base,omitempty"`
	// Operator is set if the operator began this life. By then requested the life before; it is the operator if there was none.
	Operator bool `json:"operator,omitempty"`
}

// Waiting is a condition, other than an action of people, that a task waits for.
type Waiting struct {
	Kind   WaitKind  `json:"kind"`
	Detail string    `json:"detail"`         // one sentence for people
	Hint   string    `json:"hint,omitempty"` // the remedy, one sentence for people
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // the time of the next try, if known
	// Place is the task's place, from 1, in the queue for a VM; 0 if it waits for something else. It may be a minute old.
	Place int `json:"place,omitempty"`
	// Issues are the blockers, as OWNER/REPO#N, for WaitBlocked.
	Issues []string `json:"issues,omitempty"`
	// URL is the page on which people follow Hint, for WaitPermission.
	URL string `json:"url,omitempty"`
}

// WaitKind is the kind of condition that a task waits for.
type WaitKind string

// The conditions that a task can wait for.
const (
	WaitBlocked WaitKind = "blocked" // other issues have to be closed first
	WaitVM      WaitKind = "vm"      // no VM is available
	WaitMoney   WaitKind = "money"   // a cap is reached
	WaitTurns   WaitKind = "turns"   // only of a run: its turns are used up
	WaitLimit   WaitKind = "limit"   // a limit of GitHub or of the model's provider
	WaitKey     WaitKind = "key"     // the model provider refuses errand's key
	WaitRefused WaitKind = "refused" // only of one call: the gateway denied it

	// Only of one answer, whose premature end the agent's program does not report.
	WaitAnswerCut     WaitKind = "answer_cut"     // it reached its output limit
	WaitAnswerBlocked WaitKind = "answer_blocked" // the provider blocked the rest

	WaitConfig WaitKind = "config" // .errand.yml is invalid
	// WaitPermission: the App's installation lacks a permission.
	WaitPermission WaitKind = "permission"
	WaitEdit       WaitKind = "edit"     // a person without write access changed the issue; `replan` by one with write access is needed
	WaitText       WaitKind = "text"     // the agent may not see any text yet
	WaitDisabled   WaitKind = "disabled" // enabled: false
	WaitPaused     WaitKind = "paused"   // the operator paused errand or the repository; nothing rechecks it until it is resumed
)

// Context is the content of prompts that was gathered about the issue. Package internal/trust has filtered its text: the
// agent may see all of it.
type Context struct {
	// Title and Body are the frozen text with hidden content taken out; empty unless ShowsIssue.
	Title      string              `json:"title,omitempty"`
	Body       string              `json:"body,omitempty"`
	ShowsIssue bool                `json:"shows_issue,omitempty"`
	Labels     []string            `json:"labels,omitempty"`
	IssueType  string              `json:"issue_type,omitempty"`
	Milestone  string              `json:"milestone,omitempty"`
	Comments   []DiscussionComment `json:"comments,omitempty"` // visible, oldest first
	Withheld   []Withheld          `json:"withheld,omitempty"`
	Existing   []Existing          `json:"existing,omitempty"` // pull requests and branches that were there
	Cleared    bool                `json:"cleared,omitempty"`  // a person chose to continue despite Existing
	Stripped   []string            `json:"stripped,omitempty"` // descriptions of content hidden in visible text, for people
	// Guidance holds the repository's instructions for agents.
	Guidance []Guidance `json:"guidance,omitempty"`
}

// Guidance is a file of the base branch with instructions for agents.
type Guidance struct {
	Path string `json:"path"`
	Text string `json:"text"`
	// Cut reports that Text was shortened.
	Cut bool `json:"cut,omitempty"`
}

// DiscussionComment is a visible comment.
type DiscussionComment struct {
	ID   int64     `json:"id"`
	By   Person    `json:"by"`
	At   time.Time `json:"at"`
	Body string    `json:"body"`
}

// Withheld is a comment, or the issue's own text (ID 0), that the agent does not see.
type Withheld struct {
	ID     int64  `json:"id"`
	Node   string `json:"node,omitempty"`
	By     Person `json:"by"`
	Reason string `json:"reason"`
	Body   string `json:"body,omitempty"` // stripped; used when somebody vouches for it
}

// ExistingKind is the form of existing work; comments and pages show it as it is.
type ExistingKind string

// The forms of existing work.
const (
	ExistingPR     ExistingKind = "pull request"
	ExistingBranch ExistingKind = "branch"
)

// Existing is work of other people that is linked to the issue.
type Existing struct {
	Kind   ExistingKind `json:"kind"`
	Name   string       `json:"name"` // #12 or the branch
	URL    string       `json:"url"`
	By     Person       `json:"by"`
	Merged bool         `json:"merged,omitempty"`
}

// PhaseChange is one entry of a task's history.
type PhaseChange struct {
	Phase  Phase     `json:"phase"`
	At     time.Time `json:"at"`
	Reason string    `json:"why"`
}

// Ended reports whether the task is over for good.
func (t *Task) Ended() bool { return t.Phase == PhaseDone || t.Phase == PhaseCancelled }

// NewestPlan returns the newest revision, or nil.
func (t *Task) NewestPlan() *Plan {
	if len(t.Plans) == 0 {
		return nil
	}
	return &t.Plans[len(t.Plans)-1]
}

// PlanningBegan returns the time when the task last began to read the issue or to plan: changes that were built before
// are obsolete. It is zero if the history does not contain it.
func (t *Task) PlanningBegan() time.Time {
	for i := len(t.History) - 1; i >= 0; i-- {
		switch h := t.History[i]; h.Phase {
		case PhaseQueued, PhasePreliminaryPlanning, PhasePlanning:
			return h.At
		}
	}
	return time.Time{}
}

// IsReplacedPR reports whether a pull request belongs to an earlier life that this one does not continue.
func (t *Task) IsReplacedPR(number int) bool {
	return number != 0 && slices.ContainsFunc(t.Replaced, func(r ReplacedPR) bool { return r.Number == number })
}

// EndedAt returns the time of the ended task's end, by GitHub's clock if a person ended it. It is never before the trigger:
// a closed issue may be assigned.
func (t *Task) EndedAt() time.Time {
	end := t.Since
	if t.End != nil && !t.End.Acted.IsZero() {
		end = t.End.Acted
	}
	if t.Trigger.At.After(end) {
		return t.Trigger.At
	}
	return end
}

// Clone returns a deep copy.
func (t *Task) Clone() *Task {
	c, _ := Cloner().Clone(reflect.ValueOf(t).Elem()).Addr().Interface().(*Task)
	return c
}

// Cloner copies tasks and jobs.
var Cloner = sync.OnceValue(func() *blob.Cloner { return blob.NewCloner(reflect.TypeFor[Task](), reflect.TypeFor[[]Job]()) })

// HasSeen reports whether the event with an ID was already taken into account.
func (t *Task) HasSeen(id string) bool {
	return slices.Contains(t.SeenIDs, id) || slices.Contains(t.SeenUntrustedIDs, id)
}
