package simgithub

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// NewPull describes a pull request to be opened.
type NewPull struct {
	Title string
	Body  string
	Head  string // branch, or OWNER:branch with the repository's own owner
	Base  string // branch; empty: the default branch
	Draft bool
}

// openPull opens a pull request between two branches of one repository.
func (x *session) openPull(full string, in NewPull) (*Pull, error) {
	r, err := x.repo(full)
	if err != nil {
		return nil, err
	}
	if err := x.need(r, "pull_requests", "write", RoleRead); err != nil {
		return nil, err
	}
	if x.by == nil {
		return nil, errNeedAuth()
	}
	if in.Base == "" {
		in.Base = r.DefaultBranch
	}
	in.Head = strings.TrimPrefix(in.Head, r.Owner+":")
	head, base, err := x.checkPull(r, in)
	if err != nil {
		return nil, err
	}
	i := x.newIssue(r, in.Title, in.Body)
	p := &Pull{ID: x.s.newID(), Base: in.Base, Head: in.Head, HeadSHA: head, BaseSHA: base, Draft: in.Draft, issue: i}
	p.NodeID = nodeID("PR", p.ID)
	delete(x.s.nodes, i.NodeID)
	i.NodeID = p.NodeID
	i.Pull = p
	x.s.nodes[p.NodeID] = p
	x.s.nodes[nodeID("I", i.ID)] = i
	x.s.pulls.updateRef(p)
	x.webhooks().pull("opened", p, nil)
	x.crossReference(i, i.Body)
	return p, nil
}

// checkPull returns an error if GitHub would refuse the pull request, and else the heads of both branches.
func (x *session) checkPull(r *Repo, in NewPull) (head, base string, err error) {
	if strings.TrimSpace(in.Title) == "" {
		return "", "", errInvalid("PullRequest", "title", "missing_field")
	}
	if err := checkBody("PullRequest", in.Body); err != nil {
		return "", "", err
	}
	if head = r.Git.Branch(in.Head); head == "" {
		return "", "", errInvalid("PullRequest", "head", "invalid")
	}
	if base = r.Git.Branch(in.Base); base == "" {
		return "", "", errInvalid("PullRequest", "base", "invalid")
	}
	for _, i := range r.Issues {
		if i.Pull != nil && i.State == "open" && i.Pull.Head == in.Head && i.Pull.Base == in.Base {
			return "", "", errCustom("PullRequest", "A pull request already exists for "+r.Owner+":"+in.Head+".")
		}
	}
	if r.Git.MergeBase(base, head) == "" {
		return "", "", errCustom("PullRequest",
			"The "+in.Head+" branch has no history in common with "+in.Base)
	}
	if r.Git.IsAncestor(head, base) {
		return "", "", errCustom("PullRequest", "No commits between "+in.Base+" and "+in.Head)
	}
	return head, base, nil
}

// reopenable returns an error if a pull request cannot be reopened: it was merged, its branch is gone or contains neither the old
// head nor a descendant of it, or another pull request from the branch is open.
func (x *session) reopenable(p *Pull) error {
	r := p.issue.repo
	sha := r.Git.Branch(p.Head)
	switch {
	case p.Merged, sha == "":
		return errCustom("PullRequest", "state cannot be changed. The pull request cannot be reopened.")
	case sha != p.HeadSHA && !r.Git.IsAncestor(p.HeadSHA, sha):
		return errCustom("PullRequest", "state cannot be changed. The "+p.Head+" branch was force-pushed or recreated.")
	}
	for _, i := range r.Issues {
		if i.Pull != nil && i.Pull != p && i.State == "open" && i.Pull.Head == p.Head && i.Pull.Base == p.Base {
			return errCustom("PullRequest", "state cannot be changed. There is already an open pull request from "+p.Head+" to "+p.Base+".")
		}
	}
	p.HeadSHA = sha
	return nil
}

// PullEdit describes a change of a pull request. A nil field stays unchanged.
type PullEdit struct {
	Title *string
	Body  *string
	State *string
	Base  *string
}

