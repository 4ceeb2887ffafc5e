package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// reply renders a short reply to a command. By is its author; Text and Items depend on the reason.
func (p post) reply() string {
	switch p.Reason {
	case state.ReplyHelp:
		return "Commands for people with write access:\n\n" + command.Help(p.v.Slug)
	case state.ReplyUnknown:
		return p.unknown()
	case state.ReplyStatus:
		return p.status()
	case state.ReplyNoTask:
		return fmt.Sprintf("Nobody has asked errand to work on this issue, so the command has no effect. To start a task, assign the issue to errand, add errand's label, or comment %s.", p.v.say("plan"))
	case state.ReplyNoTaskClosed:
		return fmt.Sprintf("This issue is closed, so errand does not work on it. To start a task, reopen the issue, then assign it to errand, add errand's label, or comment %s.", p.v.say("plan"))
	case state.ReplyUpdateLater, state.ReplyUpdatesFull, state.ReplyNoOpenPR:
		return p.noUpdate()
	}
	if s := p.replyWords(); s != "" {
		return s
	}
	return p.embed()
}

// stage names the task's phase, or the thing that it waits for instead.
func stage(t *state.Task) string {
	if t.IsHeldUp() {
		return "waiting for " + words.Waiting(t.Waiting)
	}
	return words.Phase(t.Phase)
}

// stageClause is stage as the end of a sentence.
func stageClause(t *state.Task) string {
	if t.IsHeldUp() {
		return "the task is " + stage(t)
	}
	return words.PhaseClause(t.Phase)
}

// replyWords returns replies of one or two sentences.
func (p post) replyWords() string {
	v := p.v
	switch p.Reason {
	case state.ReplyNothingToCancel:
		if p.t.Ended() {
			return fmt.Sprintf("There is nothing to end: the task is %s. To start a new one, comment %s on the issue.", words.Phase(p.t.Phase), v.say("plan"))
		}
		return fmt.Sprintf("There is no run to stop (phase: %s). %s ends the task.", stage(p.t), v.say("cancel"))
	case state.ReplyNothingToRetry:
		return p.nothingToRetry()
	case state.ReplyNonePending:
		return fmt.Sprintf("No plan is waiting for approval: %s. %s shows details.", stageClause(p.t), v.say("status"))
	case state.ReplyOneTask:
		return fmt.Sprintf("This issue already has a task (%s); see %s. An issue has one task at a time.", stage(p.t), p.statusLink())
	case state.ReplyTooLate:
		return fmt.Sprintf("It is too late to replan: %s. Describe the change that you want in a comment, or end the task with %s.", stageClause(p.t), v.say("cancel"))
	case state.ReplyBudgetRaised:
		return newCap(p.By, p.t)
	case state.ReplyNoBudget:
		return noBudget(v, p.t)
	case state.ReplyNoTokenCap:
		return "There is nothing to raise: the task has no cap on tokens."
	case state.ReplyModelSet:
		model := p.Text
		if model == "" {
			model = p.t.Model
		}
		return "The next run uses the model " + markdown.Code(model) + "; the current run keeps its own."
	case state.ReplyModelUnknown:
		return p.modelUnknown()
	case state.ReplyTicketNoted:
		return p.ticketNoted()
	case state.ReplyTicketMissing:
		return fmt.Sprintf("The command has no ticket key, so nothing was changed. Write %s with the key. Errand opens the pull request automatically when the work is done.", v.say("create pr KEY-123"))
	case state.ReplyMessageKept:
		if p.t.Run == nil || p.t.IsHeldUp() {
			return "Noted; the next run will consider it."
		}
		return fmt.Sprintf("Noted. Run %d is in progress and is not interrupted; the comment is considered right after it. To stop the run, write %s.", p.t.Run.Seq, v.say("stop"))
	case state.ReplyMessageLong:
		return fmt.Sprintf("The message is kept for after the run: only messages of at most %d KB interrupt the agent. To interrupt it, write a shorter one.", machine.MaxMessageBytes>>10)
	case state.ReplyMessagesFull:
		return fmt.Sprintf("The message is kept for after the run: %d messages already wait for the agent, so this one does not interrupt it. To stop the run, write %s.", machine.MaxMessages, v.say("stop"))
	case state.ReplyIssueCreated:
		return p.created()
	case state.ReplyNoProposal:
		return p.noProposal()
	case state.ReplyIssueFailed:
		return p.issueFailed()
	case state.ReplyTooMany:
		return p.tooMany()
	case state.ReplyCommentDeleted:
		return "A comment by " + name(p.By) + " was ignored: it was deleted or hidden before it was read."
	case state.ReplyCommentEdited:
		return "A comment by " + name(p.By) + " was ignored: it was edited before it was read, and commands in edited comments are not read. Write the command in a new comment."
	case state.ReplyRetryClosed:
		return "The task does not continue while its issue is closed. Reopen the issue, then write the command again."
	case state.ReplyEnded:
		if p.t.CanResume(v.Now) {
			return fmt.Sprintf("This task has ended (%s). To continue it, write %s on the issue before %s. To start a new one, write %s there.",
				words.Phase(p.t.Phase), v.say("retry"), v.clock(p.t.End.KeptUntil), v.say("plan"))
		}
		return fmt.Sprintf("This task has ended (%s). Comment %s on the issue to start a new one.", words.Phase(p.t.Phase), v.say("plan")) + openFirst(p.t)
	case state.ReplyHowToApprove:
		return fmt.Sprintf("The comment by %s approves nothing. To approve %s, give it a 👍, tick its box, or write %s.", name(p.By), p.linkToRevision(), p.approve())
	case state.WaitingDisabled:
		return "No tasks are started here at present: `enabled` is false in the settings. The comment is kept."
	}
	return ""
}

