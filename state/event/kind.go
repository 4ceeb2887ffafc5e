package event

// Kind is the kind of an event. The strings are stored.
type Kind string

// KindNothing is the kind of an event without a payload, which changes nothing.
const KindNothing Kind = "nothing"

// The kinds of events, each with the name of its payload.
const (
	KindTriggered        Kind = "triggered"
	KindUntriggered      Kind = "untriggered"
	KindCommented        Kind = "commented"
	KindIssueEdited      Kind = "issue_edited"
	KindIssueClosed      Kind = "issue_closed"
	KindIssueGone        Kind = "issue_gone"
	KindCommentEdited    Kind = "plan_edited"
	KindCommentDeleted   Kind = "plan_deleted"
	KindThumb            Kind = "thumb"
	KindReviewed         Kind = "reviewed"
	KindPRClosed         Kind = "pr_closed"
	KindPRReopened       Kind = "pr_reopened"
	KindPushed           Kind = "pushed"
	KindBaseMoved        Kind = "base_moved"
	KindPRChanged        Kind = "pr_changed"
	KindChecksChanged    Kind = "checks_changed"
	KindConditionChanged Kind = "poked"
	KindAccessLost       Kind = "gone"
	KindAccessRegained   Kind = "back"
	KindRenamed          Kind = "renamed"
	KindLocked           Kind = "locked"
	KindUnlocked         Kind = "unlocked"
	KindPurged           Kind = "purged"
	KindDestroyed        Kind = "destroyed"

	KindProgress    Kind = "progress"
	KindRunEnded    Kind = "run_ended"
	KindToolCalled  Kind = "called"
	KindModelCalled Kind = "spent"

	KindStarted          Kind = "started"
	KindStepBlocked      Kind = "held_up"
	KindQuestionRaised   Kind = "asked"
	KindLaunched         Kind = "launched"
	KindPosted           Kind = "posted"
	KindStatusSent       Kind = "status_sent"
	KindApproved         Kind = "approved"
	KindApprovalRejected Kind = "no_approval"
	KindPlanStale        Kind = "stale"
	KindCollected        Kind = "collected"
	KindDiffReady        Kind = "shown"
	KindCommitted        Kind = "committed"
	KindBranchMoved      Kind = "moved"
	KindMergePending     Kind = "merge_pending"
	KindBranchAhead      Kind = "overtaken"
	KindConflict         Kind = "conflict"
	KindPROpened         Kind = "pr_opened"
	KindPRFound          Kind = "pr_found"
	KindPRReplaced       Kind = "pr_replaced"
	KindThreadsAnswered  Kind = "answered"
	KindAnswersFound     Kind = "answers_found"
	KindGathered         Kind = "gathered"
	KindWorkSaved        Kind = "saved"
	KindIssueCreated     Kind = "created"
	KindChecksRead       Kind = "checks_read"
	KindChecksExamined   Kind = "checks_examined"
	KindBaseRead         Kind = "base_read"
	KindPRFinished       Kind = "pr_finished"
	KindReleased         Kind = "released"
	KindSuspended        Kind = "slept"
	KindRestored         Kind = "woken"
	KindVMWanted         Kind = "vm_wanted"
	KindQueueMoved       Kind = "queue_moved"
	KindDue              Kind = "due"
	KindStepFailed       Kind = "step_failed"
)

