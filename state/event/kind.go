package event

// Kind is the kind of an event. The strings are stored.
type Kind string

// KindNothing is the kind of an event without a payload, which changes nothing.
const KindNothing Kind = "nothing"

// The kinds of events, each with the name of its payload.
const (
	KindTriggered     Kind = "triggered"
	KindUntriggered   Kind = "untriggered"
	KindCommented     Kind = "commented"
	KindIssueEdited   Kind = "issue_edited"
	KindIssueClosed   Kind = "issue_closed"
	KindIssueGone     Kind = "issue_gone"
	KindPlanEdited    Kind = "plan_edited"
	KindPlanDeleted   Kind = "plan_deleted"
	KindThumb         Kind = "thumb"
	KindReviewed      Kind = "reviewed"
	KindPRClosed      Kind = "pr_closed"
	KindPushed        Kind = "pushed"
	KindChecksChanged Kind = "checks_changed"
	KindPoked         Kind = "poked"
	KindGone          Kind = "gone"
	KindBack          Kind = "back"
	KindRenamed       Kind = "renamed"
	KindLocked        Kind = "locked"
	KindUnlocked      Kind = "unlocked"

	KindProgress Kind = "progress"
	KindRunEnded Kind = "run_ended"
	KindCalled   Kind = "called"
	KindSpent    Kind = "spent"

	KindStarted    Kind = "started"
	KindHeldUp     Kind = "held_up"
	KindAsked      Kind = "asked"
	KindLaunched   Kind = "launched"
	KindPosted     Kind = "posted"
	KindStatusSent Kind = "status_sent"
	KindApproved   Kind = "approved"
	KindNoApproval Kind = "no_approval"
	KindStale      Kind = "stale"
	KindCollected  Kind = "collected"
	KindShown      Kind = "shown"
	KindCommitted  Kind = "committed"
	KindMoved      Kind = "moved"
	KindOvertaken  Kind = "overtaken"
	KindConflict   Kind = "conflict"
	KindPROpened   Kind = "pr_opened"
	KindAnswered   Kind = "answered"
	KindGathered   Kind = "gathered"
	KindSaved      Kind = "saved"
	KindCreated    Kind = "created"
	KindChecksRead Kind = "checks_read"
	KindReleased   Kind = "released"
	KindSlept      Kind = "slept"
	KindWoken      Kind = "woken"
	KindDue        Kind = "due"
	KindStepFailed Kind = "step_failed"
)

// decoders have a function for every kind that decodes its payload from JSON.
var decoders = map[Kind]func([]byte) (Payload, error){
	KindTriggered:     decode[Triggered],
	KindUntriggered:   decode[Untriggered],
	KindCommented:     decode[Commented],
	KindIssueEdited:   decode[IssueEdited],
	KindIssueClosed:   decode[IssueClosed],
	KindIssueGone:     decode[IssueGone],
	KindPlanEdited:    decode[PlanEdited],
	KindPlanDeleted:   decode[PlanDeleted],
	KindThumb:         decode[Thumb],
	KindReviewed:      decode[Reviewed],
	KindPRClosed:      decode[PRClosed],
	KindPushed:        decode[Pushed],
	KindChecksChanged: decode[ChecksChanged],
	KindPoked:         decode[Poked],
	KindGone:          decode[Gone],
	KindBack:          decode[Back],
	KindRenamed:       decode[Renamed],
	KindLocked:        decode[Locked],
	KindUnlocked:      decode[Unlocked],
	KindProgress:      decode[Progress],
	KindRunEnded:      decode[RunEnded],
	KindCalled:        decode[Called],
	KindSpent:         decode[Spent],
	KindStarted:       decode[Started],
	KindHeldUp:        decode[HeldUp],
	KindAsked:         decode[Asked],
	KindLaunched:      decode[Launched],
	KindPosted:        decode[Posted],
	KindStatusSent:    decode[StatusSent],
	KindApproved:      decode[Approved],
	KindNoApproval:    decode[NoApproval],
	KindStale:         decode[Stale],
	KindCollected:     decode[Collected],
	KindShown:         decode[Shown],
	KindCommitted:     decode[Committed],
	KindMoved:         decode[Moved],
	KindOvertaken:     decode[Overtaken],
	KindConflict:      decode[Conflict],
	KindPROpened:      decode[PROpened],
	KindAnswered:      decode[Answered],
	KindGathered:      decode[Gathered],
	KindSaved:         decode[Saved],
	KindCreated:       decode[Created],
	KindChecksRead:    decode[ChecksRead],
	KindReleased:      decode[Released],
	KindSlept:         decode[Slept],
	KindWoken:         decode[Woken],
	KindDue:           decode[Due],
	KindStepFailed:    decode[StepFailed],
}

// Kind returns [KindTriggered].
func (Triggered) Kind() Kind { return KindTriggered }

// Kind returns [KindUntriggered].
func (Untriggered) Kind() Kind { return KindUntriggered }

