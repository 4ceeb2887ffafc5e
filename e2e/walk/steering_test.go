package walk

import (
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// Messages of writers reach an agent: those to a working one soon, all of them in the end.

// message is a comment of a writer that is a message for the agent of a task.
type message struct {
	word
	run   string    // the run of the agent that worked when errand acknowledged the message, if one did
	since time.Time // when
	kind  state.RunKind
	got   bool // a prompt has it
}

func (o *message) token() string { return fmt.Sprintf("say-%dx", o.said.id) }

// steers records a message for the agent.
func (m *model) steers(o word) {
	body := strings.TrimPrefix(o.said.body(), "@errand ")
	if o.order && strings.HasPrefix(strings.TrimPrefix(body, "after: "), "say-") {
		m.messages = append(m.messages, &message{word: o})
	}
}

// acknowledged records that errand reacted to a comment. If the comment has a message for the working agent, errand must
// now interrupt the agent, unless the message waits for the run's end.
func (m *model) acknowledged(c *comment) {
	for _, o := range m.messages {
		t := m.taskBy(o.task)
		if o.said != c || o.run != "" || strings.Contains(c.body(), "after: ") || t == nil || t.Run == nil {
			continue
		}
		if t.Run.State == state.RunActive && t.Run.Kind != state.RunCheck && t.Waiting == nil {
			o.run, o.since, o.kind = t.Run.ID, m.w.now, t.Run.Kind
			m.w.hit("message to a working agent")
		}
	}
}

// prompted records the messages that a run's prompt has. A message that waits for a run's end is in no prompt before.
func (m *model) prompted(r *run) {
	for _, o := range m.messages {
		if strings.Contains(r.spec.Stdin, o.token()) {
			if o.run != "" && !o.got {
				m.w.hit("message delivered")
			}
			o.got = true
		}
	}
}

// isOpen reports whether a message must still be delivered, and returns its task.
func (m *model) isOpen(o *message) (*state.Task, bool) {
	t := m.taskBy(o.task)
	gone := t == nil || t.Gen != o.life || t.Ended() || o.said.gone || len(o.said.bodies) > 1 || !o.by.lost.Before(o.at)
	return t, !o.got && !gone
}

// checkMessages checks that no agent works on for long without a message that errand acknowledged, and that no work is published
// without one.
func (m *model) checkMessages(end bool) {
	for _, o := range m.messages {
		t, open := m.isOpen(o)
		if !open {
			continue
		}
		if r := t.Run; r != nil && r.ID == o.run && r.State == state.RunActive && t.Waiting == nil && m.late(o.since, machine.DefaultPolicy().GatherTalk+soon) {
			m.w.fatalf("steering: run %s of task %s was not interrupted for the %v since %s: %v", o.run, t.Key, &o.word, sub(o.since), m.w.jobsOf(t))
		}
		if o.kind == state.RunImplement && (t.Phase == state.PhasePROpen || t.Phase == state.PhaseAwaitingPublishApproval) {
			m.w.fatalf("steering: the work of task %s is %s, but its agent did not get the %v", t.Key, t.Phase, &o.word)
		}
		if end && (t.Phase == state.PhasePROpen || t.Phase.AwaitsPlan()) {
			m.w.fatalf("steering: no agent of task %s (%s) got the %v of %s: %v", t.Key, t.Phase, &o.word, sub(o.at), t.Feedback)
		}
	}
}

// tellAgent writes a message to an agent that works, on the issue or the pull request. The agent ends soon, or takes long.
func tellAgent(w *world) bool {
	by := w.writer()
	for _, t := range w.tasks() {
		if by == nil || t.Run == nil || t.Run.State != state.RunActive || t.Run.Kind == state.RunCheck {
			continue
		}
		on := w.hub.issues[t.Key.Issue]
		if t.PR != nil && w.roll("message where", 2) == 1 && w.hub.issues[t.PR.Number] != nil {
			on = w.hub.issues[t.PR.Number]
		}
		for _, o := range w.machines.list {
			if r := o.run(t.Run.ID); r != nil && r.exit == nil {
				r.ends = w.now.Add([]time.Duration{5 * time.Second, min(10*time.Minute, r.spec.Duration), r.ends.Sub(w.now)}[w.roll("agent takes", 3)])
			}
		}
		w.say(by, on, "@errand "+[]string{"SAY use a map", "SAY no panics, please", "after: SAY add a test"}[w.roll("message", 3)])
		w.pass([]time.Duration{2 * time.Second, 15 * time.Second, 2 * time.Minute}[w.roll("message span", 3)])
		return true
	}
	return false
}