// decoders have a function for every kind that decodes its payload from JSON.
var decoders = map[Kind]func([]byte) (Payload, error){
	KindTriggered:        decode[Triggered],
	KindUntriggered:      decode[Untriggered],
	KindCommented:        decode[Commented],
	KindIssueEdited:      decode[IssueEdited],
	KindIssueClosed:      decode[IssueClosed],
	KindIssueGone:        decode[IssueGone],
	KindCommentEdited:    decode[CommentEdited],
	KindCommentDeleted:   decode[CommentDeleted],
	KindThumb:            decode[Thumb],
	KindReviewed:         decode[Reviewed],
	KindPRClosed:         decode[PRClosed],
	KindPRReopened:       decode[PRReopened],
	KindPushed:           decode[Pushed],
	KindBaseMoved:        decode[BaseMoved],
	KindPRChanged:        decode[PRChanged],
	KindChecksChanged:    decode[ChecksChanged],
	KindConditionChanged: decode[ConditionChanged],
	KindAccessLost:       decode[AccessLost],
	KindAccessRegained:   decode[AccessRegained],
	KindRenamed:          decode[Renamed],
	KindLocked:           decode[Locked],
	KindUnlocked:         decode[Unlocked],
	KindPurged:           decode[Purged],
	KindDestroyed:        decode[Destroyed],
	KindProgress:         decode[Progress],
	KindRunEnded:         decode[RunEnded],
	KindToolCalled:       decode[ToolCalled],
	KindModelCalled:      decode[ModelCalled],
	KindStarted:          decode[Started],
	KindStepBlocked:      decode[StepBlocked],
	KindQuestionRaised:   decode[QuestionRaised],
	KindLaunched:         decode[Launched],
	KindPosted:           decode[Posted],
	KindStatusSent:       decode[StatusSent],
	KindApproved:         decode[Approved],
	KindApprovalRejected: decode[ApprovalRejected],
	KindPlanStale:        decode[PlanStale],
	KindCollected:        decode[Collected],
	KindDiffReady:        decode[DiffReady],
	KindCommitted:        decode[Committed],
	KindBranchMoved:      decode[BranchMoved],
	KindMergePending:     decode[MergePending],
	KindBranchAhead:      decode[BranchAhead],
	KindConflict:         decode[Conflict],
	KindPROpened:         decode[PROpened],
	KindPRFound:          decode[PRFound],
	KindPRReplaced:       decode[PRReplaced],
	KindThreadsAnswered:  decode[ThreadsAnswered],
	KindAnswersFound:     decode[AnswersFound],
	KindGathered:         decode[Gathered],
	KindWorkSaved:        decode[WorkSaved],
	KindIssueCreated:     decode[IssueCreated],
	KindChecksRead:       decode[ChecksRead],
	KindChecksExamined:   decode[ChecksExamined],
	KindBaseRead:         decode[BaseRead],
	KindPRFinished:       decode[PRFinished],
	KindReleased:         decode[Released],
	KindSuspended:        decode[Suspended],
	KindRestored:         decode[Restored],
	KindVMWanted:         decode[VMWanted],
	KindQueueMoved:       decode[QueueMoved],
	KindDue:              decode[Due],
	KindStepFailed:       decode[StepFailed],
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

// Kind returns [KindCommentEdited].
func (CommentEdited) Kind() Kind { return KindCommentEdited }

// Kind returns [KindCommentDeleted].
func (CommentDeleted) Kind() Kind { return KindCommentDeleted }

// Kind returns [KindThumb].
func (Thumb) Kind() Kind { return KindThumb }

// Kind returns [KindReviewed].
func (Reviewed) Kind() Kind { return KindReviewed }

// Kind returns [KindPRClosed].
func (PRClosed) Kind() Kind { return KindPRClosed }

// Kind returns [KindPRReopened].
func (PRReopened) Kind() Kind { return KindPRReopened }

// Kind returns [KindPushed].
func (Pushed) Kind() Kind { return KindPushed }

// Kind returns [KindBaseMoved].
func (BaseMoved) Kind() Kind { return KindBaseMoved }

// Kind returns [KindPRChanged].
func (PRChanged) Kind() Kind { return KindPRChanged }

// Kind returns [KindChecksChanged].
func (ChecksChanged) Kind() Kind { return KindChecksChanged }

// Kind returns [KindConditionChanged].
func (ConditionChanged) Kind() Kind { return KindConditionChanged }

// Kind returns [KindAccessLost].
func (AccessLost) Kind() Kind { return KindAccessLost }

// Kind returns [KindAccessRegained].
func (AccessRegained) Kind() Kind { return KindAccessRegained }

// Kind returns [KindRenamed].
func (Renamed) Kind() Kind { return KindRenamed }

// Kind returns [KindLocked].
func (Locked) Kind() Kind { return KindLocked }

// Kind returns [KindUnlocked].
func (Unlocked) Kind() Kind { return KindUnlocked }

// Kind returns [KindPurged].
func (Purged) Kind() Kind { return KindPurged }

// Kind returns [KindDestroyed].
func (Destroyed) Kind() Kind { return KindDestroyed }

// Kind returns [KindProgress].
func (Progress) Kind() Kind { return KindProgress }

// Kind returns [KindRunEnded].
func (RunEnded) Kind() Kind { return KindRunEnded }

// Kind returns [KindToolCalled].
func (ToolCalled) Kind() Kind { return KindToolCalled }

// Kind returns [KindModelCalled].
func (ModelCalled) Kind() Kind { return KindModelCalled }

// Kind returns [KindStarted].
func (Started) Kind() Kind { return KindStarted }

// Kind returns [KindStepBlocked].
func (StepBlocked) Kind() Kind { return KindStepBlocked }

// Kind returns [KindQuestionRaised].
func (QuestionRaised) Kind() Kind { return KindQuestionRaised }

// Kind returns [KindLaunched].
func (Launched) Kind() Kind { return KindLaunched }

// Kind returns [KindPosted].
func (Posted) Kind() Kind { return KindPosted }

// Kind returns [KindStatusSent].
func (StatusSent) Kind() Kind { return KindStatusSent }

// Kind returns [KindApproved].
func (Approved) Kind() Kind { return KindApproved }

// Kind returns [KindApprovalRejected].
func (ApprovalRejected) Kind() Kind { return KindApprovalRejected }

// Kind returns [KindPlanStale].
func (PlanStale) Kind() Kind { return KindPlanStale }

// Kind returns [KindCollected].
func (Collected) Kind() Kind { return KindCollected }

// Kind returns [KindDiffReady].
func (DiffReady) Kind() Kind { return KindDiffReady }

// Kind returns [KindCommitted].
func (Committed) Kind() Kind { return KindCommitted }

// Kind returns [KindBranchMoved].
func (BranchMoved) Kind() Kind { return KindBranchMoved }

// Kind returns [KindMergePending].
func (MergePending) Kind() Kind { return KindMergePending }

// Kind returns [KindBranchAhead].
func (BranchAhead) Kind() Kind { return KindBranchAhead }

// Kind returns [KindConflict].
func (Conflict) Kind() Kind { return KindConflict }

// Kind returns [KindPROpened].
func (PROpened) Kind() Kind { return KindPROpened }

// Kind returns [KindPRFound].
func (PRFound) Kind() Kind { return KindPRFound }

// Kind returns [KindPRReplaced].
func (PRReplaced) Kind() Kind { return KindPRReplaced }

// Kind returns [KindThreadsAnswered].
func (ThreadsAnswered) Kind() Kind { return KindThreadsAnswered }

// Kind returns [KindAnswersFound].
func (AnswersFound) Kind() Kind { return KindAnswersFound }

// Kind returns [KindGathered].
func (Gathered) Kind() Kind { return KindGathered }

// Kind returns [KindWorkSaved].
func (WorkSaved) Kind() Kind { return KindWorkSaved }

// Kind returns [KindIssueCreated].
func (IssueCreated) Kind() Kind { return KindIssueCreated }

// Kind returns [KindChecksRead].
func (ChecksRead) Kind() Kind { return KindChecksRead }

// Kind returns [KindChecksExamined].
func (ChecksExamined) Kind() Kind { return KindChecksExamined }

// Kind returns [KindBaseRead].
func (BaseRead) Kind() Kind { return KindBaseRead }

// Kind returns [KindPRFinished].
func (PRFinished) Kind() Kind { return KindPRFinished }

// Kind returns [KindReleased].
func (Released) Kind() Kind { return KindReleased }

// Kind returns [KindSuspended].
func (Suspended) Kind() Kind { return KindSuspended }

// Kind returns [KindRestored].
func (Restored) Kind() Kind { return KindRestored }

// Kind returns [KindVMWanted].
func (VMWanted) Kind() Kind { return KindVMWanted }

// Kind returns [KindQueueMoved].
func (QueueMoved) Kind() Kind { return KindQueueMoved }

// Kind returns [KindDue].
func (Due) Kind() Kind { return KindDue }

// Kind returns [KindStepFailed].
func (StepFailed) Kind() Kind { return KindStepFailed }

// NeedsPermission reports whether the effect of an event of this kind depends on the permission of the person, so that
// the job vet has to read it first. Removing the assignment or the label needs none: GitHub itself requires the triage
// role for it, and it only stops work.
func (k Kind) NeedsPermission() bool {
	switch k {
	case KindTriggered, KindCommented, KindIssueEdited, KindCommentEdited, KindThumb, KindReviewed:
		return true
	}
	return false
}
