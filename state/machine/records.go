package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

const (
	// maxSeenIDs is the maximum length of Task.Passed, Task.Answered and Task.Posted.
	maxSeenIDs = 500
	// maxTrustedSeenIDs is the maximum length of Task.Seen. Only actions of people with write access use its space, and GitHub
	// allows at most 2,500 comments on an issue, so no entry is dropped while its event could still be delivered again.
	maxTrustedSeenIDs = 10_000
)

// MarkSeen stores an event's ID. Actions of people with write access have a list of their own, so that none is applied
// twice: however much others write, it does not displace these entries.
func MarkSeen(t *state.Task, e event.Event) {
	switch {
	case e.ID == "" || t.HasSeen(e.ID):
	case e.Permission.CanWrite():
		t.SeenIDs = appendBounded(t.SeenIDs, e.ID, maxTrustedSeenIDs)
	default:
		t.SeenUntrustedIDs = appendBounded(t.SeenUntrustedIDs, e.ID, maxSeenIDs)
	}
}

// appendBounded appends s to list and keeps the newest entries, at most most of them.
func appendBounded(list []string, s string, limit int) []string {
	list = append(list, s)
	if len(list) > limit {
		list = slices.Delete(list, 0, len(list)-limit)
	}
	return list
}

// maxUnknownOutcomes is the maximum length of Task.UnknownOutcomes.
const maxUnknownOutcomes = 50

// storeUnknownOutcome stores that a job failed with an unknown outcome, so that an equal job checks for its effect first.
func storeUnknownOutcome(c *change) {
	f := of[event.StepFailed](c).Failure
	if f.UnknownSince.IsZero() || c.t == nil {
		return
	}
	if c.t.UnknownOutcomes == nil {
		c.t.UnknownOutcomes = map[string]time.Time{}
	}
	if _, known := c.t.UnknownOutcomes[f.Key]; known {
		return
	}
	if len(c.t.UnknownOutcomes) == maxUnknownOutcomes {
		oldest := slices.MinFunc(slices.Sorted(maps.Keys(c.t.UnknownOutcomes)),
			func(a, b string) int { return c.t.UnknownOutcomes[a].Compare(c.t.UnknownOutcomes[b]) })
		delete(c.t.UnknownOutcomes, oldest)
	}
	c.t.UnknownOutcomes[f.Key] = f.UnknownSince
}

