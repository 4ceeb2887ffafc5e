package event

import (
	"strings"

	"github.com/errand-bot/errand/state"
)

// DueKind is the purpose of a delayed job.
type DueKind string

// The delayed jobs. Their strings are stored.
const (
	DueRemind  DueKind = "remind"  // people may be reminded of Plan
	DueExpire  DueKind = "expire"  // Plan has waited for too long
	DueResume  DueKind = "resume"  // an interrupted task may continue
	DueRecheck DueKind = "recheck" // the thing that the task waits for may have come
	DueClosed  DueKind = "closed"  // the issue was closed while a pull request is open
	DueTwin    DueKind = "twin"    // a second copy of a comment may have appeared
	DueAsk     DueKind = "asked"   // Run asked a question and should have ended
	DueTurns   DueKind = "turns"   // Run was refused more turns and should have ended
	DueIdle    DueKind = "idle"    // VM may have been idle for long enough
	DueSpan    DueKind = "vm_span" // another paid span of VM is about to begin
	DueUnused  DueKind = "unused"  // nobody has needed the sleeping work for long
	DueForget  DueKind = "forget"  // Ref, the sleeping work of an ended task, is to be deleted for good
)

// Due is a delayed job whose time has come. For determines which of the other fields are set.
type Due struct {
	For  DueKind         `json:"due"`
	Plan string          `json:"plan,omitempty"`    // hash
	Run  string          `json:"due_run,omitempty"` // id; "run" is that of the event
	VM   string          `json:"vm,omitempty"`      // name
	Mode state.SleepMode `json:"mode,omitempty"`    // with Ref
	Ref  string          `json:"ref,omitempty"`
	// Insured is set if the idle VM shall stay for another paid span, because no other one may be available.
	Insured bool `json:"insured,omitempty"`
	// Waiting says, of DueSpan, why the VM may not stay for another paid span.
	Waiting *state.Waiting `json:"waiting,omitempty"`
}

// NewDue returns the payload of a delayed job with the arguments "what" and "key" that it was stored with.
func NewDue(what DueKind, key string) Due {
	d := Due{For: what}
	switch what {
	case DueRemind, DueExpire:
		d.Plan = key
	case DueAsk, DueTurns:
		d.Run = key
	case DueIdle, DueSpan:
		d.VM = key
	case DueForget:
		mode, ref, _ := strings.Cut(key, ":")
		d.Mode, d.Ref = state.SleepMode(mode), ref
	}
	return d
}
