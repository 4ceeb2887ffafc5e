package prompts

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Data contains the values that a prompt is rendered from. All its texts are visible to the agent: the caller has
// redacted them and removed everything that the agent must not see.
type Data struct {
	Task  Task
	Issue Issue
	// Discussion has the visible comments on the issue, oldest first.
	Discussion []Said
	// Attachments are the files attached to the texts.
	Attachments []Attachment
	// Withheld describes each text that the agent cannot see, in one line each.
	Withheld []string

	// Plan is the approved plan that this run executes, or turns into a detailed plan. It is required for plan,
	// implement and review, unless the settings ask for no plan.
	Plan *Plan
	// Previous is the last revision of the plan that this run writes; nil for the first revision.
	Previous *Plan
	// Considers reports whether Previous still waits for approval: the run may leave it as it is.
	Considers bool
	// Asked is the agent's question if the run reads comments on it: it may leave the question open.
	Asked string
	// Messages are those that people wrote while the agent worked, and that no run has received yet; the prompt begins with them.
	Messages []Feedback
	// Conditions are the messages that earlier runs received while they implemented the plan. They belong to it.
	Conditions []Said
	// Since has the visible comments made after the plan (or after Previous).
	Since []Said
	// Drift lists changes, since the plan was made, to files that the plan names.
	Drift []Drift

	// PR is required for review.
	PR *PullRequest
	// Feedback lists the items that the run has to answer, one by one; required for review.
	Feedback []Feedback
	// Shown reports whether the agent's unpublished commits were shown to people, who asked for changes.
	Shown bool
	// Checks are the repository's commands that failed.
	Checks []Check
	// Refusals are the push gate's refusals of the last commits.
	Refusals []Refusal

	// Tools reports whether the agent has errand's tools. Notes are the notes stored with them so far, one line each.
	Tools bool
	Notes []string

	// Guidance has the contents of the repository's files for agents; it goes into the system prompt.
	Guidance []Guidance

	// Repair, if set, is the only request of the prompt.
	Repair *Repair

	// Resume lists changes since the last run, one line each; the prompt begins with them.
	Resume []string
	// Conversation is the conversation so far, for a session that cannot be resumed.
	Conversation []Turn
}

// Repair asks the agent to repeat a closing block that could not be parsed.
type Repair struct {
	Problem string // the error in the block
	Form    bool   // the agent's program enforces the schema of the closing block
	// Block and Answer are the block and the text before it, for a session that cannot be resumed.
	Block, Answer string
}

// Guidance is a file of the base branch with instructions for agents. Cut reports whether its text was shortened.
type Guidance struct {
	Path, Text string
	Cut        bool
}

// Task describes the run: its repository, branch, commands and limits.
type Task struct {
	Owner, Repo string
	Issue       int
	Run         int // the run's number within the task
	Base        string
	Branch      string
	// Subject is the required form of the first line of a commit message, such as "ABC-1: {task}". It contains only
	// placeholders that the agent fills in; empty for no rule.
	Subject string
	// Setup and Check are the repository's own commands; errand runs Check after the agent.
	Setup, Check []string
	// CheckBeforePR are the checks that errand runs only after all others succeeded.
	CheckBeforePR []string
	// Coverage and Mutation are the lowest accepted percentages, of changed lines that tests cover, and of mutants on changed
	// lines that tests detect; 0 for none.
	Coverage, Mutation int
	// TestEnv and TestFiles are the names of variables and the paths of files that the operator provides for tests.
	TestEnv, TestFiles []string
	MergeCommits       bool
	// Protected lists the patterns of paths that must not be changed.
	Protected []string
	// Unprotected lists exceptions from Protected.
	Unprotected []string
	Turns       int           // at most, 0 for no limit
	Duration    time.Duration // at most, 0 for no limit
	Memory      string        // of the VM, as text; empty if unknown
	Network     string        // the hosts that the VM can reach, as text; empty if unknown
	// Shell lists the command prefixes that the agent may run, and Denied those that it may not. If Shell is empty the
	// agent may run any command that is not denied.
	Shell, Denied []string
	// LargeFiles reports whether the checkout contains files stored with Git LFS.
	LargeFiles bool
}

// ListsChanges reports whether a check has a placeholder for the changed files or the affected modules.
func (t Task) ListsChanges() bool {
	return slices.ContainsFunc(slices.Concat(t.Check, t.CheckBeforePR), func(c string) bool {
		return strings.Contains(c, "{changed_files}") || strings.Contains(c, "{affected_modules}")
	})
}

// Issue is the frozen text of the issue, with its metadata.
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

// Attachment is a file attached to a text, under an address that contains its ID. Path is that of its copy on the VM; if the
// file could not be read, Unread is the reason.
type Attachment struct {
	ID, Path, Type string
	Bytes          int64
	Unread         string
}

// Plan is a stored revision, verbatim.
type Plan struct {
	Kind       string // preliminary or thorough
	Revision   int
	Hash       string
	Text       string
	ApprovedBy string
	// Conditions come from "approve with: …".
	Conditions []string
	// Approach is the chosen approach, as "2: title"; empty for none.
	Approach string
}

// Drift is the change to a file since the plan that names it was made.
type Drift struct {
	Path, Diff string
}

// PullRequest is the task's pull request.
type PullRequest struct {
	Number int
	Title  string
}

// Feedback is one item that the run has to answer.
type Feedback struct {
	ID     string // repeated in the answer
	Kind   string // comment, review, thread, checks, ci, refusal, conflict, answer, condition, edit
	Author string
	At     time.Time
	Body   string
	Path   string
	Line   int
	Hunk   string
	Items  []string // the paths or commits concerned
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

// Turn is one message of the conversation so far. Role is "errand" or "agent".
type Turn struct {
	Role, Text string
}

// template returns the name of the template for the user prompt.
func (d Data) template(name string) string {
	if d.Repair != nil {
		return "repair"
	}
	return name
}

// check returns an error that names the first required field that is missing.
func (d Data) check(name string) error {
	needs := []struct {
		field string
		set   bool
		in    []string
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
		{"Feedback, Checks or Refusals", d.Repair != nil || len(d.Feedback)+len(d.Messages)+len(d.Checks)+len(d.Refusals) > 0, []string{Review}},
	}
	for _, n := range needs {
		for _, in := range n.in {
			if in == name && !n.set {
				return fmt.Errorf("%s is missing", n.field)
			}
		}
	}
	for i, f := range slices.Concat(d.Feedback, d.Messages) {
		if f.ID == "" || f.Kind == "" {
			return fmt.Errorf("Feedback[%d] has no ID or kind", i)
		}
	}
	return nil
}
