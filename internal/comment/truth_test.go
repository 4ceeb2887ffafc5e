package comment

import (
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
)

// lowerStart finds a paragraph, or a text that is listed as withheld, that begins with a small letter.
var lowerStart = regexp.MustCompile("(?m)(?:\\A|\n\n)(?:- \\[?)?[a-z]")

// TestSentencesBeginWithACapital: with and without a mention.
func TestSentencesBeginWithACapital(t *testing.T) {
	t.Parallel()
	// Names are listed as they are.
	names := map[string]bool{"question/existing": true, "changes/first": true, "changes/round": true, "waiting/other": true}
	bot := state.Person{ID: 9, Login: "ci[bot]", Bot: true}
	for name, s := range everything() {
		for who, by := range map[string]state.Person{"nobody": {}, "a bot": bot} {
			task := *s.task
			task.Trigger.By, s.post.By = by, by
			text := Render(&task, s.post, view(""))
			text = regexp.MustCompile("(?s)```.*?(```|$)").ReplaceAllString(text, "CODE")
			if at := lowerStart.FindStringIndex(text); at != nil && !names[name] {
				t.Errorf("%s, addressed to %s, at %q:\n%s", name, who, text[at[0]:at[1]], text)
			}
		}
	}
}

// TestCommandsHaveAMention: people copy commands, and a command without a mention has no effect.
func TestCommandsHaveAMention(t *testing.T) {
	t.Parallel()
	bare := regexp.MustCompile("`(retry|replan|cancel|budget|plan|approve|create pr)[ `]")
	for name, s := range everything() {
		if name == "reply/help" || name == "reply/too_many" {
			continue // they list commands, as they are or as a person wrote them
		}
		if got := Render(s.task, s.post, view("")); bare.MatchString(got) {
			t.Errorf("%s: %s in\n%s", name, bare.FindString(got), got)
		}
	}
	for name, task := range statuses() {
		if got := Status(task, view("")); bare.MatchString(got) {
			t.Errorf("status %s: %s in\n%s", name, bare.FindString(got), got)
		}
	}
}

// TestHintIsNotRepeated: a comment names `retry`, and that the work is saved, only once.
func TestHintIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hint                  string
		retries, fresh, saved int
	}{
		"none":           {"", 1, 1, 1},
		"retry":          {"Comment `retry` to do the work again.", 1, 1, 1},
		"retry fresh":    {"Comment `retry fresh` to do the work again on a new VM.", 0, 1, 1},
		"both":           {"Comment `retry` to continue from here, or `retry fresh` for a new VM.", 1, 1, 1},
		"more turns":     {"Write `retry turns=60` to let it go on for longer.", 1, 1, 1},
		"saved already":  {"Its work is saved. Raise the limit, then comment `retry`.", 1, 1, 1},
		"more hours":     {state.HintVMHours, 0, 0, 1},
		"something else": {"Name another model with `model NAME`.", 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Render(with(failed), state.Post{Kind: state.PostFailed, By: writer, Text: "It broke.", Hint: c.hint}, view(""))
			fresh := strings.Count(got, "`@errand retry fresh`")
			retries := strings.Count(got, "`@errand retry") - fresh
			if saved := strings.Count(got, "saved"); retries != c.retries || fresh != c.fresh || saved != c.saved {
				t.Errorf("retry %d times, fresh %d, saved %d:\n%s", retries, fresh, saved, got)
			}
		})
	}
}

// TestLastCommentAgreesWithTheBranch: it says that a branch stays only if the branch was just seen.
func TestLastCommentAgreesWithTheBranch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		branch     BranchState
		says, lies string
	}{
		"there":   {BranchThere, "The branch `errand/7-div-panics` stays.", "deleted"},
		"deleted": {BranchGone, "The branch `errand/7-div-panics` was deleted.", "stays"},
		"unknown": {BranchUnknown, "The pull request [#8](https://github.example/octo/calc/pull/8) is still open", "The branch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := view("")
			v.Branch = c.branch
			got := Render(with(cancelled), state.Post{Kind: state.PostEnded, By: writer}, v)
			if !strings.Contains(got, c.says) || strings.Contains(got, c.lies) {
				t.Errorf("wrong text:\n%s", got)
			}
		})
	}
}

// TestWaitingTaskShowsNoRun: the status comment of a waiting task shows no current step.
func TestWaitingTaskShowsNoRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*state.Task)
		now    bool
	}{
		"for other issues":             {func(t *state.Task) { t.Phase, t.Step = state.PhaseQueued, state.JobStart }, false},
		"for a VM":                     {func(t *state.Task) { implementing(t); t.Run.State = state.RunLaunching }, false},
		"for an edit while it runs":    {func(t *state.Task) { implementing(t); t.Run.State = state.RunActive }, true},
		"for nothing, it is launching": {func(t *state.Task) { implementing(t); t.Run.State = state.RunLaunching; t.Waiting = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := with(func(t *state.Task) {
				t.Waiting = &state.Waiting{Kind: state.WaitBlocked, Detail: "blocked by octo/calc#3", Since: at(30)}
				c.change(t)
			})
			for _, got := range []string{Status(task, view("")), Render(task, state.Post{Kind: state.PostReply, Reason: state.ReplyStatus}, view(""))} {
				if strings.Contains(got, "**Now:**") != c.now {
					t.Errorf("wrong text:\n%s", got)
				}
			}
		})
	}
}
