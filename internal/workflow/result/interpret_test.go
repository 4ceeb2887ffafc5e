package result_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/result"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

var ended = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// interpreted feeds lines to the interpreter of a run and ends it.
func interpreted(t *testing.T, r state.Run, x runlog.Exit, lines ...string) (state.RunResult, []runlog.Event) {
	t.Helper()
	p, err := workflowtest.Patterns()
	workflowtest.Check(t, err)
	in := result.New(bare(t, p), &state.Task{}, &r)
	var events []runlog.Event
	for i, l := range lines {
		stream := runlog.StreamStdout
		if rest, ok := strings.CutPrefix(l, "stderr: "); ok {
			stream, l = runlog.StreamStderr, rest
		}
		events = append(events, in.Line(runlog.Line{Seq: int64(i + 1), Time: ended, Stream: stream, Text: l})...)
	}
	x.EndedAt = ended
	return in.Exit(x), events
}

// said returns the last line of an agent in Claude's format.
func said(text string) string {
	return fmt.Sprintf(`{"type":"result","subtype":"success","is_error":false,"num_turns":3,"result":%q,"session_id":"s-1","total_cost_usd":0.125,"modelUsage":{"claude-sonnet-5":{"inputTokens":100,"cacheReadInputTokens":20,"cacheCreationInputTokens":3,"outputTokens":45,"costUSD":0.125}}}`, text)
}

const started = `{"type":"system","subtype":"init","session_id":"s-1","model":"claude-sonnet-5","tools":[],"cwd":"/w"}`

func TestInterpretAgents(t *testing.T) {
	t.Parallel()
	exit0 := runlog.Exit{Cause: runlog.CauseExited}
	for name, c := range map[string]struct {
		kind  state.RunKind
		exit  runlog.Exit
		lines []string
		want  state.RunResult
	}{
		"a plan": {state.RunPreliminary, exit0, []string{started, said("Do it.\n\n```errand\n{\"outcome\":\"build\",\"summary\":\"Mend\",\"files\":[\"a.go\"],\"approaches\":[{\"number\":1,\"title\":\"Trim\"},{\"number\":2,\"title\":\"Loop\"}],\"estimate\":{\"size\":\"S\",\"minutes\":5,\"cost_usd\":0.5}}\n```\n")},
			state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "Do it.", Outcome: "build", Summary: "Mend", Files: []string{"a.go"}, Approaches: []string{"Trim", "Loop"}, Estimate: "size S, about 5 min, $0.50"}},
		"a plan without the block":     {state.RunPlan, exit0, []string{started, said("Just do it.")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "Just do it.", Outcome: "build"}},
		"work without the block":       {state.RunImplement, exit0, []string{started, said("Mended.")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "Mended.", Outcome: "done"}},
		"a question":                   {state.RunPlan, exit0, []string{started, said("```errand\n{\"outcome\":\"question\",\"question\":\"Which?\"}\n```")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Outcome: "question", Question: "Which?"}},
		"a report":                     {state.RunPlan, exit0, []string{started, said("It is by design.\n```errand\n{\"outcome\":\"report\"}\n```")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "It is by design.", Outcome: "report"}},
		"a single approach":            {state.RunPreliminary, exit0, []string{started, said("Do it.\n```errand\n{\"outcome\":\"build\",\"approaches\":[{\"number\":1,\"title\":\"Trim\"}]}\n```")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "Do it.", Outcome: "build"}},
		"four approaches are too many": {state.RunPreliminary, exit0, []string{started, said("Do it.\n```errand\n{\"approaches\":[{\"number\":1,\"title\":\"A\"},{\"number\":2,\"title\":\"B\"},{\"number\":3,\"title\":\"C\"},{\"number\":4,\"title\":\"D\"}]}\n```")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "Do it.", Outcome: "build", Approaches: []string{"A", "B", "C"}}},
		"answers in threads":           {state.RunReview, exit0, []string{started, said("Done.\n```errand\n{\"outcome\":\"done\",\"threads\":[{\"id\":\"thread:1:2\",\"answer\":\"Mended\",\"commit\":\"abc\"}]}\n```")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "Done.", Outcome: "done", Threads: []state.ThreadAnswer{{ID: "thread:1:2", Answer: "Mended", Commit: "abc"}}}},
		"secrets are redacted":         {state.RunImplement, exit0, []string{started, said("The key is " + workflowtest.Secret + "\n```errand\n{\"outcome\":\"done\",\"title\":\"Use " + workflowtest.Secret + "\"}\n```")}, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "The key is [redacted: known-value]", Outcome: "done", Title: "Use [redacted: known-value]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, events := interpreted(t, state.Run{ID: "r-1", Kind: c.kind}, c.exit, c.lines...)
			c.want.Session, c.want.Turns, c.want.Ended = "s-1", 3, ended
			c.want.Money = state.Money{InputTokens: 123, OutputTokens: 45, MicroUSD: 125_000}
			c.want.Used = &state.Usage{Input: 100, Output: 45, CacheRead: 20, CacheWrite: 3}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			for _, e := range events {
				if e.Seq == 0 || e.Time.IsZero() || strings.Contains(e.Text+e.Input, workflowtest.Secret) {
					t.Errorf("got event %+v", e)
				}
			}
		})
	}
}