// nothingToRetry renders the reply to a `retry` that continues nothing.
func (p post) nothingToRetry() string {
	v := p.v
	switch {
	case p.t.CanResume(v.Now): // the command came before the end
		return fmt.Sprintf("The task has been canceled since. To continue it, write %s again.", v.say("retry"))
	case p.t.Phase == state.PhaseCancelled && p.t.PR == nil && p.t.End != nil && !p.t.End.KeptUntil.IsZero():
		return fmt.Sprintf("A canceled task can be retried as long as its work is kept, which was until %s. To start a new one, comment %s on the issue.", v.clock(p.t.End.KeptUntil), v.say("plan"))
	case p.t.Ended():
		return fmt.Sprintf("The task is %s, so it cannot be retried. To start a new one, comment %s on the issue.", words.Phase(p.t.Phase), v.say("plan")) + openFirst(p.t)
	}
	return fmt.Sprintf("There is nothing to retry: %s. %s shows details.", stageClause(p.t), v.say("status"))
}

// ticketNoted renders the use of a ticket key. Text is the key.
func (p post) ticketNoted() string {
	ticket := p.Text
	if ticket == "" {
		ticket = p.t.Ticket
	}
	into := "the branch, the commits and the pull request"
	switch {
	case p.t.PR != nil:
		into = "new commits"
	case p.t.Branch.Name != "":
		into = "the commits and the pull request"
	}
	return fmt.Sprintf("The ticket key %s is used for %s where the repository's templates contain `{key}`.", markdown.Code(ticket), into)
}

// unknown renders the reply to an unknown command. Text is the most similar command, Items[0] the written one.
func (p post) unknown() string {
	wrote := "That"
	if len(p.Items) > 0 && p.Items[0] != "" {
		wrote, _ = markdown.Cut(p.Items[0], 80)
		wrote = markdown.Code(wrote)
	}
	s := wrote + " is not a command here."
	if p.Text != "" {
		s += " Did you mean " + p.v.say(strings.Trim(markdown.Code(p.Text), "`")) + "?"
	}
	return s + " Nothing was done; " + p.v.say("help") + " lists the commands."
}

// tooMany renders the commands of a comment that were not executed: Items, and as many more as Text says.
func (p post) tooMany() string {
	s := fmt.Sprintf("A comment can contain %d commands; the first %d of yours were executed, the others were not", machine.MaxOrders, machine.MaxOrders)
	var left []string
	for _, words := range p.Items {
		left = append(left, markdown.Code(words))
	}
	if p.Text != "" {
		left = append(left, markdown.Line(p.Text, 20)+" more")
	}
	if len(left) > 0 {
		s += ": " + strings.Join(left, ", ")
	}
	return s + ". To execute them, write them in another comment."
}

// modelUnknown renders the reply to an unknown model. Text is the written model, Items the available ones.
func (p post) modelUnknown() string {
	names := make([]string, 0, len(p.Items))
	for _, n := range p.Items {
		names = append(names, markdown.Code(n))
	}
	wrote, _ := markdown.Cut(p.Text, 80)
	s := "The model " + markdown.Code(wrote) + " is not available here, so the next run uses the same model as before."
	if len(names) > 0 {
		s += " Available: " + strings.Join(names, ", ") + "."
	}
	return s
}

// status renders the state of the task in a paragraph.
func (p post) status() string {
	t := p.t
	s := fmt.Sprintf("At %s: **%s**", p.v.clock(p.v.Now), headline(t))
	if n := len(t.History); n > 0 && !t.Ended() {
		s += " for " + words.Span(p.v.Now.Sub(t.History[n-1].At))
	}
	s += ", " + effort(t) + ". "
	if now := stepText(t, p.v); now != "" {
		s += "**Now:** " + now + ". "
	}
	return s + awaited(t, p.v) + " More is in " + p.statusLink() + "."
}

func (p post) statusLink() string { return markdown.Link("the status comment", p.t.Status.URL) }

// noBudget returns that there is no cap on cost to raise.
func noBudget(v View, t *state.Task) string {
	m := t.Money
	s := "There is nothing to raise: the task runs on a subscription, which has no cost per call, so caps in dollars do not apply."
	if m.CapTokens > 0 && !showsMoney(t) {
		return s + " " + v.say("budget +500k tokens") + " raises the cap on tokens."
	}
	if m.CapTokens > 0 {
		s += fmt.Sprintf(" It may use %s tokens and has used %s; %s raises the cap.", words.Count(m.CapTokens), words.Count(m.Tokens()), v.say("budget +500k tokens"))
	}
	return s
}

// newCap returns the new cap of the task, which somebody raised.
func newCap(by state.Person, t *state.Task) string {
	m, hours := t.Money, ""
	if t.MoreVMHours > 0 {
		hours = fmt.Sprintf(" It may use %s more than the operator's limit.", words.Many(t.MoreVMHours, "VM hour"))
	}
	raised := ""
	if by.Operator {
		raised = markdown.Capitalize(name(by)) + " raised a cap of this task. "
	}
	switch {
	case !showsMoney(t) && by.Operator:
		return strings.TrimSpace(raised) + hours
	case !showsMoney(t):
		return "The cap of this task is raised as requested." + hours
	case m.Free():
		return raised + fmt.Sprintf("The task runs on a subscription. It may use %s tokens; %s are used.", words.Count(m.CapTokens), words.Count(m.Tokens())) + hours
	}
	s := raised + fmt.Sprintf("The cap of this task is %s now; %s is spent.", words.USD(m.CapMicroUSD), words.Spent(m))
	if m.CapTokens > 0 {
		s += fmt.Sprintf(" It may use %s tokens; %s are used.", words.Count(m.CapTokens), words.Count(m.Tokens()))
	}
	return s + hours
}
