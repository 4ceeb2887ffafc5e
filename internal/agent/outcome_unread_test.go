package agent_test

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
)

func TestRecoverOutcome(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		block string
		want  agent.Outcome
	}{
		"a quote in the question":      {`{"outcome": "question", "question": "Which "world" do you mean?", "title": "x"}`, agent.Outcome{Kind: agent.OutcomeQuestion, Question: `Which "world" do you mean?`, Title: "x"}},
		"no quotes at all":             {`{outcome: blocked, question: Which one?}`, agent.Outcome{Kind: agent.OutcomeBlocked, Question: "Which one?"}},
		"cut off":                      {`{"outcome":"question","question":"Is it the first or`, agent.Outcome{Kind: agent.OutcomeQuestion, Question: "Is it the first or"}},
		"a comma too much":             {"{\n  \"outcome\": \"done\",\n  \"title\": \"Greet\",\n}\n", agent.Outcome{Kind: agent.OutcomeDone, Title: "Greet"}},
		"escapes that are right":       {`{"outcome":"question","question":"One\nor \"two\"?" oh`, agent.Outcome{Kind: agent.OutcomeQuestion, Question: "One\nor \"two\"?\" oh"}},
		"YAML":                         {"outcome: Report\n", agent.Outcome{Kind: agent.OutcomeReport}},
		"a kind of its own":            {`{"outcome": "ask", "question": "Which?"}`, agent.Outcome{Question: "Which?"}},
		"only a word that is so named": {`{"summary": "the outcome is a question",}`, agent.Outcome{}},
		"nothing":                      {"\n", agent.Outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, block := agent.RecoverOutcome("Words.\n\n```errand\n" + tc.block + "\n```\n")
			if diff := cmp.Diff(tc.want, o); diff != "" || len(block) < len(tc.block) {
				t.Errorf("of %q (-want +got):\n%s", block, diff)
			}
		})
	}
	if o, block := agent.RecoverOutcome("Words, and no block. \"outcome\": \"done\""); o.Kind != "" || block != "" {
		t.Errorf("of no block: %+v, %q", o, block)
	}
}

func FuzzRecoverOutcome(f *testing.F) {
	f.Add("```errand\n{\"outcome\": \"question\", \"question\": \"Which \"world\"?\"}\n```")
	f.Add("```errand\n{\"outcome\": build, \"title\": \"\\u12\"")
	f.Fuzz(func(t *testing.T, text string) {
		o, block := agent.RecoverOutcome(text)
		if utf8.ValidString(text) && (!utf8.ValidString(o.Question) || !utf8.ValidString(o.Title)) || len(block) > len(text) {
			t.Errorf("question %q, title %q of %q", o.Question, o.Title, block)
		}
	})
}
