package walk

import (
	"fmt"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// ask lets an agent ask people a question through errand's tools, and store a note; the question is sent twice, as
// after a lost answer.
func (w *world) ask(r *run) {
	key, err := state.ParseTaskKey(r.on.owner)
	if err != nil || r.step == "check" || !w.errand.up() {
		return
	}
	question := state.Call{ID: "q-" + r.spec.ID, Tool: state.CallAsk, Result: &state.Conclusion{Outcome: "question", Question: fmt.Sprintf("Which one of the %d?", w.machines.runs)}}
	for _, c := range []state.Call{
		{ID: "n-" + r.spec.ID, Tool: state.CallNote, Note: &state.Note{Kind: state.NoteFact, Text: "It turns."}}, question, question,
	} {
		out, err := w.kept(event.Event{Task: key, Run: r.spec.ID, Payload: event.ToolCalled{Call: c}})
		if err != nil {
			if w.errand.up() {
				w.fatalf("call a tool in run %s: %v", r.spec.ID, err)
			}
			return
		}
		t := out.Task
		r.asked = t != nil && t.Run != nil && t.Run.ID == r.spec.ID && t.Run.Conclusion != nil
	}
	if r.asked {
		w.hit("asked through a tool")
	}
}