// TestInterpretEnds: the end of a run determines whether it is retried.
func TestInterpretEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exit    runlog.Exit
		session string
		lines   []string
		status  state.RunStatus
		class   state.RunClass
	}{
		"killed on request":        {runlog.Exit{Cause: runlog.CauseStopped, Code: 130}, "", []string{started}, "interrupted", "retryable"},
		"killed":                   {runlog.Exit{Cause: runlog.CauseExited, Code: 137, Signal: "killed"}, "", []string{started}, "crashed", "retryable"},
		"too long":                 {runlog.Exit{Cause: runlog.CauseDuration}, "", []string{started}, "duration", "fatal"},
		"no such session":          {runlog.Exit{Cause: runlog.CauseExited, Code: 1}, "s-9", []string{"stderr: No conversation found with session ID: s-9"}, state.StatusNoSession, "retryable"},
		"fills the disk":           {runlog.Exit{Cause: runlog.CauseExited, DiskFull: true}, "", []string{started}, state.StatusVMLost, "retryable"},
		"reports success and dies": {runlog.Exit{Cause: runlog.CauseLost}, "", []string{started}, "lost", "retryable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := interpreted(t, state.Run{ID: "r-1", Kind: state.RunPlan, RunLaunch: state.RunLaunch{Session: c.session}}, c.exit, c.lines...)
			if got.Status != c.status || got.Class != c.class || got.Outcome != "" || !got.Ended.Equal(ended) {
				t.Errorf("got %s (%s), outcome %q; want %s (%s)", got.Status, got.Class, got.Outcome, c.status, c.class)
			}
			if full := got.VMEndReason == state.VMEndDiskFull; full != c.exit.DiskFull {
				t.Errorf("got end %q of the VM", got.VMEndReason)
			}
		})
	}
}

func TestInterpretChecks(t *testing.T) {
	t.Parallel()
	green := `{"type":"check_result","name":"test","code":0,"duration":1000000000,"tail":"ok"}`
	red := `{"type":"check_result","name":"lint","code":1,"tail":"bad ` + workflowtest.Secret + `"}`
	done := `{"type":"checks_done","ok":true,"head":"h"}`
	for name, c := range map[string]struct {
		exit   runlog.Exit
		lines  []string
		status state.RunStatus
		class  state.RunClass
		checks []state.CheckResult
	}{
		"passed and failed": {runlog.Exit{Cause: runlog.CauseExited}, []string{green, red, done}, "ok", "success", []state.CheckResult{
			{Name: "test", Command: "test", Duration: time.Second, Tail: "ok"}, {Name: "lint", Command: "lint", Code: 1, Tail: "bad [redacted: known-value]"},
		}},
		"could not be run": {runlog.Exit{Cause: runlog.CauseExited, Code: 1}, []string{`{"type":"checks_done","ok":false,"error":"no worktree"}`}, "crashed", "fatal", nil},
		"cut short":        {runlog.Exit{Cause: runlog.CauseExited}, []string{green}, "crashed", "fatal", []state.CheckResult{{Name: "test", Command: "test", Duration: time.Second, Tail: "ok"}}},
		"stopped":          {runlog.Exit{Cause: runlog.CauseStopped}, nil, "interrupted", "retryable", nil},
		"disk full":        {runlog.Exit{Cause: runlog.CauseLost, DiskFull: true}, nil, state.StatusVMLost, "retryable", nil},
		"lost":             {runlog.Exit{Cause: runlog.CauseLost}, []string{green, done}, "lost", "retryable", []state.CheckResult{{Name: "test", Command: "test", Duration: time.Second, Tail: "ok"}}},
		"babble":           {runlog.Exit{Cause: runlog.CauseExited}, []string{"not JSON", `{"type":"other"}`, `{"type":"check_result","code":"x"}`, done}, "ok", "success", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := interpreted(t, state.Run{ID: "r-1", Kind: state.RunCheck}, c.exit, c.lines...)
			if got.Status != c.status || got.Class != c.class {
				t.Errorf("got %s (%s), %q; want %s (%s)", got.Status, got.Class, got.Message, c.status, c.class)
			}
			if diff := cmp.Diff(c.checks, got.Checks); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
		})
	}
	got, _ := interpreted(t, state.Run{ID: "r-1", Kind: state.RunCheck}, runlog.Exit{Cause: runlog.CauseExited}, workflowtest.Numbered(`{"type":"check_result","name":"n%d"}`, 500)...)
	if len(got.Checks) > 100 {
		t.Errorf("got %d checks from a VM", len(got.Checks))
	}
}

