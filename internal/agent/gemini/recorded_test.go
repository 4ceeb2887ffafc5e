package gemini_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/gemini"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	record = flag.Bool("record", false, "run the real program on the simulated model and write its output to testdata")
)

// recordings are ways to end that the real Gemini CLI 0.61.0 was seen in.
func recordings() map[string]struct {
	turns []agenttest.Turn
	want  agent.Status
} {
	type recorded = struct {
		turns []agenttest.Turn
		want  agent.Status
	}
	all := map[string]recorded{
		"tools":          {[]agenttest.Turn{{Text: "Looking.", Bash: []string{"echo hi"}}, {Text: "Done."}}, agent.StatusOK},
		"empty":          {[]agenttest.Turn{{}}, agent.StatusRefused},
		"empty_at_last":  {[]agenttest.Turn{{Text: "Looking.", Bash: []string{"echo hi"}}, {}}, agent.StatusRefused},
		"max_tokens":     {[]agenttest.Turn{{Stop: "max_tokens"}}, agent.StatusContextOverflow},
		"malformed_call": {[]agenttest.Turn{{Stop: "MALFORMED_FUNCTION_CALL"}}, agent.StatusCrashed},
		"cut":            {[]agenttest.Turn{{Text: "all of it, word by word", Cut: 1}}, agent.StatusNetwork},
		"cut_at_last":    {[]agenttest.Turn{{Text: "Looking.", Bash: []string{"echo hi"}}, {Text: "all of it, word by word", Cut: 1}}, agent.StatusNetwork},
	}
	for name, reason := range map[string]string{
		"safety": "SAFETY", "recitation": "RECITATION", "other": "OTHER", "prohibited": "PROHIBITED_CONTENT", "blocklist": "BLOCKLIST", "spii": "SPII",
		"image_safety": "IMAGE_SAFETY",
	} {
		all[name] = recorded{[]agenttest.Turn{{Stop: reason}}, agent.StatusRefused}
	}
	// Of the end of an answer that has some text, the program says nothing: the gateway knows it (gateway.Ending).
	for name, reason := range map[string]string{
		"safety_after_text": "SAFETY", "prohibited_after_text": "PROHIBITED_CONTENT", "recitation_after_text": "RECITATION", "other_after_text": "OTHER",
		"max_tokens_after_text": "max_tokens",
	} {
		all[name] = recorded{[]agenttest.Turn{{Text: "Looking.", Bash: []string{"echo hi"}}, {Text: "This much can be", Stop: reason}}, agent.StatusOK}
	}
	all["safety_at_last"] = recorded{[]agenttest.Turn{{Text: "Looking.", Bash: []string{"echo hi"}}, {Stop: "SAFETY"}}, agent.StatusRefused}
	return all
}

// TestRecorded parses recorded output of the real command line and compares events and judgment with a golden file.
// With -record, and ERRAND_TEST_FULL set, it runs the real program first.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for name, rec := range recordings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if *record {
				agenttest.Recording{Scenario: agenttest.Scenario{{Turns: rec.turns}}}.Write(t, filepath.Join("testdata", name+".jsonl"), realHarness(t))
			}
			result := agenttest.CheckRecording(t, name, gemini.New(agent.Program{}), *update)
			if result.Status != rec.want {
				t.Errorf("status %q (%s), want %q", result.Status, result.Reason+result.Said, rec.want)
			}
		})
	}
}
