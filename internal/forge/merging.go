package forge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
)

// Merging says whether a pull request can be merged.
type Merging struct {
	Node  string
	Open  bool
	Title string
	// Draft is set for a draft, and in repositories without drafts for a title that OpenPR has marked as unfinished.
	Draft   bool
	isDraft bool
	Head    string // commit
	Base    string // branch
	// Mergeable is nil while GitHub computes it; false if there are conflicts.
	Mergeable *bool
	// IsBehind is set if the base must be merged in or rebased onto first, and GitHub knows of nothing else that is missing.
	IsBehind bool
	// Methods are the ways in which the repository's pull requests may be merged, as GraphQL names them: MERGE, SQUASH, REBASE.
	Methods []string
	// AutoMerge is the login of the person who enabled GitHub's auto-merge; empty if it is disabled.
	AutoMerge string
	// NeedsQueue is set if the base is merged into by a merge queue only, and Queued if the pull request is in it. Old Enterprise Servers have none.
	NeedsQueue, Queued bool
}

// OnlyRebases reports whether the repository's pull requests are merged by rebasing their commits only.
func (m Merging) OnlyRebases() bool { return len(m.Methods) == 1 && m.Methods[0] == "REBASE" }

const mergingQuery = `query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    mergeCommitAllowed squashMergeAllowed rebaseMergeAllowed
    pullRequest(number: $number) {
      id state title isDraft headRefOid baseRefName mergeable mergeStateStatus
      autoMergeRequest { enabledBy { login } } %s
    }
  }
}`

// queueFields are the fields of a pull request about merge queues.
const queueFields = "isMergeQueueEnabled isInMergeQueue"

