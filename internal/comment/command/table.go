// Package command reads the commands that people write in comments.
//
// One table has all commands: the parser, the help and the table in the docs are made from it. A command is obeyed only
// if its author has write access, which this package does not check.
//
// Start with [Table], then [Parse].
package command

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/state"
)

// Place is where a command means something.
type Place string

// The places.
const (
	OnIssue Place = "issue"
	OnPR    Place = "pull request"
	Both    Place = "issue, pull request"
)

// Entry is one row of the table that the parser, the help text and the docs are made from.
type Entry struct {
	Verb state.Verb
	// Words are what may be written for it, in lower case, the usual one first.
	Words []string
	// Usage is what to write after the mention, with [optional] parts.
	Usage string
	// Help is one sentence that says what it does.
	Help  string
	Where Place
	// Example is a call with every argument, for documentation and for answers to a wrong one.
	Example string

	// read makes the order from what follows the word on its line and from the lines below.
	read argumentReader
	// takesText is set if any words may follow, so that a misspelling is not guessed in prose.
	takesText bool
}

// Table returns the table, in the order in which help shows it. The caller owns the slice.
func Table() []Entry {
	return []Entry{
		{Verb: state.VerbPlan, Words: []string{"plan", "start", "go"}, Usage: "plan [base: NAME]", Where: OnIssue,
			Help: "Begin to work on this issue, on the branch named or the usual one.", Example: "plan base: develop", read: readPlan},
		{Verb: state.VerbApprove, Words: []string{"approve"}, Usage: "approve [HASH] [N] [with: CONDITIONS]", Where: Both,
			Help: "Approve the newest plan, its approach N, and add conditions; or the changes that wait to be published.", Example: "approve a1b2c3d4 2 with: keep the old flag", read: readApprove},
		{Verb: state.VerbReplan, Words: []string{"replan"}, Usage: "replan [WHY]", Where: Both,
			Help: "Read the issue again and make a new plan.", Example: "replan the API has changed", read: readReplan, takesText: true},
		{Verb: state.VerbStatus, Words: []string{"status"}, Usage: "status", Where: Both,
			Help: "Say where the task is.", Example: "status", read: readBare},
		{Verb: state.VerbStop, Words: []string{"stop"}, Usage: "stop", Where: Both,
			Help: "Stop the running agent, keep its work, and wait for `retry`.", Example: "stop", read: readBare},
		{Verb: state.VerbRetry, Words: []string{"retry"}, Usage: "retry [fresh] [turns=N]", Where: Both,
			Help: "Go on after a failure or a `stop`, not after `cancel`; `fresh` starts from a new VM.", Example: "retry fresh turns=60", read: readRetry},
		{Verb: state.VerbCancel, Words: []string{"cancel"}, Usage: "cancel", Where: Both,
			Help: "End the task. Published commits and pull requests stay; `plan` starts a new task.", Example: "cancel", read: readBare},
		{Verb: state.VerbBudget, Words: []string{"budget"}, Usage: "budget +DOLLARS, or +N tokens", Where: Both,
			Help: "Raise the task's cap of money, or of tokens.", Example: "budget +5", read: readBudget},
		{Verb: state.VerbModel, Words: []string{"model"}, Usage: "model NAME", Where: Both,
			Help: "Use another model from the next run on.", Example: "model opus", read: readModel},
		{Verb: state.VerbCreatePR, Words: []string{"create pr", "create pull request"}, Usage: "create pr KEY-123", Where: OnIssue,
			Help: "Use that ticket key for the branch, the commits and the pull request, which is opened once the work is done.", Example: "create pr ABC-123", read: readCreatePR},
		{Verb: state.VerbIssue, Words: []string{"create issue"}, Usage: "create issue N", Where: Both,
			Help: "Create the issue that the agent proposed under that number.", Example: "create issue 1", read: readIssue},
		{Verb: state.VerbHelp, Words: []string{"help"}, Usage: "help", Where: Both,
			Help: "Show this list.", Example: "help", read: readBare},
	}
}

// Help returns the list of commands as people see it on GitHub, as a Markdown table.
func Help(slug string) string {
	var b strings.Builder
	b.WriteString("| Write at the start of a line | What it does |\n|---|---|\n")
	for _, c := range Table() {
		fmt.Fprintf(&b, "| `@%s %s` | %s |\n", slug, c.Usage, c.Help)
	}
	b.WriteString("\nAnything else after the mention is a message to the agent.")
	return b.String()
}

// DocTable returns the Markdown table of every command for the documentation, which writes the
// bot's mention as @errand. Its text changes only with Commands.
func DocTable() string {
	var b strings.Builder
	b.WriteString("| Command | What it does | Where | Example |\n|---|---|---|---|\n")
	for _, c := range Table() {
		usage := c.Usage
		if len(c.Words) > 1 {
			usage += "` (also `" + strings.Join(c.Words[1:], "`, `") + "`)"
		} else {
			usage += "`"
		}
		fmt.Fprintf(&b, "| `@errand %s | %s | %s | `@errand %s` |\n", usage, c.Help, c.Where, c.Example)
	}
	return b.String()
}