// FuzzInterpret: the agent controls the output of a VM, so all input must be handled.
func FuzzInterpret(f *testing.F) {
	for _, s := range []string{started, said("x\n```errand\n{}\n```"), `{"type":"check_result"}`, `{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]}}`, "null", "[]", "{"} {
		f.Add(true, s, "stderr")
		f.Add(false, s, "")
	}
	p, err := workflowtest.Patterns()
	if err != nil {
		f.Fatal(err)
	}
	cfg := bare(f, p)
	f.Fuzz(func(t *testing.T, agent bool, out, errs string) {
		r := state.Run{ID: "r", Kind: state.RunCheck}
		if agent {
			r.Kind = state.RunPlan
		}
		in := result.New(cfg, &state.Task{}, &r)
		for i, l := range strings.Split(out, "\n") {
			in.Line(runlog.Line{Seq: int64(i + 1), Stream: runlog.StreamStdout, Text: l})
		}
		in.Line(runlog.Line{Seq: 1 << 20, Stream: runlog.StreamStderr, Text: errs})
		res := in.Exit(runlog.Exit{Cause: runlog.CauseExited})
		if res.Class != state.RunSucceeded && res.Class != state.RunRetryable && res.Class != state.RunFatal || res.Status == "" {
			t.Errorf("got result %+v", res)
		}
		if strings.Contains(res.Text+res.Question+res.Title+res.Summary+res.Message, workflowtest.Secret) {
			t.Error("got a secret in the result")
		}
	})
}

// TestGatesNeedResults: a gate of the repository whose result is missing is no success, whatever else succeeded.
func TestGatesNeedResults(t *testing.T) {
	t.Parallel()
	p, err := workflowtest.Patterns()
	if err != nil {
		t.Fatal(err)
	}
	const test, gate, done = `{"type":"check_result","name":"test","code":0}`, `{"type":"check_result","name":"coverage: 91 %","code":0,"gate":true}`, `{"type":"checks_done","ok":true}`
	for name, tt := range map[string]struct {
		gates settings.Gates
		lines []string
		want  state.RunClass
	}{
		"none":            {settings.Gates{}, []string{test, done}, state.RunSucceeded},
		"all":             {settings.Gates{Coverage: 85}, []string{test, gate, done}, state.RunSucceeded},
		"missing":         {settings.Gates{Coverage: 85}, []string{test, done}, state.RunFatal},
		"one of two":      {settings.Gates{Coverage: 85, Mutation: 85}, []string{test, gate, done}, state.RunFatal},
		"both":            {settings.Gates{Coverage: 85, Mutation: 85}, []string{test, gate, gate, done}, state.RunSucceeded},
		"names of no use": {settings.Gates{Coverage: 85}, []string{strings.Replace(test, "test", "coverage", 1), done}, state.RunFatal},
	} {
		in := result.New(bare(t, p), &state.Task{TaskIssue: state.TaskIssue{Settings: settings.Settings{Gates: tt.gates}}}, &state.Run{ID: "r", Kind: state.RunCheck})
		for i, l := range tt.lines {
			in.Line(runlog.Line{Seq: int64(i + 1), Stream: runlog.StreamStdout, Text: l})
		}
		if got := in.Exit(runlog.Exit{Cause: runlog.CauseExited}); got.Class != tt.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestInterpretRedactsAcrossLines: a private key on standard error is in no event and no result, and names of checks
// contain no secret.
func TestInterpretRedactsAcrossLines(t *testing.T) {
	t.Parallel()
	const line = "MIIEpAIBAAKCAQEAx1y2z3"
	res, events := interpreted(t, state.Run{Kind: state.RunImplement}, runlog.Exit{Cause: runlog.CauseExited, Code: 1},
		started, "stderr: -----BEGIN PRIVATE "+"KEY-----", "stderr: "+line, "stderr: "+line, "stderr: -----END PRIVATE "+"KEY-----", "stderr: no more")
	if all := fmt.Sprint(res, events); strings.Contains(all, line) || !strings.Contains(all, "no more") {
		t.Errorf("%s", all)
	}
	res, events = interpreted(t, state.Run{Kind: state.RunCheck}, runlog.Exit{Cause: runlog.CauseExited},
		fmt.Sprintf(`{"type":"check_result","name":%q,"code":1,"tail":%q}`, strings.Repeat("x", 290)+workflowtest.Secret, workflowtest.Secret[3:]+" is the end"), `{"type":"checks_done"}`)
	if all := fmt.Sprint(res, events); strings.Contains(all, workflowtest.Secret[:5]) || strings.Contains(all, workflowtest.Secret[3:]) {
		t.Errorf("%s", all)
	}
}

// TestAnswersWithoutAPlan: an empty answer is not posted, whatever its closing block; the agent is informed.
func TestAnswersWithoutAPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   state.RunKind
		answer string
		class  state.RunClass
		text   string
	}{
		"an empty plan":                {state.RunPlan, "", "retryable", ""},
		"an empty preliminary plan":    {state.RunPreliminary, " \n", "retryable", ""},
		"a plan with only a block":     {state.RunPlan, "```errand\n{\"outcome\":\"build\",\"summary\":\"Mend\"}\n```", "retryable", ""},
		"a report with only a block":   {state.RunPlan, "```errand\n{\"outcome\":\"report\"}\n```", "retryable", ""},
		"a report with only a summary": {state.RunPlan, "```errand\n{\"outcome\":\"already_fixed\",\"summary\":\"In 1.2.\"}\n```", "success", "In 1.2."},
		"a question with only a block": {state.RunPlan, "```errand\n{\"outcome\":\"question\",\"question\":\"Which?\"}\n```", "success", ""},
		"work without text":            {state.RunImplement, "", "success", ""},
		"a review without text":        {state.RunReview, "", "success", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := interpreted(t, state.Run{ID: "r-1", Kind: c.kind}, runlog.Exit{Cause: runlog.CauseExited}, started, said(c.answer))
			if got.Class != c.class || got.Text != c.text || (got.Class == state.RunSucceeded) != (got.Message == "") {
				t.Errorf("got %s (%s) %q with %q", got.Status, got.Class, got.Message, got.Text)
			}
		})
	}
}

