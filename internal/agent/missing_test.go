package agent_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/runlog"
)

// TestAnswerWithMissingOutputIsRefused: text before dropped lines is not the answer, nor is an answer with missing chunks. A
// complete answer after them is.
func TestAnswerWithMissingOutputIsRefused(t *testing.T) {
	t.Parallel()
	gap := runlog.Line{Stream: runlog.StreamRunner, Text: "9 lines were left out here.", Cut: 99}
	for name, d := range dialects() {
		answer := d.answer("Done.")
		end, piece := agent.StatusAnswerCut, agent.StatusAnswerCut
		if d.final != nil { // which is whole
			end, piece = agent.StatusOK, agent.StatusOK
		} else if name == agent.NameCodex {
			piece = agent.StatusOK // a message is never in pieces
		}
		begin := append([]string{d.begin}, strings.Split(d.say("I look around."), "\n")...)
		for what, tc := range map[string]struct {
			before, after []string
			want          agent.Status
		}{
			"all of the rest": {begin, nil, agent.StatusAnswerCut},
			"all but the end": {begin, answer[len(answer)-1:], end},
			"a piece":         {begin, answer, piece},
			"before work":     {begin, append([]string{d.tool, d.output}, answer...), agent.StatusOK},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				r := agenttest.NewReader(newAdapter(t, agent.Config{Adapter: name, Command: []string{"x"}}), agent.Spec{})
				for _, text := range tc.before {
					r.Line(runlog.Line{Stream: runlog.StreamStdout, Text: text})
				}
				r.Line(gap)
				for _, text := range tc.after {
					r.Line(runlog.Line{Stream: runlog.StreamStdout, Text: text})
				}
				if res := r.Exit(runlog.Exit{Cause: runlog.CauseExited}, false); res.Status != tc.want {
					t.Errorf("%s: %s %q", res.Status, res.Why+res.Said, res.Text)
				}
			})
		}
	}
}