// Merging reads whether a pull request can be merged. The first read makes GitHub compute it.
func (f *Forge) Merging(ctx context.Context, r Repo, number int) (Merging, error) {
	op, err := f.client.Read(ctx, r.Installation, "read whether a pull request can be merged", onIssue(r, number))
	if err != nil {
		return Merging{}, err
	}
	var data struct {
		Repository struct {
			MergeCommitAllowed bool `json:"mergeCommitAllowed"`
			SquashMergeAllowed bool `json:"squashMergeAllowed"`
			RebaseMergeAllowed bool `json:"rebaseMergeAllowed"`
			PullRequest        struct {
				ID               string `json:"id"`
				State            string `json:"state"`
				Title            string `json:"title"`
				IsDraft          bool   `json:"isDraft"`
				HeadRefOid       string `json:"headRefOid"`
				BaseRefName      string `json:"baseRefName"`
				Mergeable        string `json:"mergeable"`
				MergeStateStatus string `json:"mergeStateStatus"`
				AutoMergeRequest *struct {
					EnabledBy *struct {
						Login string `json:"login"`
					} `json:"enabledBy"`
				} `json:"autoMergeRequest"`
				IsMergeQueueEnabled bool `json:"isMergeQueueEnabled"`
				IsInMergeQueue      bool `json:"isInMergeQueue"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}
	vars := map[string]any{"owner": r.Owner, "name": r.Name, "number": number}
	err = op.GraphQL(fmt.Sprintf(mergingQuery, queueFields), vars, &data)
	var g *client.GraphQLError
	if errors.As(err, &g) && strings.Contains(g.Error(), "doesn't exist on type") {
		err = op.GraphQL(fmt.Sprintf(mergingQuery, ""), vars, &data)
	}
	if err != nil {
		return Merging{}, op.Wrap(err)
	}
	repo, p := data.Repository, data.Repository.PullRequest
	m := Merging{
		Node: p.ID, Open: p.State == "OPEN", Title: p.Title, isDraft: p.IsDraft, Draft: p.IsDraft || strings.HasPrefix(p.Title, draftPrefix),
		Head: p.HeadRefOid, Base: p.BaseRefName, IsBehind: p.MergeStateStatus == "BEHIND",
		NeedsQueue: p.IsMergeQueueEnabled, Queued: p.IsInMergeQueue,
	}
	if a := p.AutoMergeRequest; a != nil {
		m.AutoMerge = "ghost"
		if a.EnabledBy != nil {
			m.AutoMerge = a.EnabledBy.Login
		}
	}
	for _, way := range []struct {
		name    string
		allowed bool
	}{{"MERGE", repo.MergeCommitAllowed}, {"SQUASH", repo.SquashMergeAllowed}, {"REBASE", repo.RebaseMergeAllowed}} {
		if way.allowed {
			m.Methods = append(m.Methods, way.name)
		}
	}
	if p.Mergeable != "UNKNOWN" {
		m.Mergeable = github.Bool(p.Mergeable == "MERGEABLE")
	}
	return m, nil
}

const updateBranchMutation = `mutation($pull: ID!, $head: GitObjectID!, $method: PullRequestBranchUpdateMethod!) {
  updatePullRequestBranch(input: {pullRequestId: $pull, expectedHeadOid: $head, updateMethod: $method}) { pullRequest { headRefOid } }
}`

// UpdatePRBranch has GitHub merge the base into the branch of a pull request, given by its GraphQL ID, or rebase the branch's commits onto it,
// if the branch's head is still the given one. It returns the head that GitHub reports afterwards, which may be the old one for a moment.
// After an unknown outcome the branch has to be read.
func (f *Forge) UpdatePRBranch(ctx context.Context, r Repo, pull, head string, rebase bool) (string, error) {
	op, err := f.client.Write(ctx, r.Installation, "update the branch of a pull request", "at "+head+" of "+r.FullName())
	if err != nil {
		return "", err
	}
	method := "MERGE"
	if rebase {
		method = "REBASE"
	}
	var data struct {
		UpdatePullRequestBranch struct {
			PullRequest struct {
				HeadRefOid string `json:"headRefOid"`
			} `json:"pullRequest"`
		} `json:"updatePullRequestBranch"`
	}
	err = op.GraphQL(updateBranchMutation, map[string]any{"pull": pull, "head": head, "method": method}, &data)
	return data.UpdatePullRequestBranch.PullRequest.HeadRefOid, op.Wrap(err)
}

// MarkReady marks a draft as ready for review. In repositories without drafts it removes the mark from the title. It can be repeated.
func (f *Forge) MarkReady(ctx context.Context, r Repo, number int, m Merging) error {
	if title, isMarked := strings.CutPrefix(m.Title, draftPrefix); isMarked {
		op, err := f.client.Write(ctx, r.Installation, "edit pull request", onIssue(r, number))
		if err != nil {
			return err
		}
		if _, _, err := op.GitHub.PullRequests.Edit(op.Ctx, r.Owner, r.Name, number, &github.PullRequest{Title: &title}); err != nil {
			return op.Wrap(err)
		}
	}
	if !m.isDraft {
		return nil
	}
	const mutation = `mutation($pull: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $pull}) { pullRequest { isDraft } } }`
	return f.mutatePR(ctx, r, "mark a pull request ready for review", mutation, map[string]any{"pull": m.Node})
}

// MergePR merges a pull request, given by its GraphQL ID, in one of Merging.Methods, if its head is still the given one. After an unknown
// outcome the pull request has to be read.
func (f *Forge) MergePR(ctx context.Context, r Repo, pull, head, method string) error {
	const mutation = `mutation($pull: ID!, $head: GitObjectID!, $method: PullRequestMergeMethod!) {
  mergePullRequest(input: {pullRequestId: $pull, expectedHeadOid: $head, mergeMethod: $method}) { pullRequest { state } }
}`
	return f.mutatePR(ctx, r, "merge a pull request", mutation, map[string]any{"pull": pull, "head": head, "method": method})
}

// EnqueuePR adds a pull request, given by its GraphQL ID, to the merge queue of its base, if its head is still the given one.
func (f *Forge) EnqueuePR(ctx context.Context, r Repo, pull, head string) error {
	const mutation = `mutation($pull: ID!, $head: GitObjectID!) {
  enqueuePullRequest(input: {pullRequestId: $pull, expectedHeadOid: $head}) { mergeQueueEntry { id } }
}`
	return f.mutatePR(ctx, r, "add a pull request to the merge queue", mutation, map[string]any{"pull": pull, "head": head})
}

// DequeuePR removes a pull request, given by its GraphQL ID, from the merge queue of its base.
func (f *Forge) DequeuePR(ctx context.Context, r Repo, pull string) error {
	const mutation = `mutation($pull: ID!) { dequeuePullRequest(input: {id: $pull}) { mergeQueueEntry { id } } }`
	return f.mutatePR(ctx, r, "remove a pull request from the merge queue", mutation, map[string]any{"pull": pull})
}

// DisableAutoMerge has GitHub not merge a pull request, given by its GraphQL ID, by itself any more.
func (f *Forge) DisableAutoMerge(ctx context.Context, r Repo, pull string) error {
	const mutation = `mutation($pull: ID!) { disablePullRequestAutoMerge(input: {pullRequestId: $pull}) { pullRequest { id } } }`
	return f.mutatePR(ctx, r, "disable auto-merge of a pull request", mutation, map[string]any{"pull": pull})
}

func (f *Forge) mutatePR(ctx context.Context, r Repo, what, mutation string, vars map[string]any) error {
	op, err := f.client.Write(ctx, r.Installation, what, "of "+r.FullName())
	if err != nil {
		return err
	}
	return op.Wrap(op.GraphQL(mutation, vars, &struct{}{}))
}
