package codex_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/codex"
	"github.com/errand-bot/errand/internal/runlog"
)

// TestRefusedCallsAreCounted: Codex reports denials on standard error only, in the wording of the pinned version; the
// recordings "denied" and "denied_by_hook" contain it verbatim. Other errors and the output of commands do not count.
func TestRefusedCallsAreCounted(t *testing.T) {
	t.Parallel()
	const at = "2026-11-22T05:56:39.783491Z "
	for line, want := range map[string]int{
		at + "ERROR codex_core::tools::router: error=Command blocked by PreToolUse hook: The rules of this run refuse this call (Bash(git push:*)).. Command: git push":                                           1,
		at + "ERROR codex_core::tools::router: error=exec_command failed: CreateProcess { message: \"Rejected(\\\"`/bin/bash -lc 'git push'` rejected: policy forbids commands starting with `git push`\\\")\" }": 1,
		at + "ERROR codex_core::tools::router: error=exec_command failed: CreateProcess { message: \"No such file or directory\" }":                                                                               0,
		"Command blocked by PreToolUse hook: by hand": 0,
		"": 0,
	} {
		for name, read := range map[string]func(string) agent.Result{
			"parser": func(s string) agent.Result {
				p := codex.New(agent.Program{Command: []string{"codex"}}).NewParser()
				p.(agent.StderrParser).StderrLine(s)
				return p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited}})
			},
			"reader": func(s string) agent.Result {
				r := agenttest.NewReader(codex.New(agent.Program{Command: []string{"codex"}}), agent.Spec{})
				r.Line(runlog.Line{Seq: 1, Stream: runlog.StreamStderr, Text: s})
				r.Line(runlog.Line{Seq: 2, Stream: runlog.StreamStdout, Text: s})
				return r.Exit(runlog.Exit{Cause: runlog.CauseExited}, false)
			},
		} {
			if got := len(read(line).Denials); got != want {
				t.Errorf("%s: %d denials of %q, want %d", name, got, line, want)
			}
		}
	}
}
