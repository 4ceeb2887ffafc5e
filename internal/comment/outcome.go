package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// question renders a question. By is the person who is asked, Reason the kind of question.
func (p post) question() string {
	switch p.Reason {
	case state.AskExisting:
		return p.existing()
	case state.AskKey:
		return markdown.Paragraphs(
			addressed(p.By, "this repository requires a ticket key in the names of the branch, commits and pull request, and the issue has none."),
			markdown.Sentence(p.Text),
			"Write "+p.v.say("create pr KEY-123")+" with the key, or add it to the issue's title.",
		)
	case state.AskStopped:
		return "Stopped" + answeredBy(p.By) + ". The work so far is saved. Continue with " + p.v.say("retry") + ", describe in a comment what should be different, or end the task with " + p.v.say("cancel") + "."
	}
	return markdown.Paragraphs(
		addressed(p.By, "a question before work continues:"),
		markdown.Quote(p.embed()),
		markdown.BulletList(p.Items, 10),
		"Answer in a comment. The task continues when a comment by a person with write access answers the question.",
	)
}

func answeredBy(who state.Person) string {
	if who.Login == "" && !who.Operator {
		return ""
	}
	return " by " + name(who)
}

// existing renders the work of others that is linked to the issue.
func (p post) existing() string {
	var b strings.Builder
	for i, e := range p.t.Context.Existing {
		if i == 10 {
			fmt.Fprintf(&b, "- and %d more\n", len(p.t.Context.Existing)-i)
			break
		}
		fmt.Fprintf(&b, "- %s %s by %s", markdown.Line(string(e.Kind), 20), markdown.Link(markdown.Code(e.Name), e.URL), name(e.By))
		if e.Merged {
			b.WriteString(", merged")
		}
		b.WriteString("\n")
	}
	items := b.String()
	if items == "" {
		items = markdown.Paragraphs(markdown.Sentence(p.Text), markdown.BulletList(p.Items, 10))
	}
	return markdown.Paragraphs(
		addressed(p.By, "somebody seems to be working on this issue already:"),
		items,
		"To continue anyway, write "+p.v.say("retry")+" or describe what should be done differently. To leave it to them, write "+p.v.say("cancel")+".",
	)
}

// report renders the answer of a task without changes.
func (p post) report() string {
	title, end := "Report", "This answers the issue; the task is done."
	switch state.Outcome(p.Reason) {
	case state.OutcomeAlreadyFixed:
		title, end = "Already fixed", "There is nothing left to do; the task is done. Close the issue if you agree."
	case state.OutcomeNotReproducible:
		title, end = "Not reproducible", "Nothing was changed; the task is done. If it does happen, describe how to reproduce it and write "+p.v.say("plan")+"."
	}
	return markdown.Paragraphs("## "+title, markdown.EmbedFolded("The whole answer", p.Text, 6000, p.budget, p.v.log(p.t, "the log")), proposals(p.t, p.v), end)
}

// answered renders the agent's answer to comments that leave the plan, or the open question, as it is.
func (p post) answered() string {
	text := p.embed()
	if text == "" {
		text = "Noted; nothing has to change."
	}
	end := ""
	if plan := p.t.NewestPlan(); plan != nil && plan.Open() && p.t.Phase.AwaitsPlan() {
		end = fmt.Sprintf("<sub>The plan stays as it is. To approve %s, give it a 👍, tick its box, or write %s.</sub>", p.linkToNewest(), p.approve())
	}
	if p.t.Phase == state.PhaseAwaitingAnswer && p.t.Question != nil {
		end = "<sub>The question is still open: answer it in a comment.</sub>"
	}
	return markdown.Paragraphs(text, end)
}