// TestTruncatedLinesAreReported: a truncated line is reported, and its missing content is not assumed.
func TestTruncatedLinesAreReported(t *testing.T) {
	t.Parallel()
	green := `{"type":"check_result","name":"test","code":0}`
	done := `{"type":"checks_done","ok":true,"head":"h"}`
	for name, c := range map[string]struct {
		kind  state.RunKind
		lines []runlog.Line
		want  state.RunStatus
		says  string
	}{
		"an omitted plan":           {state.RunPlan, []runlog.Line{{Text: started}, {Stream: runlog.StreamRunner, Text: "9 lines were left out here.", Cut: 99}}, "answer_cut", "more than errand keeps"},
		"a plan":                    {state.RunPlan, []runlog.Line{{Text: started}, {Text: `{"type":"result","subtype":"success","num_turns":2,"result":"Do`, Cut: 5_000_000}}, "answer_cut", "longer than the 4 MiB"},
		"checks":                    {state.RunCheck, []runlog.Line{{Text: `{"type":"check_result","name":"test","code":`, Cut: 9}, {Text: done}}, "crashed", "too long"},
		"omitted checks":            {state.RunCheck, []runlog.Line{{Stream: runlog.StreamRunner, Text: "9 lines were left out here.", Cut: 99}, {Text: green}, {Text: done}}, "crashed", "too long"},
		"a failed check is missing": {state.RunCheck, []runlog.Line{{Text: green}, {Text: strings.Replace(done, "true", "false", 1)}}, "crashed", "its result is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := workflowtest.Patterns()
			workflowtest.Check(t, err)
			in := result.New(bare(t, p), &state.Task{}, &state.Run{ID: "r-1", Kind: c.kind})
			told := ""
			for i, l := range c.lines {
				if l.Seq = int64(i + 1); l.Stream == "" {
					l.Stream = runlog.StreamStdout
				}
				for _, e := range in.Line(l) {
					told += e.Text
				}
			}
			if got := in.Exit(runlog.Exit{Cause: runlog.CauseExited}); got.Status != c.want || !strings.Contains(got.Message, c.says) || got.Class != state.RunFatal {
				t.Errorf("got %s (%s) %q", got.Status, got.Class, got.Message)
			}
			if c.kind == state.RunPlan && !strings.Contains(told, "5000000 bytes of it are missing") && !strings.Contains(told, "9 lines were left out") {
				t.Errorf("got message %q", told)
			}
		})
	}
}

// bare returns a task with the data that interpreters need.
func bare(t testing.TB, p *secretscan.Patterns) result.Config {
	t.Helper()
	agents, err := registry.New(registry.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return result.Config{Agents: agents, Redact: trust.NewRedactor(p, workflowtest.Secret)}
}

// TestOutcomesAreThoseOfAgents: the outcome that an agent's block names is stored without a translation.
func TestOutcomesAreThoseOfAgents(t *testing.T) {
	t.Parallel()
	var named []state.Outcome
	for _, k := range agent.OutcomeKinds() {
		named = append(named, state.Outcome(k))
	}
	if want := state.Outcomes(); !slices.Equal(named, want) {
		t.Errorf("blocks name %v, want %v", named, want)
	}
}
