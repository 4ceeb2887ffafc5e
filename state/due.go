package state

// DueKind is the purpose of a job of kind JobDue; package event describes the event that it becomes.
type DueKind string

// The delayed jobs. Their strings are stored.
const (
	DueRemind    DueKind = "remind"  // people may be reminded of Plan
	DueExpire    DueKind = "expire"  // Plan has waited for too long
	DueResume    DueKind = "resume"  // an interrupted task may continue
	DueRecheck   DueKind = "recheck" // the thing that the task waits for may have come
	DueClosed    DueKind = "closed"  // the issue was closed while a pull request is open
	DueDuplicate DueKind = "twin"    // a second copy of a comment may have appeared
	DueQuestion  DueKind = "asked"   // Run asked a question and should have ended
	DueTurns     DueKind = "turns"   // Run was refused more turns and should have ended
	DueIdle      DueKind = "idle"    // VM may have been idle for long enough
	DueSpan      DueKind = "vm_span" // another paid span of VM is about to begin
	DueUnused    DueKind = "unused"  // nobody has needed the sleeping work for long
	DueForget    DueKind = "forget"  // Ref, the sleeping work of an ended task, is to be deleted for good
)
