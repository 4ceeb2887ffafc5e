package codex_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/codex"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	record = flag.Bool("record", false, "run the real program on the simulated model and write its output to testdata")
)

// recordings are the recorded runs of the real Codex: the common ones, as far as it supports them, and some of its
// own.
func recordings() map[string]agenttest.Recording {
	all := agenttest.Recordings()
	delete(all, "max_turns") // it has no such bound
	turns := func(t ...agenttest.Turn) agenttest.Scenario { return agenttest.Scenario{{Turns: t}} }
	all["thinking"] = agenttest.Recording{Scenario: turns(agenttest.Turn{Thinking: "What is it about?", Text: "Nothing."})}
	all["no_credit"] = agenttest.Recording{Scenario: turns(agenttest.Turn{Status: 402, Message: "You exceeded your quota."})}
	all["usage_limit"] = agenttest.Recording{Scenario: turns(agenttest.Turn{Status: 429, Message: "The usage limit has been reached"})}
	all["too_long"] = agenttest.Recording{Scenario: turns(agenttest.Turn{Status: 400, Message: "the conversation is too long"})}
	all["empty_at_last"] = agenttest.Recording{Scenario: turns(agenttest.Turn{Text: "I look around.", Bash: []string{"true"}}, agenttest.Turn{})}
	all["bad_key"] = agenttest.Recording{Scenario: turns(agenttest.Turn{Status: 401, Message: "Incorrect API key provided"})}
	all["invalid"] = agenttest.Recording{Scenario: turns(agenttest.Turn{Status: 400, Message: "Unsupported value"})}
	all["forbidden"] = agenttest.Recording{Scenario: turns(agenttest.Turn{Status: 403, Message: "errand: the task's cap of $5.00 is reached"})}
	all["turns_used_up"] = agenttest.Recording{Scenario: turns(
		agenttest.Turn{Bash: []string{"true"}}, agenttest.Turn{Status: 403, Message: "errand: the run's turns are used up (1)"},
	)}
	denied := func(shell ...string) agenttest.Recording {
		return agenttest.Recording{
			Scenario: turns(agenttest.Turn{Bash: []string{"touch made"}}, agenttest.Turn{Bash: []string{"install made other"}}, agenttest.Turn{Bash: []string{"touch denied"}}, agenttest.Turn{Text: "Done."}),
			Spec:     func(s *agent.Spec) { s.Shell, s.Deny = shell, []string{"Bash(touch denied:*)"} },
		}
	}
	all["denied"] = denied() // by its own rules
	all["denied_by_hook"] = denied("touch")
	return all
}

// TestRecorded parses recorded output of the real command line and compares events and judgment with a golden file.
// With -record it runs the real program first.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for name, rec := range recordings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if *record {
				rec.Write(t, filepath.Join("testdata", name+".jsonl"), realHarness(t))
			}
			agenttest.CheckRecording(t, name, codex.New(agent.Program{}), *update)
		})
	}
}
