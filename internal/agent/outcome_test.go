package agent_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/google/go-cmp/cmp"
)

// outcomeCase is a final answer and the expected outcome.
type outcomeCase struct {
	text    string
	want    agent.Outcome
	rest    string
	wantErr string
}

func outcomeCases() map[string]outcomeCase {
	return map[string]outcomeCase{
		"no block": {text: "Just words.\n", rest: "Just words."},
		"empty":    {},
		"a plan": {
			text: "# Plan\n\nDo it.\n\n```errand\n" + `{"outcome":"build","files":["a.go"],` +
				`"estimate":{"size":"S","minutes":12.5},"approaches":[{"n":1,"title":"A"},{"n":2,"title":"B"}]}` + "\n```\n",
			rest: "# Plan\n\nDo it.",
			want: agent.Outcome{
				Kind: agent.OutcomeBuild, Files: []string{"a.go"},
				Estimate:   &agent.Estimate{Size: "S", Minutes: 12.5},
				Approaches: []agent.Approach{{N: 1, Title: "A"}, {N: 2, Title: "B"}},
			},
		},
		"titles and words as the prompt asks for them": {
			text: "```errand\n{\"estimate\":\"small, 2 files\",\"approaches\":[\"A\",\"B\"]}\n```",
			want: agent.Outcome{
				Estimate:   &agent.Estimate{Words: "small, 2 files"},
				Approaches: []agent.Approach{{N: 1, Title: "A"}, {N: 2, Title: "B"}},
			},
		},
		"approaches out of order": {
			text: "```errand\n{\"approaches\":[{\"n\":2,\"title\":\"B\"},{\"n\":1,\"title\":\"A\"}]}\n```",
			want: agent.Outcome{Approaches: []agent.Approach{{N: 1, Title: "A"}, {N: 2, Title: "B"}}},
		},
		"threads with ids of both forms": {
			text: "```errand\n{\"threads\":[{\"id\":17,\"answer\":\"yes\"},{\"id\":\"PRRT_x\",\"answer\":\"no\",\"commit\":\"abc\"}]}\n```",
			want: agent.Outcome{Threads: []agent.ThreadAnswer{{ID: "17", Answer: "yes"}, {ID: "PRRT_x", Answer: "no", Commit: "abc"}}},
		},
		"words after the block stay": {
			text: "before\n```errand\n{\"outcome\":\"done\"}\n```\nafter", rest: "before\nafter",
			want: agent.Outcome{Kind: agent.OutcomeDone},
		},
		"the last of two counts": {
			text: "```errand\n{\"outcome\":\"build\"}\n```\nor rather\n```errand\n{\"outcome\":\"report\"}\n```", rest: "or rather",
			want: agent.Outcome{Kind: agent.OutcomeReport},
		},
		"a block quoted in another is text": {
			text: "````md\n```errand\n{\"outcome\":\"done\"}\n```\n````",
			rest: "````md\n```errand\n{\"outcome\":\"done\"}\n```\n````",
		},
		"never closed":           {text: "x\n```errand\n{\"outcome\":\"done\"}", rest: "x", want: agent.Outcome{Kind: agent.OutcomeDone}},
		"tildes and Windows":     {text: "x\r\n~~~ errand\r\n{\"outcome\":\"blocked\"}\r\n~~~\r\n", rest: "x", want: agent.Outcome{Kind: agent.OutcomeBlocked}},
		"another language":       {text: "```json\n{\"outcome\":\"done\"}\n```", rest: "```json\n{\"outcome\":\"done\"}\n```"},
		"unknown fields are let": {text: "```errand\n{\"outcome\":\"done\",\"mood\":\"good\"}\n```", want: agent.Outcome{Kind: agent.OutcomeDone}},
		"indented code is text":  {text: "a\n    ```errand\n    {}\n    ```", rest: "a\n    ```errand\n    {}\n    ```"},
		"empty block":            {text: "a\n```errand\n```", rest: "a", wantErr: "it is empty"},
		"broken JSON":            {text: "a\n```errand\n{\n\"outcome\": done}\n```", rest: "a", wantErr: "line 2"},
		"half JSON":              {text: "```errand\n{\"outcome\":\"do", wantErr: "ends too early"},
		"two objects":            {text: "```errand\n{}{}\n```", wantErr: "more than one"},
		"unknown outcome":        {text: "```errand\n{\"outcome\":\"maybe\"}\n```", wantErr: "use one of build, report"},
		"wrong type":             {text: "```errand\n{\"title\":7}\n```", wantErr: "title must not be a number"},
		"a list":                 {text: "```errand\n[]\n```", wantErr: "the block must not be a array"},
		"a thread twice":         {text: "```errand\n{\"threads\":[{\"id\":1},{\"id\":\"1\"}]}\n```", wantErr: "occurs twice"},
		"approach 0":             {text: "```errand\n{\"approaches\":[{\"n\":1,\"title\":\"x\"},{\"title\":\"y\"}]}\n```", wantErr: "below 1"},
		"too long":               {text: "```errand\n{\"title\":\"" + strings.Repeat("x", 600<<10) + "\"}\n```", wantErr: "at most"},
	}
}

func TestParseOutcome(t *testing.T) {
	t.Parallel()
	for name, tc := range outcomeCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, rest, err := agent.ParseOutcome(tc.text)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want one with %q", err, tc.wantErr)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.rest, rest); diff != "" {
				t.Errorf("rest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutcomeOr(t *testing.T) {
	t.Parallel()
	if got := (agent.Outcome{}).Or(agent.OutcomeBuild); got != agent.OutcomeBuild {
		t.Errorf("an outcome without a kind is %q, want build", got)
	}
	if got := (agent.Outcome{Kind: agent.OutcomeDone}).Or(agent.OutcomeBuild); got != agent.OutcomeDone {
		t.Errorf("an outcome with a kind is %q, want done", got)
	}
}

func FuzzParseOutcome(f *testing.F) {
	f.Add("x\n```errand\n{\"outcome\":\"done\"}\n```\ny")
	f.Add("````\n```errand\n{}\n````\n~~~errand\n{\"threads\":[{\"id\":1}]}")
	f.Add("```errand\n```errand\n```")
	f.Fuzz(func(t *testing.T, text string) {
		o, rest, err := agent.ParseOutcome(text)
		if err != nil && !cmp.Equal(o, agent.Outcome{}) {
			t.Errorf("an error with an outcome: %v, %+v", err, o)
		}
		if len(rest) > len(text) {
			t.Errorf("the rest is longer than the text")
		}
		again, rest2, err := agent.ParseOutcome(rest)
		if err != nil || !cmp.Equal(again, agent.Outcome{}) || rest2 != rest {
			t.Errorf("the rest still holds a block: %q -> %q, %v", rest, rest2, err)
		}
	})
}