func (x *session) editPull(p *Pull, in PullEdit) error {
	if err := x.own(p.issue, p.issue.Author); err != nil {
		return err
	}
	if in.Base != nil && *in.Base != p.Base {
		sha := p.issue.repo.Git.Branch(*in.Base)
		if sha == "" {
			return errInvalid("PullRequest", "base", "invalid")
		}
		from, fromSHA := p.Base, p.BaseSHA
		x.leaveQueue(p, "UNKNOWN_REMOVAL_REASON")
		p.Base, p.BaseSHA = *in.Base, sha
		if x.need(p.issue.repo, "contents", "write", RoleWrite) != nil {
			x.stopAutoMerge(p, "Base branch was modified")
		}
		x.webhooks().pull("edited", p, obj{"changes": obj{"base": obj{"ref": obj{"from": from}, "sha": obj{"from": fromSHA}}}})
		x.refs().mergeDue(p.issue.repo)
	}
	return x.editIssue(p.issue, IssueEdit{Title: in.Title, Body: in.Body, State: in.State})
}

// setDraft converts a pull request to a draft or marks it ready for review.
func (x *session) setDraft(p *Pull, draft bool) error {
	if err := x.own(p.issue, p.issue.Author); err != nil {
		return err
	}
	if p.Draft == draft {
		return nil
	}
	p.Draft, p.issue.UpdatedAt = draft, x.s.now()
	action, event := "ready_for_review", "ready_for_review"
	if draft {
		action, event = "converted_to_draft", "convert_to_draft"
		x.stopMerging(p, "Pull request was converted to draft")
	}
	x.event(p.issue, &Event{Event: event})
	x.webhooks().pull(action, p, nil)
	return nil
}

// requestReviewers requests a review from all people of a list, or from none if one of them cannot review.
func (x *session) requestReviewers(p *Pull, logins []string) error {
	r := p.issue.repo
	if err := x.need(r, "pull_requests", "write", RoleWrite); err != nil {
		return err
	}
	for _, login := range logins {
		if login == p.issue.Author {
			return errUnprocessable("Review cannot be requested from pull request author.")
		}
		if !x.s.find.assignableIn(r, login) {
			return errUnprocessable("Reviews may only be requested from collaborators. "+
				"One or more of the users or teams you specified is not a collaborator of the %s repository.", r.FullName())
		}
	}
	for _, login := range logins {
		if slices.Contains(p.RequestedReviewers, login) {
			continue
		}
		p.RequestedReviewers = append(p.RequestedReviewers, login)
		p.issue.UpdatedAt = x.s.now()
		x.event(p.issue, &Event{Event: "review_requested", Reviewer: login})
		x.webhooks().pull("review_requested", p, obj{"requested_reviewer": x.s.json.user(login)})
	}
	return nil
}

// unrequestReviewers withdraws review requests.
func (x *session) unrequestReviewers(p *Pull, logins []string) error {
	if err := x.need(p.issue.repo, "pull_requests", "write", RoleWrite); err != nil {
		return err
	}
	for _, login := range logins {
		if n := slices.Index(p.RequestedReviewers, login); n >= 0 {
			p.RequestedReviewers = slices.Delete(p.RequestedReviewers, n, n+1)
			x.event(p.issue, &Event{Event: "review_request_removed", Reviewer: login})
			x.webhooks().pull("review_request_removed", p, obj{"requested_reviewer": x.s.json.user(login)})
		}
	}
	return nil
}

// closingWords matches "fixes #N" and the other closing keywords.
var closingWords = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:([\w.-]+/[\w.-]+))?#(\d+)\b`)

// closesByText returns the issues that a text closes when it reaches the default branch, each once.
func (f finder) closesByText(r *Repo, text string) []*Issue {
	var out []*Issue
	for _, m := range closingWords.FindAllStringSubmatch(text, 50) {
		target := r
		if m[1] != "" {
			target = f.s.repos[repoKey(m[1])]
		}
		n, err := strconv.Atoi(m[2])
		if err != nil || target == nil {
			continue
		}
		if i, ok := target.Issues[n]; ok && i.Pull == nil && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// closedBy returns the issues that merging a pull request will close: none unless the base is the default branch.
func (f finder) closedBy(p *Pull) []*Issue {
	if p.Base != p.issue.repo.DefaultBranch {
		return nil
	}
	return f.closesByText(p.issue.repo, p.issue.Body)
}