// opened renders the comment about a new pull request on the issue. By is asked for a review.
func (p post) opened() string {
	pr := p.t.PR
	if pr == nil {
		return "The pull request is open."
	}
	draft := "pull request"
	if pr.Draft {
		draft = "draft pull request"
	}
	s := addressed(p.By, fmt.Sprintf("the %s %s is open: %s", draft, markdown.Link(fmt.Sprintf("#%d", pr.Number), pr.URL), markdown.Sentence(pr.Title)))
	ready := ""
	if p.t.AwaitsReady() {
		ready = "When its checks succeed, errand marks it ready for review. "
	}
	if p.t.Settings.Merge == settings.MergeDenied {
		ready += "The settings of the repository ask errand to merge it, but errand's operator does not allow that: a person has to merge it. "
	}
	return markdown.Paragraphs(s, p.embed(), markdown.BulletList(p.Items, 20), proposals(p.t, p.v),
		ready+fmt.Sprintf("So far it took %s. Review it there: errand answers submitted reviews and comments that begin with `@%s`, thread by thread.", effort(p.t), p.v.Slug))
}

// round renders the result of a review round on the pull request. Items are lines, such as one per commit.
func (p post) round() string {
	title := "**Review answered.**"
	if p.t.Round > 0 {
		title = fmt.Sprintf("**Round %d answered.**", p.t.Round)
	}
	text := p.embed()
	if text != "" && !strings.Contains(text, "\n") {
		title, text = title+" "+text, ""
	}
	spent := ""
	if showsMoney(p.t) {
		spent = fmt.Sprintf("<sub>%s spent so far.</sub>", money(p.t.Money))
	}
	return markdown.Paragraphs(title, text, linkedAnswers(p.Items, p.Links), proposals(p.t, p.v), spent)
}

// thread renders an answer in a review thread. Items are the published commits that address it.
func (p post) thread() string {
	text := p.embed()
	if text == "" {
		text = "Considered; nothing was changed."
	}
	var commits []string
	for _, id := range p.Items[:min(len(p.Items), 5)] {
		commits = append(commits, commit(p.t, id))
	}
	if len(commits) > 0 {
		return markdown.Paragraphs(text, "Done in "+strings.Join(commits, ", ")+".")
	}
	return text
}

// noChanges renders that a run changed nothing.
func (p post) noChanges() string {
	return markdown.Paragraphs(
		addressed(p.By, "the run changed no files, so there is nothing to publish."),
		markdown.EmbedFolded("The agent's answer", p.Text, 3000, p.budget, p.v.log(p.t, "the log")),
		"Describe in a comment what is missing, continue with "+p.v.say("retry")+", or end the task with "+p.v.say("cancel")+".",
	)
}

// refused renders the refusals of the push gate. By has to decide.
func (p post) refused() string {
	var b strings.Builder
	for i, r := range p.Refusals {
		if i == 20 {
			fmt.Fprintf(&b, "- and %d more\n", len(p.Refusals)-i)
			break
		}
		fmt.Fprintf(&b, "- **%s**", markdown.Line(r.Rule, 40))
		if r.Path != "" {
			fmt.Fprintf(&b, " in %s", markdown.Code(markdown.CutWithNote(r.Path, 200)))
		}
		fmt.Fprintf(&b, ": %s", markdown.Sentence(r.Detail))
		if r.Remedy != "" { // a remedy is not truncated in practice, because people copy from it
			fmt.Fprintf(&b, " *%s.*", strings.TrimRight(markdown.Line(markdown.Capitalize(r.Remedy), 1000), " ."))
		}
		b.WriteString("\n")
	}
	return markdown.Paragraphs(
		addressed(p.By, fmt.Sprintf("nothing was published: the commits violate %s of the push gate.", words.Many(len(p.Refusals), "rule"))),
		b.String(),
		"The work is kept. Describe in a comment how to continue (the agent gets it together with this list), try again with "+p.v.say("retry")+" after changing the settings, or end the task with "+p.v.say("cancel")+".",
	)
}

// failed renders why the task stopped. Text is the reason, Hint the remedy, By the person who can act.
func (p post) failed() string {
	reason := p.Text
	if reason == "" && p.t.End != nil {
		reason = p.t.End.Reason
	}
	hint := p.Hint
	if hint == "" && p.t.End != nil {
		hint = p.t.End.Hint
	}
	reason, hint = amounts(p.t, reason), amounts(p.t, hint)
	s := addressed(p.By, "stopped while "+stoppedPhase(p.t)+": "+markdown.Sentence(markdown.Uncapitalize(reason)))
	saved := ""
	if len(p.t.Saved) > 0 && p.t.KeepsWork() && !strings.Contains(hint, "saved") {
		saved = "The work so far is saved."
	}
	return markdown.Paragraphs(
		s,
		strings.TrimSpace(strings.Join([]string{p.v.hint(hint), saved}, " ")),
		p.howToContinue(hint)+" Details are in "+p.v.log(p.t, "the log")+".",
		fmt.Sprintf("<sub>So far: %s.</sub>", effort(p.t)),
	)
}

