package comment

import (
	"fmt"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
)

// base renders what became of the newest commits of the pull request's base. Items are the name of the base, and the new head or a file; Text
// is GitHub's reason.
func (p post) base() string {
	v, base, item := p.v, "the base branch", ""
	if len(p.Items) > 0 && p.Items[0] != "" {
		base = markdown.Code(p.Items[0])
	}
	if len(p.Items) > 1 {
		item = p.Items[1]
	}
	const again = "The checks start again."
	switch p.Reason {
	case state.BaseUpdated:
		return fmt.Sprintf("GitHub merged %s into the branch, which is at %s now. %s", base, commit(p.t, item), again)
	case state.BaseRebased:
		return fmt.Sprintf("GitHub rebased the branch onto %s; it is at %s now. %s", base, commit(p.t, item), again)
	case state.BaseCurrent:
		return fmt.Sprintf("The branch has the newest commits of %s. It is at %s.", base, commit(p.t, item))
	case state.BaseConflict:
		return fmt.Sprintf("The branch conflicts with %s, so GitHub cannot update it. Round %d merges %s and resolves the conflicts.", base, p.t.Round, base)
	case state.BaseConflictLeft:
		return addressed(p.By, fmt.Sprintf("the branch still conflicts with %s, and errand has updated it %d times since a person last acted here. "+
			"It does not try again by itself. Resolve the conflicts, or write %s to have errand do it.", base, state.MaxUpdates, v.say("update")))
	case state.BaseRunLimit:
		return addressed(p.By, fmt.Sprintf("the branch conflicts with %s, and errand does not start an agent to resolve the conflict, because it has reached "+
			"the limit of runs since a person last acted here. Review the last runs, then resolve the conflicts or write %s to have errand do it.", base, v.say("update")))
	case state.BaseLeft:
		return addressed(p.By, fmt.Sprintf("this pull request is ready, but it is behind %s again. errand has updated its branch %d times since a "+
			"person last acted here, and does not do it again by itself. Press **Update branch** on this page, or write %s.", base, state.MaxUpdates, v.say("update")))
	case state.BaseWorkflows:
		return addressed(p.By, fmt.Sprintf("GitHub does not let errand update the branch, because %s changed %s and errand's App has no permission to "+
			"change workflows. Press **Update branch** on this page to do it yourself.", base, workflow(item)))
	case state.BaseConflictWorkflows:
		return addressed(p.By, fmt.Sprintf("the branch conflicts with %s, which also changed %s. errand's App has no permission to change workflows, so it "+
			"could not publish a merge. Merge %s into the branch yourself, and resolve the conflicts.", base, workflow(item), base))
	case state.BaseRefused, state.BaseNotRebased:
		act := "Press **Update branch** on this page to do it yourself."
		if p.Reason == state.BaseNotRebased {
			act = "To merge " + base + " instead, write " + v.say("update") + "."
		}
		return addressed(p.By, fmt.Sprintf("the branch was not updated with %s. %s %s", base, markdown.Sentence(markdown.Line(p.Text, 300)), act))
	case state.BaseUnknown:
		return fmt.Sprintf("GitHub has not found out yet whether the branch conflicts with %s. Write %s again in a few minutes.", base, v.say("update"))
	}
	return p.noLateUpdate()
}

// noLateUpdate says why a command to update the branch was not carried out, although it was accepted.
func (p post) noLateUpdate() string {
	const not = "the branch was not updated, because "
	switch p.Reason {
	case state.BaseClosed:
		return addressed(p.By, fmt.Sprintf(not+"the pull request was closed before that. After you reopen it, write %s again.", p.v.say("update")))
	case state.BaseMerged:
		return addressed(p.By, not+"the pull request was already merged.")
	case state.BaseEnded:
		return addressed(p.By, fmt.Sprintf(not+"the task ended before that. If you continue the task, write %s again.", p.v.say("update")))
	}
	return p.embed()
}

// noUpdate renders the reply to a command to update the branch, which is not carried out at once.
func (p post) noUpdate() string {
	switch p.Reason {
	case state.ReplyUpdatesFull:
		return "Too many commands to update this branch are already waiting, so this one was ignored. errand will answer the others."
	case state.ReplyNoOpenPR:
		return fmt.Sprintf("There is no open pull request to update. %s shows details.", p.v.say("status"))
	}
	const then = "errand updates the branch"
	switch t := p.t; {
	case t.Ended() || t.PR == nil || t.PR.State != state.PROpen: // since the command was given
		return "This pull request is closed or its task has ended, so the branch is not updated."
	case t.Phase == state.PhasePROpen: // the work has ended since
		return "The current work is done, so errand is updating the branch now."
	case t.Phase == state.PhaseFailed:
		return fmt.Sprintf("The task has failed. Comment %s to continue it; %s when the work is done.", p.v.say("retry"), then)
	}
	return fmt.Sprintf("When the current work is done, %s. Now: %s.", then, stageClause(p.t))
}

// workflow names a workflow's file.
func workflow(path string) string {
	if path == "" {
		return "a workflow"
	}
	return "the workflow " + markdown.Code(markdown.CutWithNote(path, 200))
}

// updatedText says that the pull request's head was created by GitHub for errand, or that it conflicts with its base.
func updatedText(t *state.Task) string {
	base := markdown.Code(t.Branch.Base)
	switch {
	case t.PR == nil || t.PR.State != state.PROpen:
		return ""
	case t.PR.Conflict:
		return "conflicts with " + base
	case t.Branch.Updated != "" && t.Branch.Updated == t.Branch.Head:
		return "GitHub added the newest commits of " + base + " in " + commit(t, t.Branch.Updated)
	}
	return ""
}
