package agent_test

import (
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/runlog"
)

// codexRecordings are the recorded runs of the real Codex: the common ones, as far as it supports them, and some of its
// own.
func codexRecordings() map[string]recording {
	all := recordings()
	delete(all, "max_turns") // it has no such bound
	turns := func(t ...agenttest.Turn) agenttest.Scenario { return agenttest.Scenario{{Turns: t}} }
	all["thinking"] = recording{scenario: turns(agenttest.Turn{Thinking: "What is it about?", Text: "Nothing."})}
	all["no_credit"] = recording{scenario: turns(agenttest.Turn{Status: 402, Message: "You exceeded your quota."})}
	all["usage_limit"] = recording{scenario: turns(agenttest.Turn{Status: 429, Message: "The usage limit has been reached"})}
	all["too_long"] = recording{scenario: turns(agenttest.Turn{Status: 400, Message: "the conversation is too long"})}
	all["empty_at_last"] = recording{scenario: turns(agenttest.Turn{Text: "I look around.", Bash: []string{"true"}}, agenttest.Turn{})}
	all["bad_key"] = recording{scenario: turns(agenttest.Turn{Status: 401, Message: "Incorrect API key provided"})}
	all["invalid"] = recording{scenario: turns(agenttest.Turn{Status: 400, Message: "Unsupported value"})}
	all["forbidden"] = recording{scenario: turns(agenttest.Turn{Status: 403, Message: "errand: the task's cap of $5.00 is reached"})}
	all["turns_used_up"] = recording{scenario: turns(
		agenttest.Turn{Bash: []string{"true"}}, agenttest.Turn{Status: 403, Message: "errand: the run's turns are used up (1)"},
	)}
	denied := func(shell ...string) recording {
		return recording{
			scenario: turns(agenttest.Turn{Bash: []string{"touch made"}}, agenttest.Turn{Bash: []string{"install made other"}}, agenttest.Turn{Bash: []string{"touch denied"}}, agenttest.Turn{Text: "Done."}),
			spec:     func(s *agent.Spec) { s.Shell, s.Deny = shell, []string{"Bash(touch denied:*)"} },
		}
	}
	all["denied"] = denied() // by its own rules
	all["denied_by_hook"] = denied("touch")
	return all
}

// TestCodexRecorded parses recorded output of the real command line and compares events and judgment with a golden
// file. With -record it runs the real program first.
func TestCodexRecorded(t *testing.T) {
	t.Parallel()
	for name, rec := range codexRecordings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", "codex", name+".jsonl")
			if *record {
				writeRecording(t, path, rec, codexHarness(t))
			}
			events, result := readRecording(t, path, agent.NameCodex)
			golden(t, filepath.Join("testdata", "codex", name+".golden.json"), struct {
				Events []runlog.Event
				Result agent.Result
			}{events, result})
		})
	}
}