// howToContinue returns how to continue a failed task, unless the hint says so.
func (p post) howToContinue(hint string) string {
	switch budget := p.t.End != nil && p.t.End.Class == state.ClassBudget; {
	case budget, command.IsIn(hint, "budget"), command.IsIn(hint, "retry fresh"): // the hint has the only way to continue
		return "To end the task instead, write " + p.v.say("cancel") + "."
	case command.IsIn(hint, "retry"):
		return "To start again on a new VM, write " + p.v.say("retry fresh") + "."
	}
	return fmt.Sprintf("Continue from there with %s, or on a new VM with %s.", p.v.say("retry"), p.v.say("retry fresh"))
}

// stoppedPhase returns the phase in which the task stopped.
func stoppedPhase(t *state.Task) string {
	phase := t.Resume
	if phase == "" {
		phase = t.Phase
	}
	switch phase {
	case state.PhaseFailed, state.PhaseInterrupted, state.PhaseAwaitingAnswer:
		return "at work"
	case state.PhaseAwaitingPlanApproval, state.PhaseAwaitingPreliminaryApproval, state.PhaseAwaitingPublishApproval, state.PhasePROpen, state.PhasePRClosed:
		return "waiting (" + words.Phase(phase) + ")"
	}
	return words.Phase(phase)
}

// ended renders the last comment: the reason and the totals.
func (p post) ended() string {
	t := p.t
	first := "The task has ended."
	switch {
	case t.Phase == state.PhaseDone && t.PR != nil && t.PR.State == state.PRMerged:
		first = fmt.Sprintf("%s is merged; the task is done.", markdown.Link(fmt.Sprintf("#%d", t.PR.Number), t.PR.URL))
	case t.Phase == state.PhaseDone:
		first = "The task is done."
	case t.Phase == state.PhaseCancelled:
		first = "The task was canceled."
	}
	if s := endText(t, p.v); s != "" && (t.PR == nil || t.PR.State != state.PRMerged) {
		first += " " + s
	}
	if kept := p.remainingWork(); kept != "" {
		first += " " + kept
	}
	if t.Phase == state.PhaseCancelled && p.remainingWork() != "" || t.End != nil && t.End.Class == state.ClassBack ||
		t.CanResume(p.v.Now) {
		first += " " + p.howToGoOn()
	}
	return markdown.Paragraphs(first, markdown.Fold(effort(t), markdown.Paragraphs(totals(t, p.v), stepTotals(t), vmTotals(t, p.v))))
}

// howToGoOn returns how to continue or restart an ended task.
func (p post) howToGoOn() string {
	pr := p.t.PR
	switch {
	case pr != nil && pr.State == state.PROpen:
		return fmt.Sprintf("To continue with it, write %s or assign the issue again; %s begins again without it.", p.v.say("retry"), p.v.say("restart")) + openFirst(p.t)
	case pr != nil && pr.State == state.PRClosed && p.v.Now.Before(pr.KeptUntil):
		return fmt.Sprintf("To reopen the pull request and continue, write %s or assign the issue again before %s; %s begins again without it.",
			p.v.say("retry"), p.v.clock(pr.KeptUntil), p.v.say("restart")) + openFirst(p.t)
	case p.t.CanResume(p.v.Now):
		return fmt.Sprintf("Until %s, %s %s; %s starts a new task.", p.v.clock(p.t.End.KeptUntil), p.v.say("retry"), p.effectOfRetry(), p.v.say("plan")) + openFirst(p.t)
	}
	return p.v.say("plan") + " on the issue starts a new task." + openFirst(p.t)
}

// openFirst returns that the issue must be open for a new start if the task ended because it was closed, or with a merge, which usually
// closes it.
func openFirst(t *state.Task) string {
	if t.Phase != state.PhaseDone && (t.End == nil || t.End.Reason != state.EndIssueClosed) {
		return ""
	}
	return " The issue has to be open for that."
}

