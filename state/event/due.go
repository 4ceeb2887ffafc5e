package event

import (
	"strings"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// Due is a delayed job whose time has come. For determines which of the other fields are set.
type Due struct {
	For  state.DueKind      `json:"due"`
	Plan string             `json:"plan,omitempty"`    // hash
	Run  string             `json:"due_run,omitempty"` // id; "run" is that of the event
	VM   string             `json:"vm,omitempty"`      // name
	Head string             `json:"head,omitempty"`    // commit
	Mode settings.SleepMode `json:"mode,omitempty"`    // with Ref
	Ref  string             `json:"ref,omitempty"`
	// Insured is set if the idle VM shall stay for another paid span, because no other one may be available.
	Insured bool `json:"insured,omitempty"`
	// Reread, of state.DueComments and state.DueSteer, is the present form of the gathered comments that were edited or withdrawn.
	Reread []state.Comment `json:"reread,omitempty"`
	// Waiting says, of state.DueSpan, why the VM may not stay for another paid span.
	Waiting *state.Waiting `json:"waiting,omitempty"`
}

// NewDue returns the payload of a delayed job with the arguments "what" and "key" that it was stored with.
func NewDue(what state.DueKind, key string) Due {
	d := Due{For: what}
	switch what {
	case state.DueRemind, state.DueExpire:
		d.Plan = key
	case state.DueQuestion, state.DueTurns, state.DueSteer:
		d.Run = key
	case state.DueIdle, state.DueSpan:
		d.VM = key
	case state.DueChecks, state.DueDraft:
		d.Head = key
	case state.DueForget:
		mode, ref, _ := strings.Cut(key, ":")
		d.Mode, d.Ref = settings.SleepMode(mode), ref
	}
	return d
}
