package realcli

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
)

// TestHeavySteering interrupts real programs by a message, while they wait for the model and while they execute a command. Each
// resumes its session with the message and the conversation before.
func TestHeavySteering(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	var played atomic.Int64
	t.Cleanup(func() {
		if n := played.Load(); n > 0 {
			t.Logf("PROOF: real programs: %d sessions continued with a message", n)
		}
	})
	all := programs()
	all["gemini"] = real{}
	for name, p := range all {
		for script, during := range map[string]string{"steering.yaml": "a call of the model", "steering_tool.yaml": "a command"} {
			t.Run(name+"/"+during, func(t *testing.T) {
				t.Parallel()
				p, path := p, ""
				if name == "gemini" {
					path, p = geminiProgram(t)
				} else {
					path = program(t, name)
				}
				l := startLife(t, path, script, func(c *demo.Config) {
					c.Adapter, c.Model = p.adapter, p.model
					c.Files = map[string]string{"slug.go": "package slug\n", ".errand.yml": "plan: none\n"}
				})
				issue := l.assign("Say more", "There is too little.")
				l.until(issue, "a command", func(t *state.Task) bool {
					return t.Run != nil && t.Run.Session != "" && strings.Contains(t.Run.Doing, "FIRST-COMMAND")
				})
				_, err := l.GitHub.As(demo.Maintainer).Comment(demo.Full, issue, "@errand Say MUCH-MORE.")
				check(t, err)
				task := l.until(issue, "the pull request", func(t *state.Task) bool { return t.Phase == state.PhasePROpen })
				if n := len(task.Runs); n != 2 || task.Runs[0].Status != "interrupted" || task.Runs[1].Status != "ok" || task.Runs[0].Session == "" || task.Runs[0].Session != task.Runs[1].Session {
					t.Errorf("got runs %+v, want one session that was interrupted once", task.Runs)
				}
				wants := []string{"There is too little", "Messages for you", "MUCH-MORE"}
				if name != "gemini" { // it continues an interrupted session without the tool calls of the last turn
					wants = append(wants, "FIRST-COMMAND")
				}
				l.wantContinued(wants...)
				played.Add(1)
			})
		}
	}
}

// wantContinued checks that the first request after the message has texts of it and of the conversation before.
func (l *life) wantContinued(texts ...string) {
	l.t.Helper()
	for _, r := range l.Model.Requests() {
		if r.Rule == "continued" {
			for _, want := range texts {
				if !strings.Contains(string(r.Body), want) {
					l.t.Errorf("the request after the message lacks %q: %.3000s", want, r.Body)
				}
			}
			return
		}
	}
	l.t.Error("no request after the message reached the model")
}
