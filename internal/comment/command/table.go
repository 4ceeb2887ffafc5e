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

// Place is where a command can be written.
type Place string

// The places.
const (
	OnIssue Place = "issue"
	OnPR    Place = "pull request"
	Both    Place = "issue, pull request"
)

// Entry is one row of the table of commands.
type Entry struct {
	Verb state.Verb
	// Words are the names of the command in lower case, the usual one first.
	Words []string
	// Usage is the syntax after the mention, with [optional] parts.
	Usage string
	// Help describes the command in one sentence.
	Help  string
	Where Place
	// Example is a call with every argument, for the documentation and for replies to a wrong call.
	Example string

	// read parses the arguments.
	read argumentReader
	// format returns the arguments of an order as people write them; nil if there are none or Order.Arg is the only one.
	format func(state.Order) []string
	// takesText: any words may follow on the line, so a misspelled name is not guessed in prose.
	takesText bool
	// keepsText: the lines below belong to the command; below other commands they are a message to the agent.
	keepsText bool
}

// Table returns all commands in the order of the help. The caller owns the slice.
func Table() []Entry {
	return []Entry{
		{
			Verb: state.VerbPlan, Words: []string{"plan", "start", "go"}, Usage: "plan [base: NAME]", Where: OnIssue, Example: "plan base: develop",
			Help: "Start work on this issue, based on the named branch or the default one, or continue errand's pull request for it.",
			read: readPlan, format: formatPlan,
		},
		{
			Verb: state.VerbApprove, Words: []string{"approve"}, Usage: "approve [HASH] [N] [with: CONDITIONS]", Where: Both, Example: "approve a1b2c3d4 2 with: keep the old flag",
			Help: "Approve the newest plan (with approach N and conditions), or the changes that wait for publication.",
			read: readApproval, format: formatApproval,
		},
		{
			Verb: state.VerbReplan, Words: []string{"replan"}, Usage: "replan [WHY]", Where: Both, Example: "replan the API has changed",
			Help: "Read the issue again and make a new plan.",
			read: readReplan, takesText: true, keepsText: true,
		},
		{
			Verb: state.VerbStatus, Words: []string{"status"}, Usage: "status", Where: Both, Example: "status",
			Help: "Show the state of the task.",
			read: readNothing,
		},
		{
			Verb: state.VerbStop, Words: []string{"stop"}, Usage: "stop", Where: Both, Example: "stop",
			Help: "Stop the running agent, keep its work, and wait for `retry`.",
			read: readNothing, keepsText: true,
		},
		{
			Verb: state.VerbRetry, Words: []string{"retry"}, Usage: "retry [fresh] [turns=N]", Where: Both, Example: "retry fresh turns=60",
			Help: "Continue after a failure, a `stop`, a closed pull request or, while its work is kept, a `cancel`; `fresh` starts on a new VM, without unpublished work.",
			read: readRetry, format: formatRetry,
		},
		{
			Verb: state.VerbCancel, Words: []string{"cancel"}, Usage: "cancel", Where: Both, Example: "cancel",
			Help: "End the task. Published commits and pull requests stay; `retry` continues the task while its work is kept.",
			read: readNothing, keepsText: true,
		},
		restartEntry(),
		updateEntry(),
		rebaseEntry(),
		{
			Verb: state.VerbBudget, Words: []string{"budget"}, Usage: "budget +DOLLARS, +N tokens, or +Nh", Where: Both, Example: "budget +5",
			Help: "Raise the task's cap on cost, on tokens, or on VM hours.",
			read: readBudget, format: formatBudget,
		},
		{
			Verb: state.VerbModel, Words: []string{"model"}, Usage: "model NAME", Where: Both, Example: "model opus",
			Help: "Use another model from the next run on.",
			read: readModel,
		},
		{
			Verb: state.VerbCreatePR, Words: []string{"create pr", "create pull request"}, Usage: "create pr KEY-123", Where: OnIssue, Example: "create pr ABC-123",
			Help: "Use this ticket key for the branch, the commits and the pull request, which errand opens when the work is done.",
			read: readTicket,
		},
		{
			Verb: state.VerbIssue, Words: []string{"create issue"}, Usage: "create issue N", Where: Both, Example: "create issue 1",
			Help: "Create the issue that the agent proposed with this number.",
			read: readChoice, format: formatChoice,
		},
		afterEntry(),
		{
			Verb: state.VerbHelp, Words: []string{"help"}, Usage: "help", Where: Both, Example: "help",
			Help: "Show this list.",
			read: readNothing,
		},
	}
}

// restartEntry returns the row of the command to begin again.
func restartEntry() Entry {
	return Entry{
		Verb: state.VerbRestart, Words: []string{"restart"}, Usage: "restart", Where: Both, Example: "restart",
		Help: "Begin again from the issue, with a new plan; the pull request is closed.",
		read: readNothing, keepsText: true,
	}
}

// updateEntry returns the row of the command to bring the pull request up to date.
func updateEntry() Entry {
	return Entry{
		Verb: state.VerbUpdate, Words: []string{"update", "update branch"}, Usage: "update", Where: Both, Example: "update",
		Help: "Add the newest commits of the base to the pull request. GitHub does it; an agent resolves conflicts.",
		read: readNothing,
	}
}

// rebaseEntry returns the row of the command to do that by a rebase.
func rebaseEntry() Entry {
	return Entry{
		Verb: state.VerbRebase, Words: []string{"rebase"}, Usage: "rebase", Where: Both, Example: "rebase",
		Help: "Like `update`, but move the pull request's commits onto the base.",
		read: readNothing,
	}
}

// afterEntry returns the row of messages that wait for the end of the run.
func afterEntry() Entry {
	return Entry{
		Verb: state.VerbMessage, Words: []string{"after"}, Usage: "after: MESSAGE", Where: Both, Example: "after: add a line to the changelog",
		Help: "Pass a message to the agent when its run has ended, instead of interrupting it.",
		read: readAfter, takesText: true, keepsText: true,
	}
}

// Read returns a command whose arguments are written as in a comment, on one line.
func Read(verb state.Verb, args string) (state.Order, error) {
	e := entryOf(verb)
	if e.read == nil || strings.ContainsAny(args, "\r\n") {
		return state.Order{}, fmt.Errorf("%q is not a command", string(verb))
	}
	o, got := e.read(args, "")
	if got != matched {
		return state.Order{}, fmt.Errorf("the command is written as `%s`, for example `%s`", e.Usage, e.Example)
	}
	o.Verb = verb
	return o, nil
}

// entryOf returns the row of a verb, or an empty one for a verb that is not a command.
func entryOf(v state.Verb) Entry {
	for _, e := range Table() {
		if e.Verb == v {
			return e
		}
	}
	return Entry{}
}

// Help returns the table of commands that a reply shows, as Markdown.
func Help(slug string) string {
	var b strings.Builder
	b.WriteString("| Write at the start of a line | What it does |\n|---|---|\n")
	for _, c := range Table() {
		fmt.Fprintf(&b, "| `@%s %s` | %s |\n", slug, c.Usage, c.Help)
	}
	b.WriteString("\nAnything else after the mention is a message to the agent, which is interrupted for it if it is working.")
	return b.String()
}

// DocTable returns the table of commands for the documentation, as Markdown. It writes the bot's mention as @errand.
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
