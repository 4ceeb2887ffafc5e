package comment

import (
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// waits returns every kind of wait of a task.
func waits() []state.Waiting {
	var list []state.Waiting
	for _, kind := range []state.WaitKind{
		state.WaitBlocked, state.WaitVM, state.WaitMoney, state.WaitLimit, state.WaitKey, state.WaitConfig,
		state.WaitPermission, state.WaitEdit, state.WaitText, state.WaitDisabled, state.WaitPaused,
	} {
		list = append(list, state.Waiting{Kind: kind, Detail: "it waits", Since: at(30), Until: at(59)})
	}
	return append(list, state.Waiting{Kind: state.WaitVM, Place: 3, Detail: "3 of 3 VMs are in use", Since: at(30), Until: at(59)})
}

// work matches every sentence by which a comment says that errand or an agent works.
var work = func() *regexp.Regexp {
	list := []string{
		`\*\*Now:\*\*`, "agent is", "at work", "already working", "in progress", "about to start", "being revised", "being stopped",
		regexp.QuoteMeta(words.Running("")),
	}
	for _, kind := range []state.RunKind{state.RunPreliminary, state.RunPlan, state.RunImplement, state.RunCheck, state.RunReview} {
		list = append(list, regexp.QuoteMeta(words.Running(kind)))
	}
	for _, kind := range []state.JobKind{
		state.StepRun, state.JobStart, state.JobLaunch, state.JobCollect, state.JobShow, state.JobCommit, state.JobMove, state.JobRebase,
		state.JobOpenPR, state.JobReopen, state.JobAnswer, state.JobGather, state.JobUpdate,
	} {
		list = append(list, regexp.QuoteMeta(words.Step(kind)))
	}
	for _, phase := range state.Phases() { // as a headline, or as the current phase
		if phase.Working() {
			list = append(list, `(?m:^### (?i:`+regexp.QuoteMeta(words.Phase(phase))+`))`, regexp.QuoteMeta(words.Phase(phase))+` \| [^|]* \| so far`,
				`phase: `+regexp.QuoteMeta(words.Phase(phase)), `\(`+regexp.QuoteMeta(words.Phase(phase))+`\)`)
		}
	}
	return regexp.MustCompile(strings.Join(list, "|"))
}()

// texts renders everything that says how far a task is.
func texts(t *state.Task) map[string]string {
	all := map[string]string{"status": Status(t, view(""))}
	for _, reason := range []string{
		state.ReplyStatus, state.ReplyNothingToCancel, state.ReplyNothingToRetry, state.ReplyNonePending, state.ReplyOneTask, state.ReplyTooLate,
		state.ReplyMessageKept,
	} {
		all["reply "+reason] = Render(t, state.Post{Kind: state.PostReply, Reason: reason, By: writer}, view(""))
	}
	return all
}

// TestNoTextClaimsWorkWhileTheTaskWaits: in no phase and during no wait, including those for people, does a comment say that
// an agent works, or is about to.
func TestNoTextClaimsWorkWhileTheTaskWaits(t *testing.T) {
	t.Parallel()
	check := func(name string, task *state.Task) {
		for where, text := range texts(task) {
			if found := work.FindString(text); found != "" {
				t.Errorf("%s: %s says %q:\n%s", name, where, found, text)
			}
		}
	}
	at1 := func(phase state.Phase, change func(*state.Task)) *state.Task {
		return with(func(t *state.Task) {
			t.Plans[2].Superseded = true
			testLife{t}.phase(phase, 34, "because")
			change(t)
		})
	}
	for _, phase := range state.Phases() {
		if !phase.Working() && phase != state.PhaseInterrupted {
			if !phase.Terminal() {
				check(string(phase)+", for people", at1(phase, func(t *state.Task) { t.Plans[2].Superseded = false }))
			}
			continue
		}
		for _, w := range waits() {
			for _, step := range []state.JobKind{state.JobLaunch, state.JobRebase} {
				name := string(phase) + ", " + string(w.Kind) + ", " + string(step)
				task := at1(phase, func(t *state.Task) { t.Waiting, t.Step, t.Resume = &w, step, state.PhaseImplementing })
				check(name, task)
				task.Run = &state.Run{Seq: 3, Kind: state.RunImplement, State: state.RunLaunching}
				check(name+", with a run that is not started", task)
			}
		}
	}
}

// TestTextsClaimTheWorkThatIsDone is the control of the test above: a task at work says so in all these texts.
func TestTextsClaimTheWorkThatIsDone(t *testing.T) {
	t.Parallel()
	task := with(func(t *state.Task) {
		implementing(t)
		t.Run.State = state.RunActive
	})
	for where, text := range texts(task) {
		if !work.MatchString(text) {
			t.Errorf("%s does not mention the work:\n%s", where, text)
		}
	}
}