// effectOfRetry describes what `retry` does with a canceled task that has no pull request.
func (p post) effectOfRetry() string {
	t := p.t
	newest := t.NewestPlan()
	switch phase, stale := t.End.Phase, newest != nil && newest.Stale != ""; {
	case t.End.Saving:
		return "continues from there, or begins this step again if the work cannot be saved"
	case phase == state.PhaseAwaitingPublishApproval && stale:
		return "shows the changes again, for approval"
	case phase == state.PhaseAwaitingPublishApproval:
		return "has the changes wait for approval again"
	case phase.AwaitsPlan() && stale:
		return "makes a new revision of the plan"
	case phase.AwaitsPlan():
		return "has the plan wait for approval again"
	case phase == state.PhaseQueued:
		return "begins again"
	case !phase.Working() || phase == state.PhasePreliminaryPlanning || phase == state.PhasePlanning:
		return "repeats the planning"
	case t.KeepsWork():
		return "continues from it, and " + p.v.say("retry fresh") + " begins this step again without it"
	case t.Approval != nil && t.Approval.Hash != "":
		return "implements the approved plan from the beginning, because no work was saved"
	}
	return "begins the implementation again, because no work was saved"
}

// remainingWork describes the remaining work of a canceled task.
func (p post) remainingWork() string {
	t := p.t
	if t.Phase != state.PhaseCancelled {
		return ""
	}
	var s []string
	switch {
	case t.End != nil && t.End.Saving:
		s = append(s, "The agent's work is still being saved.")
	case t.Run != nil && t.Run.State == state.RunStopping:
		s = append(s, "The agent is being stopped.")
	case t.KeepsWork() && (t.PR == nil || t.PR.InRound) && t.End != nil && p.v.Now.Before(t.End.KeptUntil):
		until := ""
		if !t.CanResume(p.v.Now) { // otherwise the next sentence tells it
			until = " until " + p.v.clock(t.End.KeptUntil)
		}
		s = append(s, "The unpublished work is saved on errand's host"+until+".")
	case len(t.Saved) > 0:
		s = append(s, "Unpublished commits are saved for a while on errand's host, where only the operator can get them.")
	}
	if t.Branch.Head != "" {
		switch p.v.Branch {
		case BranchThere:
			s = append(s, "The branch "+markdown.Code(t.Branch.Name)+" stays.")
		case BranchGone:
			s = append(s, "The branch "+markdown.Code(t.Branch.Name)+" was deleted.")
		}
	}
	if t.PR != nil && t.PR.State == state.PROpen {
		s = append(s, "The pull request "+markdown.Link(fmt.Sprintf("#%d", t.PR.Number), t.PR.URL)+" is still open.")
	}
	if t.PR != nil && t.PR.State == state.PRClosed && p.v.Now.Before(t.PR.KeptUntil) {
		s = append(s, "The pull request "+markdown.Link(fmt.Sprintf("#%d", t.PR.Number), t.PR.URL)+" is closed.")
	}
	return strings.Join(s, " ")
}

// totals returns a table with the task's cost and time.
func totals(t *state.Task, v View) string {
	end := v.Now
	if t.End != nil && !t.End.At.IsZero() {
		end = t.End.At
	}
	whole := ""
	if len(t.History) > 0 {
		whole = words.Span(end.Sub(t.History[0].At))
	}
	head, row := "Runs | Agent time | Review rounds | From start to end", fmt.Sprintf("%d | %s | %d | %s", runs(t), words.Span(t.AgentTime()), t.Round, whole)
	if showsMoney(t) {
		head, row = "Cost | "+head, money(t.Money)+unpriced(t.Money)+" | "+row
	}
	table := fmt.Sprintf("| %s |\n|%s\n| %s |", head, strings.Repeat("---|", strings.Count(head, "|")+1), row)
	for i := len(t.Plans) - 1; i >= 0; i-- {
		if p := &t.Plans[i]; p.Kind == state.PlanThorough && estimate(t, p) != "" {
			return table + "\n\nEstimate in the plan: " + markdown.Sentence(estimate(t, p))
		}
	}
	return table
}