// Kind returns [KindCommented].
func (Commented) Kind() Kind { return KindCommented }

// Kind returns [KindIssueEdited].
func (IssueEdited) Kind() Kind { return KindIssueEdited }

// Kind returns [KindIssueClosed].
func (IssueClosed) Kind() Kind { return KindIssueClosed }

// Kind returns [KindIssueGone].
func (IssueGone) Kind() Kind { return KindIssueGone }

// Kind returns [KindPlanEdited].
func (PlanEdited) Kind() Kind { return KindPlanEdited }

// Kind returns [KindPlanDeleted].
func (PlanDeleted) Kind() Kind { return KindPlanDeleted }

// Kind returns [KindThumb].
func (Thumb) Kind() Kind { return KindThumb }

// Kind returns [KindReviewed].
func (Reviewed) Kind() Kind { return KindReviewed }

// Kind returns [KindPRClosed].
func (PRClosed) Kind() Kind { return KindPRClosed }

// Kind returns [KindPushed].
func (Pushed) Kind() Kind { return KindPushed }

// Kind returns [KindChecksChanged].
func (ChecksChanged) Kind() Kind { return KindChecksChanged }

// Kind returns [KindPoked].
func (Poked) Kind() Kind { return KindPoked }

// Kind returns [KindGone].
func (Gone) Kind() Kind { return KindGone }

// Kind returns [KindBack].
func (Back) Kind() Kind { return KindBack }

// Kind returns [KindRenamed].
func (Renamed) Kind() Kind { return KindRenamed }

// Kind returns [KindLocked].
func (Locked) Kind() Kind { return KindLocked }

// Kind returns [KindUnlocked].
func (Unlocked) Kind() Kind { return KindUnlocked }

// Kind returns [KindProgress].
func (Progress) Kind() Kind { return KindProgress }

// Kind returns [KindRunEnded].
func (RunEnded) Kind() Kind { return KindRunEnded }

// Kind returns [KindCalled].
func (Called) Kind() Kind { return KindCalled }

// Kind returns [KindSpent].
func (Spent) Kind() Kind { return KindSpent }

// Kind returns [KindStarted].
func (Started) Kind() Kind { return KindStarted }

// Kind returns [KindHeldUp].
func (HeldUp) Kind() Kind { return KindHeldUp }

// Kind returns [KindAsked].
func (Asked) Kind() Kind { return KindAsked }

// Kind returns [KindLaunched].
func (Launched) Kind() Kind { return KindLaunched }

// Kind returns [KindPosted].
func (Posted) Kind() Kind { return KindPosted }

// Kind returns [KindStatusSent].
func (StatusSent) Kind() Kind { return KindStatusSent }

// Kind returns [KindApproved].
func (Approved) Kind() Kind { return KindApproved }

// Kind returns [KindNoApproval].
func (NoApproval) Kind() Kind { return KindNoApproval }

// Kind returns [KindStale].
func (Stale) Kind() Kind { return KindStale }

// Kind returns [KindCollected].
func (Collected) Kind() Kind { return KindCollected }

// Kind returns [KindShown].
func (Shown) Kind() Kind { return KindShown }

// Kind returns [KindCommitted].
func (Committed) Kind() Kind { return KindCommitted }

// Kind returns [KindMoved].
func (Moved) Kind() Kind { return KindMoved }

// Kind returns [KindOvertaken].
func (Overtaken) Kind() Kind { return KindOvertaken }

// Kind returns [KindConflict].
func (Conflict) Kind() Kind { return KindConflict }

// Kind returns [KindPROpened].
func (PROpened) Kind() Kind { return KindPROpened }

// Kind returns [KindAnswered].
func (Answered) Kind() Kind { return KindAnswered }

// Kind returns [KindGathered].
func (Gathered) Kind() Kind { return KindGathered }

// Kind returns [KindSaved].
func (Saved) Kind() Kind { return KindSaved }

// Kind returns [KindCreated].
func (Created) Kind() Kind { return KindCreated }

// Kind returns [KindChecksRead].
func (ChecksRead) Kind() Kind { return KindChecksRead }

// Kind returns [KindReleased].
func (Released) Kind() Kind { return KindReleased }

// Kind returns [KindSlept].
func (Slept) Kind() Kind { return KindSlept }

// Kind returns [KindWoken].
func (Woken) Kind() Kind { return KindWoken }

// Kind returns [KindDue].
func (Due) Kind() Kind { return KindDue }

// Kind returns [KindStepFailed].
func (StepFailed) Kind() Kind { return KindStepFailed }

// NeedsPermission reports whether the effect of an event of this kind depends on the permission of the person, so that
// the job vet has to read it first. Removing the assignment or the label needs none: GitHub itself requires the triage
// role for it, and it only stops work.
func (k Kind) NeedsPermission() bool {
	switch k {
	case KindTriggered, KindCommented, KindIssueEdited, KindPlanEdited, KindThumb, KindReviewed:
		return true
	}
	return false
}
