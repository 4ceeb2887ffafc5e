package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// maxPhases is the number of phases that the status comment lists.
const maxPhases = 6

// maxWithheld is the number of withheld texts that are listed.
const maxWithheld = 3

// maxFacts is the number of facts above the fold of the status comment.
const maxFacts = 5

// Status renders the status comment: the state of the task, the action that it is waiting for, and its cost. It
// has at most 15 lines, including the marker of v.Key, which may be empty, and counting its folded part as one.
func Status(t *state.Task, v View) string {
	now := awaited(t, v)
	if t.Locked {
		now += " The conversation is locked, so errand cannot comment: its comments are posted when somebody unlocks it."
	}
	list := facts(t, v)
	shown := min(len(list), maxFacts)
	title, more := "Details", markdown.Paragraphs(bullets(list[shown:]), phaseTable(t, v))
	if n := len(t.Context.Withheld); n > 0 {
		title = fmt.Sprintf("Details, and %s withheld from the agent", words.Many(n, "text"))
		more = markdown.Paragraphs(more, withheldList(t))
	}
	if more != "" {
		more = markdown.Fold(title, more)
	}
	return v.marked(markdown.Paragraphs(
		"### "+headline(t),
		now,
		bullets(list[:shown]),
		more,
		fmt.Sprintf("<sub>%s · %s, %s or %s at the start of a comment · updated %s</sub>",
			v.log(t, "Log"), v.say("help"), v.say("status"), v.say("cancel"), v.clock(v.Now)),
	))
}

func bullets(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return "- " + strings.Join(list, "\n- ")
}

