package result_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/agent/command"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// repaired holds the checked fields of a run's result.
func repaired(r state.RunResult) state.RunResult {
	return state.RunResult{
		Status: r.Status, Class: r.Class, Text: r.Text, Outcome: r.Outcome, Question: r.Question, Title: r.Title, Broken: r.Broken, Guess: r.Guess, Block: r.Block,
		Threads: r.Threads,
	}
}

// TestInterpretBroken: for an unreadable block, the result has everything needed to request it again, and until then
// the readable part counts.
func TestInterpretBroken(t *testing.T) {
	t.Parallel()
	const quote = `{"outcome":"question","question":"Which "one"?"}`
	problem := `the errand block is not the requested JSON: line 1: invalid character 'o' after object key:value pair`
	for name, tc := range map[string]struct {
		kind state.RunKind
		text string
		want state.RunResult
	}{
		"a question": {state.RunImplement, "Words.\n```errand\n" + quote + "\n```", state.RunResult{
			Text: "Words.", Outcome: "question", Question: `Which "one"?`, Broken: problem, Block: quote + "\n",
		}},
		"a plan with nothing readable": {state.RunPlan, "Words.\n```errand\nbuild\n```", state.RunResult{Text: "Words.", Outcome: "build", Guess: true, Broken: "line 1: invalid character 'b'", Block: "build\n"}},
		"work with nothing readable":   {state.RunReview, "Words.\n```errand\n```", state.RunResult{Text: "Words.", Outcome: "done", Guess: true, Broken: "it is empty"}},
		"a secret in it":               {state.RunPlan, "```errand\n" + workflowtest.Secret + "\n```", state.RunResult{Outcome: "build", Guess: true, Broken: "line 1: ", Block: "[redacted: known-value]\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := interpreted(t, state.Run{ID: "r-1", Kind: tc.kind}, runlog.Exit{Cause: runlog.CauseExited}, started, said(tc.text))
			if !strings.Contains(got.Broken, tc.want.Broken) || !strings.Contains(got.Message, "closing block could not be read: ") {
				t.Errorf("got broken %q, message %q", got.Broken, got.Message)
			}
			tc.want.Status, tc.want.Class, tc.want.Broken = "ok", "success", got.Broken
			if diff := cmp.Diff(tc.want, repaired(got)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInterpretRepair: a repeated block is merged into the earlier answer, in whatever form it is given; any other
// reply to the request does not change the earlier answer.
func TestInterpretRepair(t *testing.T) {
	t.Parallel()
	before := &state.Repair{Problem: "it ends too early", Block: `{"outcome":"blocked","question":"Whose key`, Text: "What I did."}
	told := state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "What I did.", Outcome: "blocked", Question: "Whose key", Broken: before.Problem}
	exit := runlog.Exit{Cause: runlog.CauseExited}
	for name, tc := range map[string]struct {
		exit  runlog.Exit
		lines []string
		want  state.RunResult
	}{
		"as asked":        {exit, []string{started, said("```errand\n{\"outcome\":\"question\",\"question\":\"Whose?\"}\n```")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "What I did.", Outcome: "question", Question: "Whose?"}},
		"without fences":  {exit, []string{started, said("{\"outcome\":\"done\"}")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "What I did.", Outcome: "done"}},
		"as plain JSON":   {exit, []string{started, said("Here:\n```json\n{\"outcome\":\"done\",\"title\":\"x\"}\n```\n")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "What I did.", Outcome: "done", Title: "x"}},
		"by the schema":   {exit, []string{started, strings.Replace(said("so it is"), `"num_turns"`, `"structured_output":{"outcome":"question","question":"Whose?","title":null,"threads":null},"num_turns"`, 1)}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "What I did.", Outcome: "question", Question: "Whose?"}},
		"twice":           {exit, []string{started, said("{\"outcome\":\"question\"}\n{\"outcome\":\"done\",\"threads\":[{\"id\":\"1\",\"answer\":\"y\"}]}")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "What I did.", Outcome: "done", Threads: []state.ThreadAnswer{{ID: "1", Answer: "y"}}}},
		"broken again":    {exit, []string{started, said("```errand\n{\"outcome\":\"question\",\"question\":\"Whose\n```")}, told},
		"something else":  {exit, []string{started, said("I have nothing to add.")}, told},
		"no outcome":      {exit, []string{started, said("{\"title\":\"x\"}")}, told},
		"ended badly":     {runlog.Exit{Cause: runlog.CauseExited, Code: 1}, []string{started, `{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":5,"session_id":"s-1"}`}, told},
		"no session":      {runlog.Exit{Cause: runlog.CauseExited, Code: 1}, []string{"stderr: No conversation found with session ID: s-1"}, told},
		"took too long":   {runlog.Exit{Cause: runlog.CauseDuration, Code: -1}, []string{started}, told},
		"must wait":       {runlog.Exit{Cause: runlog.CauseLost}, []string{started}, state.RunResult{Status: state.StatusLost, Class: state.RunRetryable}},
		"no budget left":  {runlog.Exit{Cause: runlog.CauseExited, Code: 1}, []string{started, `{"type":"result","subtype":"error_max_budget_usd","is_error":true,"num_turns":5,"session_id":"s-1"}`}, state.RunResult{Status: state.StatusBudget, Class: state.RunFatal}},
		"was interrupted": {runlog.Exit{Cause: runlog.CauseStopped}, []string{started}, state.RunResult{Status: state.StatusInterrupted, Class: state.RunRetryable}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := interpreted(t, state.Run{ID: "r-2", RunLaunch: state.RunLaunch{Adapter: claude.Name, Repair: before}, Kind: state.RunImplement}, tc.exit, tc.lines...)
			if diff := cmp.Diff(tc.want, repaired(got)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInterpretRepairWithoutSchema: a program without support for schemas gives the block in its text, or not at all.
func TestInterpretRepairWithoutSchema(t *testing.T) {
	t.Parallel()
	before := &state.Repair{Problem: "it ends too early", Block: `{"outcome":"blocked"`, Text: "What I did."}
	for name, tc := range map[string]struct {
		said string
		want state.RunResult
	}{
		"as asked":       {"```errand\n{\"outcome\":\"done\"}\n```", state.RunResult{Outcome: "done"}},
		"broken again":   {"```errand\n{\"outcome\":\"question\",\"question\":\"Whose\n```", state.RunResult{Outcome: "question", Question: "Whose", Broken: "line 2: ", Block: "{\"outcome\":\"question\",\"question\":\"Whose\n"}},
		"something else": {"I have nothing to add.", state.RunResult{Outcome: "blocked", Broken: "there is no errand block", Block: "{\"outcome\":\"blocked\"\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := state.Run{ID: "r-2", Kind: state.RunImplement, RunLaunch: state.RunLaunch{Adapter: command.Name, Repair: before}}
			got, _ := interpreted(t, run, runlog.Exit{Cause: runlog.CauseExited}, strings.Split(tc.said, "\n")...)
			if !strings.Contains(got.Broken, tc.want.Broken) || (got.Broken == "") != (tc.want.Broken == "") {
				t.Errorf("got broken %q, want %q", got.Broken, tc.want.Broken)
			}
			tc.want.Status, tc.want.Class, tc.want.Text, tc.want.Broken = "ok", "success", "What I did.", got.Broken
			if diff := cmp.Diff(tc.want, repaired(got)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLaunchRepair: the agent is only asked for the block, in its session and its unchanged checkout; on another VM the
// work is repeated, with the same feedback.
func TestLaunchRepair(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		vm      string
		session string
		repairs bool
	}{"its VM": {"vm-1", workflowtest.Session, true}, "no session": {"vm-1", "", true}, "another VM": {"vm-2", workflowtest.Session, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Task.Phase, w.Task.Settings.Setup = state.PhaseImplementing, []settings.Command{{Run: "make deps"}}
			w.Launching(state.RunImplement)
			l := w.Launched()
			w.Task.Branch.BaseSHA = l.BaseSHA
			prepared := len(w.Host.Prepared)
			w.Host.Write(t, map[string]string{"loose.txt": "loose\n"})
			w.EndRun(state.RunSucceeded, tc.session)
			if w.Host.VM.Name = tc.vm; !tc.repairs {
				w.Host.Dir = t.TempDir() + "/other"
			}
			run := w.Launching(state.RunImplement)
			run.Session, run.Repair = tc.session, &state.Repair{Problem: "it ends too early", Block: "{\"outcome\"", Text: "What I did."}
			w.Task.Feedback = []state.Feedback{{ID: "check:1", Kind: "checks", Body: "red", TakenBy: run.ID}, {ID: "comment:5", Kind: "comment", By: w.Person("bob"), Body: "Otherwise."}}
			l = w.Launched()
			spec, prompt := w.Host.Started[1], w.Prompt()
			if l.IsRepair != tc.repairs || (len(w.Host.Prepared) == prepared) != tc.repairs || (len(l.FeedbackIDs) == 0) != tc.repairs {
				t.Errorf("got launch %+v and %d more preparations", l, len(w.Host.Prepared)-prepared)
			}
			asks := strings.Contains(prompt, `could not be read: "it ends too early"`)
			if short := spec.Duration <= 10*time.Minute && len(spec.Setup) == 0 && l.TurnLimit == 5; short != tc.repairs || asks != tc.repairs || strings.Contains(prompt, "Otherwise.") == tc.repairs {
				t.Errorf("got step %s with set-up %v and %d turns; asked for a block: %v\n%s", spec.Duration, spec.Setup, l.TurnLimit, asks, prompt)
			}
			if form := strings.Contains(strings.Join(spec.Argv, " "), `--json-schema {"additionalProperties":false,"properties":{`); form != tc.repairs {
				t.Errorf("got schema %v: %q", form, spec.Argv)
			}
			if anew := strings.Contains(prompt, "What I did.") && strings.Contains(prompt, `{"outcome"`+"\n"); anew != (tc.repairs && tc.session == "") {
				t.Errorf("earlier answer in the prompt: got %v\n%s", anew, prompt)
			}
		})
	}
}
