package comment

import (
	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
)

// readyText says what a draft that errand is to mark ready for review still waits for.
func readyText(t *state.Task) string {
	if t.PR.MergeWaits != "" {
		return "**Waiting:** errand marks the draft ready for review later, because " + markdown.Sentence(markdown.Line(t.PR.MergeWaits, 300))
	}
	return "**Waiting for:** the checks of the draft; errand marks it ready for review when they succeed, or if some are not reported for 10 minutes and none runs or fails."
}

// mergeText says what a pull request that errand is to merge still waits for.
func mergeText(t *state.Task) string {
	const waiting, then = "**Waiting for:** ", "errand merges the pull request when they have succeeded and a person with write access has approved the newest commit."
	switch pr := t.PR; {
	case pr.MergeWaits != "":
		return "**Waiting:** errand merges the pull request later, because " + markdown.Sentence(markdown.Line(pr.MergeWaits, 300))
	case pr.Checks == "":
		return waiting + "checks of the newest commit; " + then + " If none is ever reported, a person has to merge it."
	case pr.Checks != "success":
		return waiting + "the checks of the newest commit; " + then
	case !pr.Ready:
		return waiting + "an approving review of the pull request by a person with write access; errand then merges it, if no review thread is open."
	}
	return "Nothing for you to do: the pull request is approved, and errand is about to merge it."
}

// merge renders what errand did, or could not do, to have the pull request reviewed or merged. Items is a commit or a login; Text is GitHub's reason.
func (p post) merge() string {
	item := ""
	if len(p.Items) > 0 {
		item = p.Items[0]
	}
	switch p.Reason {
	case state.MergeReadyLate:
		return addressed(p.By, "checks of "+commit(p.t, item)+" have not been reported for some time, perhaps because they do not run on drafts. "+
			"errand marked this pull request ready for review, so that they can.")
	case state.MergeNotReady:
		return addressed(p.By, "errand could not mark this draft ready for review. "+
			markdown.Sentence(markdown.Line(p.Text, 300))+" Mark it yourself.")
	case state.MergeApproveAgain:
		return addressed(p.By, "GitHub added the newest commits of the base to this pull request, which is at "+commit(p.t, item)+" now. "+
			"Approve it again when its checks have succeeded, and errand merges it.")
	case state.MergeTakenBack:
		return addressed(p.By, "errand removed this pull request from the merge queue, because "+markdown.Sentence(markdown.Line(p.Text, 300)))
	case state.MergeRefused:
		return addressed(p.By, "this pull request is approved, but errand could not merge it. "+markdown.Sentence(markdown.Line(p.Text, 300))+
			" Merge it yourself, or remove the cause; errand tries again after the next approval.")
	case state.MergeDequeued:
		return "This pull request is removed from the merge queue, because errand is about to push commits that are not reviewed yet. Add it again after your review."
	case state.MergeAutoDisabled:
		return "Auto-merge, which " + markdown.Code(markdown.CutWithNote(item, 60)) + " had enabled, is disabled, because errand is about to push commits that are " +
			"not reviewed yet. Enable it again after your review."
	}
	return p.embed()
}