// headline returns the phase and the kind of wait. Of a task that is held up it names the phase only as the next one.
func headline(t *state.Task) string {
	s, next := words.Phase(t.Phase), t.Resume
	switch {
	case t.IsHeldUp() && t.Phase != state.PhaseInterrupted:
		s, next = "waiting for "+words.Wait(t.Waiting.Kind), t.Phase
	case t.Waiting != nil && !t.Ended():
		s += ", waiting for " + words.Wait(t.Waiting.Kind)
	}
	if next != "" && (t.IsHeldUp() || t.Phase == state.PhaseInterrupted) {
		s += "; next: " + words.Phase(next)
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// awaited returns the event or action that the task is waiting for. Where a person must act, it names no particular one:
// anybody with write access may.
func awaited(t *state.Task, v View) string {
	const waiting, who = "**Waiting for:** ", "a person with write access"
	switch t.Awaited() {
	case state.AwaitedCondition:
		return "**Waiting:** " + awaitedCondition(t, v)
	case state.AwaitedPosting:
		return "Nothing for you to do yet: " + words.ApprovalSubject(t.Phase) + " about to be posted."
	case state.AwaitedRevision:
		if t.NewestPlan().Publish != nil {
			return waiting + v.say("retry") + " by " + who + ", which shows the changes again; the posted ones can no longer be approved."
		}
		return waiting + "a request for a new revision by " + who + "; the current one can no longer be approved."
	case state.AwaitedApproval:
		p := t.NewestPlan()
		revision := markdown.Link(fmt.Sprintf("revision %d", p.Revision), p.CommentURL)
		return waiting + fmt.Sprintf("a 👍 on %s (%s), by %s, or a comment that requests a change.", revision, markdown.ShortHash(p.Hash), who)
	case state.AwaitedComment:
		return waiting + "a comment by " + who + "."
	case state.AwaitedRestart:
		return waiting + v.say("retry") + ", or a comment that says how to continue."
	case state.AwaitedAnswer:
		return waiting + "an answer to " + markdown.Link("the question", commentURL(t, t.Question.Comment)) + ", by " + who + "."
	case state.AwaitedMerge:
		if t.AwaitsReady() {
			return readyText(t)
		}
		if t.IsMergedByErrand() {
			return mergeText(t)
		}
		return waiting + "a merge; the pull request is approved and ready."
	case state.AwaitedReview:
		if p := t.PR; p != nil && p.Repair != nil && p.Repair.HandedOver && p.Checks == "failure" {
			return waiting + "a look at the failing checks by " + who + "; a push, a review or a comment lets errand try again."
		}
		if t.AwaitsReady() {
			return readyText(t)
		}
		if t.IsMergedByErrand() {
			return mergeText(t)
		}
		return waiting + "a review or a merge of the pull request by " + who + "."
	case state.AwaitedReopening:
		s := waiting + "a decision. The pull request was closed without a merge; reopen it, or write " + v.say("retry") + ", to continue."
		if t.PR != nil && !t.PR.KeptUntil.IsZero() {
			s += " The work is kept until " + v.clock(t.PR.KeptUntil) + "; then the task is canceled."
		}
		return s
	case state.AwaitedResumption:
		return "Nothing for you to do: the task continues automatically. " + v.say("retry") + " continues it immediately."
	case state.AwaitedBudget:
		return waiting + "a command by " + who + ". " + endText(t, v)
	case state.AwaitedRetry:
		act := v.say("retry")
		if t.End != nil && (command.IsIn(t.End.Hint, "retry") || command.IsIn(t.End.Hint, "budget")) {
			act = "a command"
		}
		return waiting + act + " by " + who + ". " + endText(t, v)
	case state.AwaitedEnd:
		s := strings.TrimSpace("The task has ended. " + endText(t, v))
		if t.CanResume(v.Now) {
			s += " Until " + v.clock(t.End.KeptUntil) + ", " + v.say("retry") + " continues it." + openFirst(t)
		} else if t.Phase == state.PhaseCancelled && t.CanContinuePR(v.Now) {
			s += " Its pull request is " + string(t.PR.State) + ". " + post{t: t, v: v}.howToGoOn()
		}
		return s
	}
	return "Nothing for you to do right now. Comments are picked up at any time."
}

// awaitedCondition describes the condition that a task waits for, to be written after a colon.
func awaitedCondition(t *state.Task, v View) string {
	w := t.Waiting
	s := v.reason(amounts(t, w.Detail))
	if w.Place > 0 {
		return words.Ordinal(w.Place) + " in the queue for a VM. " + markdown.Capitalize(s) +
			" The task starts automatically when a VM is free; tasks that wait for people give theirs up."
	}
	if !w.Until.IsZero() {
		s += " Next attempt: " + v.clock(w.Until) + "."
	}
	if w.Hint != "" {
		s += " " + v.hint(amounts(t, w.Hint))
	}
	if t.Phase == state.PhaseInterrupted && w.Kind == state.WaitLimit {
		s += " To retry immediately, write " + v.say("retry") + "."
	}
	return s
}

func endText(t *state.Task, v View) string {
	if t.End == nil {
		return ""
	}
	return strings.TrimSpace(markdown.Sentence(markdown.Capitalize(amounts(t, t.End.Reason))) + " " + v.hint(amounts(t, t.End.Hint)))
}

// phaseTable returns a table of the latest phases with their times.
func phaseTable(t *state.Task, v View) string {
	if len(t.History) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| Phase | Began | Took | Why |\n|---|---|---|---|\n")
	first := max(0, len(t.History)-maxPhases)
	if first > 0 {
		fmt.Fprintf(&b, "| *%s before* | | | |\n", words.Many(first, "phase"))
	}
	for i := first; i < len(t.History); i++ {
		h := t.History[i]
		took := "so far " + words.Span(v.Now.Sub(h.At))
		if i+1 < len(t.History) {
			took = words.Span(t.History[i+1].At.Sub(h.At))
		} else if t.Ended() {
			took = ""
		}
		phase := words.Phase(h.Phase)
		if i+1 == len(t.History) && t.IsHeldUp() && h.Phase.Working() {
			phase += " (waiting)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", phase, v.clock(h.At), took, markdown.Cell(markdown.Line(amounts(t, h.Reason), 100)))
	}
	return b.String()
}

// facts returns the items of the status comment, the most important first.
func facts(t *state.Task, v View) []string {
	var list []string
	add := func(label, text string) {
		if text != "" {
			list = append(list, "**"+label+":** "+text)
		}
	}
	add("Now", stepText(t, v))
	add("For the agent", messagesText(t))
	if p := t.NewestPlan(); p != nil {
		label := "Plan"
		if p.Publish != nil {
			label = "To publish"
		}
		add(label, planState(t, p, v))
	}
	if t.PR != nil {
		add("Pull request", prState(t.PR))
		if t.PR.State == state.PROpen {
			add("Checks", checksText(t.PR))
			add("Flaky", flakyText(t.PR))
		}
		if t.PR.Unstated != "" {
			add("Provenance", "the signed statement is missing or out of date. "+markdown.Sentence(markdown.Line(t.PR.Unstated, 200)))
		}
		if t.PR.DCO && t.PR.State == state.PROpen {
			add("Sign-off", "the DCO check fails. "+dcoRemedy(t, v))
		}
	}
	add("Base", updatedText(t))
	if runs(t) > 0 {
		s := effort(t)
		if showsMoney(t) {
			s += unpriced(t.Money)
		}
		add("So far", s)
	}
	add("Steps done", lastStep(t))
	if t.Branch.Name != "" {
		add("Branch", markdown.Code(t.Branch.Name)+" from "+markdown.Code(t.Branch.Base))
	}
	add("Since the plan", launchNotes(t))
	add("VM", vmFact(t, v))
	if t.Trigger.By.IsOperator() {
		s := "by the operator of this errand"
		if t.Frozen.By.IsOperator() {
			s += ", who vouched for the issue's title and text"
		}
		add("Started", s)
	}
	if n := len(t.Saved); n > 0 {
		add("Saved work", "from "+v.clock(t.Saved[n-1].At)+", "+markdown.Line(t.Saved[n-1].Reason, 80))
	}
	if len(t.Context.Stripped) > 0 {
		add("Hidden content", "removed from the text before the agent saw it: "+markdown.Line(strings.Join(t.Context.Stripped, ", "), 400))
	}
	if t.Ignored > 0 {
		add("Ignored", words.Many(t.Ignored, "attempt")+" by people without write access")
	}
	return list
}

// launchNotes returns the notes that the newest agent run got in addition to the plan.
func launchNotes(t *state.Task) string {
	last := t.Run
	for i := len(t.Runs) - 1; last == nil && i >= 0; i-- {
		if t.Runs[i].Kind != state.RunCheck {
			last = &t.Runs[i]
		}
	}
	if last == nil || len(last.Notes) == 0 {
		return ""
	}
	return markdown.Line(strings.Join(last.Notes, ", "), 150)
}

// runs counts the runs that began. One that waits for a VM has not.
func runs(t *state.Task) int {
	n := 0
	for i := range t.Runs {
		if !t.Runs[i].Started.IsZero() {
			n++
		}
	}
	if t.Run != nil && !t.Run.Started.IsZero() {
		n++
	}
	return n
}

// stepText returns the current run or step with its last activity. It is empty while the task waits.
func stepText(t *state.Task, v View) string {
	r := t.Run
	if t.IsHeldUp() {
		return ""
	}
	if r != nil && r.State == state.RunLaunching {
		return fmt.Sprintf("run %d is about to start", r.Seq)
	}
	if r == nil {
		if t.Step != "" && t.Phase.Working() {
			return words.Step(t.Step)
		}
		return ""
	}
	s := fmt.Sprintf("%s, run %d", words.Running(r.Kind), r.Seq)
	if t.Round > 0 {
		s += fmt.Sprintf(" of round %d", t.Round)
	}
	if r.Model != "" {
		s += ", " + markdown.Code(r.Model)
	}
	if r.Turns > 0 {
		s += ", " + words.Many(r.Turns, "turn")
	}
	if r.Doing != "" {
		s += ": " + markdown.Line(r.Doing, 100)
	}
	if !r.LastActivity.IsZero() {
		s += fmt.Sprintf(" (last activity %s, %s ago)", v.clock(r.LastActivity), words.Span(v.Now.Sub(r.LastActivity)))
	}
	return s
}

// messagesText returns whose messages are being passed to the working agent.
func messagesText(t *state.Task) string {
	list := t.Undelivered()
	if len(list) == 0 || t.Run == nil || t.Run.Kind == state.RunCheck {
		return ""
	}
	subject := "a message by " + name(list[0].By) + " is"
	if len(list) > 1 {
		subject = fmt.Sprintf("%s, the first by %s, are", words.Many(len(list), "message"), name(list[0].By))
	}
	if t.Run.State == state.RunLaunching {
		return subject + " passed to it when it starts"
	}
	return subject + " passed to it after its current step"
}

// planState returns the newest plan and its approval.
func planState(t *state.Task, p *state.Plan, v View) string {
	s := fmt.Sprintf("%s, revision %d, %s", words.Plan(p.Kind), p.Revision, markdown.Link(markdown.ShortHash(p.Hash), p.CommentURL))
	a := t.Approval
	if p.Publish != nil {
		a = p.Publish.Approved
	}
	switch {
	case a != nil && a.Hash == p.Hash:
		return s + fmt.Sprintf(", approved by %s (%s) at %s", name(a.By), words.Via(a.Via), v.clock(a.Given))
	case p.Stale != "":
		return s + ", can no longer be approved"
	case p.Superseded && t.IsHeldUp():
		return s + ", to be revised"
	case p.Superseded:
		return s + ", being revised"
	case len(t.Held) > 0:
		condition := "if the comments on the plan change nothing"
		if p.Kind == state.PlanPublish {
			condition = "only if the comments on the changes are withdrawn"
		}
		return s + fmt.Sprintf(", approved by %s (%s), which counts %s", name(t.Held[0].By), words.Via(t.Held[0].Via), condition)
	case t.Gathering != nil || t.ConsideredPlan() != nil:
		return s + ", not approved yet; comments on it are considered first"
	}
	return s + ", not approved yet"
}

// withheld returns the folded list of texts that the agent cannot see.
func withheld(t *state.Task) string {
	if len(t.Context.Withheld) == 0 {
		return ""
	}
	return markdown.Fold(fmt.Sprintf("%s withheld from the agent", words.Many(len(t.Context.Withheld), "text")), withheldList(t))
}

// withheldList returns the list of texts that the agent cannot see, of which there is at least one.
func withheldList(t *state.Task) string {
	list := t.Context.Withheld
	var b strings.Builder
	for i, w := range list {
		if i == maxWithheld {
			fmt.Fprintf(&b, "- and %d more\n", len(list)-i)
			break
		}
		what := markdown.Link("A comment", commentURL(t, w.ID))
		if w.ID == 0 {
			what = "The issue's own text"
		}
		fmt.Fprintf(&b, "- %s by %s: %s\n", what, name(w.By), markdown.Sentence(w.Reason))
	}
	return b.String() + "\nA 👍 on it by a person with write access lets the agent see it."
}