// unknownSince returns the time since which the effect of a job may exist, or zero. A branch has one pull request, whichever
// job of the task's life opens it: after a retry the job has another key.
func unknownSince(t *state.Task, j state.Job) time.Time {
	since := t.UnknownOutcomes[j.Key]
	if j.Kind != state.JobOpenPR {
		return since
	}
	for key, at := range t.UnknownOutcomes {
		if strings.HasPrefix(key, fmt.Sprintf("%d.%s-", t.Gen, state.JobOpenPR)) && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}

// Comments are stored with their task, and a task must fit into one update of the store: otherwise no further event
// could be applied to it. Agents see at most 12,000 characters of a comment.
const (
	maxTextLength   = 11_900    // characters of one text
	maxTextBytes    = 256 << 10 // bytes of all texts together
	shortenedLength = 200       // characters that remain of the oldest texts if all together are too large
	maxComments     = 500       // comments in the discussion; GitHub allows 2,500 on an issue
)

// cutMarker marks the position where a text was cut.
const cutMarker = "\n… (the rest is on GitHub)"

// boundTexts shortens stored comments: each long one, and the oldest ones further if all of them together are too
// large. Each cut is marked.
func boundTexts(t *state.Task) {
	t.Context.Comments = t.Context.Comments[max(0, len(t.Context.Comments)-maxComments):]
	all := texts(t)
	total := 0
	for _, text := range all {
		*text = cutText(*text, maxTextLength)
		total += len(*text)
	}
	for _, text := range all {
		if total <= maxTextBytes {
			return
		}
		total -= len(*text)
		*text = cutText(*text, shortenedLength)
		total += len(*text)
	}
}

// texts returns the stored comments that may be shortened, oldest first: the discussion, then the feedback. Conditions
// of approvals are never shortened.
func texts(t *state.Task) (list []*string) {
	for i := range t.Context.Comments {
		list = append(list, &t.Context.Comments[i].Body)
	}
	for i := range t.Feedback {
		if f := &t.Feedback[i]; f.Kind != state.FeedbackCondition {
			list = append(list, &f.Body)
		}
	}
	return list
}

// cutText returns the beginning of a text with more than most characters. It does not shorten a text that it has
// already cut.
func cutText(s string, limit int) string {
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit+utf8.RuneCountInString(cutMarker) {
		return s
	}
	end := 0
	for range limit {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end] + cutMarker
}

// canPurge reports whether nothing is under way that has texts of the task, or would write some.
func canPurge(c *change) bool {
	return !c.e.Busy && c.t.VM == nil && c.t.Run == nil && (c.t.End == nil || !c.t.End.Saving)
}

// hasIssueText reports whether the text with which a task can begin again is known: for a command on errand's pages, which comes without
// it, it is that of the life before.
func hasIssueText(c *change) bool { return c.t.Purged.IsZero() || !c.e.By.Operator }

// purge deletes the texts of the task, and its saved work.
func purge(c *change) {
	if a := c.t.Suspended; a != nil {
		c.deleteSaved(a.Mode, a.Ref)
	}
	c.t, c.dropText = withoutTexts(c.t, c.e.Now), true
}

// withoutTexts returns what stays of an ended task: numbers, times, the names of its repository and its VMs, and the IDs and hashes by which
// no action counts twice and no revision gets the name of an earlier one. Everything else is gone, so a new field of a task is, too.
func withoutTexts(old *state.Task, now time.Time) *state.Task {
	t := &state.Task{Key: old.Key, Version: old.Version, Visible: old.Visible, Gen: old.Gen, Purged: now, Money: old.Money}
	t.Repo, t.Installation, t.Settings = old.Repo, old.Installation, settings.Default()
	t.Trigger = state.Trigger{Via: old.Trigger.Via, At: old.Trigger.At}
	t.Phase, t.Since = old.Phase, old.Since
	if e := old.End; e != nil {
		t.End = &state.End{Class: e.Class, At: e.At, Acted: e.Acted}
	}
	for _, h := range old.History {
		t.History = append(t.History, state.PhaseChange{Phase: h.Phase, At: h.At})
	}
	t.UsedHashes, t.SeenIDs, t.SeenUntrustedIDs = usedHashes(old), old.SeenIDs, old.SeenUntrustedIDs
	t.RunSeq, t.Active, t.Round, t.VMs = old.RunSeq, old.Active, old.Round, old.VMs
	for i := range old.Runs {
		t.Runs = append(t.Runs, runWithoutTexts(&old.Runs[i]))
	}
	if p := old.PR; p != nil {
		t.PR = &state.PR{Number: p.Number, Node: p.Node, URL: p.URL, State: p.State, ClosedAt: p.ClosedAt, ReopenedAt: p.ReopenedAt,
			KeptUntil: p.KeptUntil}
	}
	list := old.Replaced
	if old.PR == nil {
		list = replacedPRs(old) // with the branch of one that is perhaps just being opened
	}
	for _, r := range list {
		kept := state.ReplacedPR{Number: r.Number, URL: r.URL, Closed: r.Closed}
		if r.Number == 0 {
			kept.Branch = r.Branch // the only way to find it
		}
		t.Replaced = append(t.Replaced, kept)
	}
	t.Status = state.StatusComment{Comment: old.Status.Comment, Node: old.Status.Node, URL: old.Status.URL, Shown: old.Visible,
		At: old.Status.At}
	return t
}

// runWithoutTexts returns what stays of a run.
func runWithoutTexts(r *state.Run) state.Run {
	s := state.Run{ID: r.ID, Kind: r.Kind, State: r.State, Seq: r.Seq, Started: r.Started, Ended: r.Ended}
	s.VM, s.Adapter, s.Model, s.Round = r.VM, r.Adapter, r.Model, r.Round
	s.Turns, s.Refused, s.Reads = r.Turns, r.Refused, r.Reads
	s.Money, s.Metered, s.Answers, s.Used = r.Money, r.Metered, r.Answers, r.Used
	s.Reported, s.Status, s.Class = r.Reported, r.Status, r.Class
	return s
}

// noteFailure notes the failure of a job that the task does not wait for. If work could not be saved, or a review read, that is
// retried later.
func noteFailure(c *change) {
	c.note = of[event.StepFailed](c).Failure.Reason
	switch of[event.StepFailed](c).Failure.Job {
	case state.JobSuspend:
		c.checkIdleAgain()
	case state.JobGather:
		if hasPR(c) {
			c.t.PR.Unread = true
		}
	case state.JobChecks:
		distrustChecks(c)
	case state.JobFinish:
		if hasPR(c) && MayFinish(c.t, c.e.Now) && (c.t.IsMergedByErrand() || c.t.AwaitsReady()) {
			c.t.PR.MergeWaits = "errand could not find out on GitHub whether it can be merged, or GitHub did not answer"
		}
	case state.JobExamine:
		if c.t.Settings.Limits.Checks > 0 && hasPR(c) && c.t.PR.Checks == checksFailed {
			handOver(c, nil, c.note)
		}
	}
}

// storePR stores the pull request as it was opened or found, and the head of its branch.
func storePR(c *change) {
	opened := of[event.PROpened](c)
	c.t.PR = &opened.PR
	if head := opened.Head; head != "" && head != c.t.Branch.Head {
		c.t.Branch.Head, c.t.Branch.Tree = head, ""
	}
	c.postProvenance()
}
