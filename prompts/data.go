package prompts

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Data is what a prompt is made of. Texts in it are what the agent may see, redacted and stripped.
type Data struct {
	Task  Task
	Issue Issue
	// Discussion are the visible comments on the issue, oldest first.
	Discussion []Said
	// Withheld says in a line each what the agent does not see.
	Withheld []string

	// Plan is the approved plan that this run carries out or works out: required for plan,
	// implement and review, except where the settings ask for no plan.
	Plan *Plan
	// Previous is the last revision of the plan that this run makes; nil for the first.
	Previous *Plan
	// Since are the visible comments made after the plan (or after Previous).
	Since []Said
	// Drift is what changed in the files that the plan names, since it was made.
	Drift []Drift

	// PR is required for review.
	PR *PullRequest
	// Feedback is what the run has to answer, one by one; required for review.
	Feedback []Feedback
	// Shown says that people were shown the agent's commits, which are not published yet, and want them
	// changed.
	Shown bool
	// Checks are those of the repository's commands that failed.
	Checks []Check
	// Refusals are what the push gate said of the last commits.
	Refusals []Refusal

	// Tools says that the agent has errand's tools; Notes are what was kept with them so far, a line each.
	Tools bool
	Notes []string

	// Guidance is what files of the repository say to agents; it goes into the system prompt.
	Guidance []Guidance

	// Repair, if set, is all that the run is asked for.
	Repair *Repair

	// Resume is what changed since the last run, in a line each; the prompt begins with it.
	Resume []string
	// Conversation is what was said so far, for a session that cannot be resumed.
	Conversation []Turn
}

// Repair is an answer whose closing block could not be read.
type Repair struct {
	Problem string // what is wrong with the block
	Form    bool   // the agent's program holds its answer to the block's form
	// Block and Answer are the block and the words before it, for a session that cannot be resumed.
	Block, Answer string
}

// Guidance is a file of the base branch for agents. Cut says that it was longer.
type Guidance struct {
	Path, Text string
	Cut        bool
}

// Task says where the agent works and under which rules of the repository.
type Task struct {
	Owner, Repo string
	Issue       int
	Run         int // the run's number within the task
	Base        string
	Branch      string
	// Subject is the form of the first line of a commit's message, such as "ABC-1: {task}", with placeholders for
	// the agent's words alone; empty for no rule.
	Subject string
	// Setup and Check are the repository's own commands; errand runs Check after the agent.
	Setup, Check []string
	// TestEnv and TestFiles are the names of variables and the paths of files that the operator gives to tests.
	TestEnv, TestFiles []string
	MergeCommits       bool
	// Protected are the path patterns that may not be changed.
	Protected []string
	// Unprotected are those that are excepted.
	Unprotected []string
	Turns       int           // at most, 0 for no limit
	Duration    time.Duration // at most, 0 for no limit
	Memory      string        // of the VM, in words, empty if unknown
	Network     string        // what the VM reaches, in words, empty if unknown
	// Shell are beginnings of the repository's commands that the agent may call, Denied those that it may not. Shell is
	// empty where it may call any other.
	Shell, Denied []string
	// LargeFiles says that the checkout has files that Git LFS keeps.
	LargeFiles bool
}

// ListsChanges reports whether a check has a place for what changed.
func (t Task) ListsChanges() bool {
	return slices.ContainsFunc(t.Check, func(c string) bool {
		return strings.Contains(c, "{changed_files}") || strings.Contains(c, "{affected_modules}")
	})
}

// Issue is the issue as it was frozen.
type Issue struct {
	Title, Body, Author string
	Labels              []string
	Type, Milestone     string
}

// Said is a visible comment.
type Said struct {
	Author string
	At     time.Time
	Body   string
}

// Plan is a stored revision, verbatim.
type Plan struct {
	Kind       string // preliminary, thorough
	Revision   int
	Hash       string
	Text       string
	ApprovedBy string
	// Conditions come from "approve with: …".
	Conditions []string
	// Approach is the chosen approach, as "2: title"; empty for none.
	Approach string
}

// Drift is how a file that the plan names has changed since.
type Drift struct {
	Path, Diff string
}

// PullRequest is the task's pull request.
type PullRequest struct {
	Number int
	Title  string
}

// Feedback is one thing to answer.
type Feedback struct {
	ID     string // to be repeated in the answer
	Kind   string // comment, review, thread, checks, refusal, conflict, answer, condition, edit
	Author string
	At     time.Time
	Body   string
	Path   string
	Line   int
	Hunk   string
	Items  []string // paths or commits that it is about
}

// Check is a command of the repository that failed.
type Check struct {
	Name, Command string
	Code          int
	TimedOut      bool
	Tail          string
}

// Refusal is a rule of the push gate that the last commits broke.
type Refusal struct {
	Rule, Path, Detail, Remedy string
}

// Turn is a piece of the conversation so far. Role is "errand" or "agent".
type Turn struct {
	Role, Text string
}

// asks is the name of what the agent is told to do.
func (d Data) asks(name string) string {
	if d.Repair != nil {
		return "repair"
	}
	return name
}

// check names the first thing that a prompt needs and Data lacks.
func (d Data) check(name string) error {
	needs := []struct {
		what string
		ok   bool
		in   []string
	}{
		{"Task.Owner and Task.Repo", d.Task.Owner != "" && d.Task.Repo != "", Names()},
		{"Task.Issue", d.Task.Issue > 0, Names()},
		{"Task.Run", d.Task.Run > 0, Names()},
		{"Task.Base", d.Task.Base != "", Names()},
		{"Task.Branch", d.Task.Branch != "", []string{Implement, Review}},
		{"Issue.Title", d.Issue.Title != "", Names()},
		{"Plan.Text and Plan.Hash", d.Plan == nil || d.Plan.Text != "" && d.Plan.Hash != "", Names()},
		{"PR", d.PR != nil, []string{Review}},
		{"Repair.Problem", d.Repair == nil || d.Repair.Problem != "", Names()},
		{"Feedback, Checks or Refusals", d.Repair != nil || len(d.Feedback)+len(d.Checks)+len(d.Refusals) > 0, []string{Review}},
	}
	for _, n := range needs {
		for _, in := range n.in {
			if in == name && !n.ok {
				return fmt.Errorf("%s is missing", n.what)
			}
		}
	}
	for i, f := range d.Feedback {
		if f.ID == "" || f.Kind == "" {
			return fmt.Errorf("Feedback[%d] has no ID or kind", i)
		}
	}
	return nil
}
