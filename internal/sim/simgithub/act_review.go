package simgithub

import (
	"slices"
	"strings"
)

// NewReview describes a review to be added.
type NewReview struct {
	Event    string // APPROVE, REQUEST_CHANGES, COMMENT; empty: stays pending
	Body     string
	CommitID string // empty: the head
	Comments []NewReviewComment
}

// NewReviewComment describes a comment that starts a thread at a line of the diff.
type NewReviewComment struct {
	Path      string
	Line      int    // 0: about the whole file
	Side      string // RIGHT (default) or LEFT
	StartLine int
	Body      string
}

func reviewState(event string) (string, bool) {
	switch event {
	case "":
		return ReviewPending, true
	case "APPROVE":
		return ReviewApproved, true
	case "REQUEST_CHANGES":
		return ReviewChangesRequested, true
	case "COMMENT":
		return ReviewCommented, true
	default:
		return "", false
	}
}

// add adds a review. It is permitted to users with read access, but authors may not approve or reject their own pull
// request.
func (rv reviews) add(p *Pull, in NewReview) (*Review, error) {
	if err := rv.check(p, in); err != nil {
		return nil, err
	}
	if err := rv.onePending(p); err != nil {
		return nil, err
	}
	if in.CommitID == "" {
		in.CommitID = p.HeadSHA
	}
	var threads []*Thread
	for _, c := range in.Comments {
		t, err := rv.newThread(p, c, in.CommitID)
		if err != nil {
			return nil, err
		}
		threads = append(threads, t)
	}
	state, _ := reviewState(in.Event)
	v := rv.newReview(p, state, in.Body, in.CommitID)
	for n, t := range threads {
		rv.addThread(t, v, in.Comments[n].Body)
	}
	if state != ReviewPending {
		rv.announce(v)
	}
	return v, nil
}

func (rv reviews) check(p *Pull, in NewReview) error {
	if err := rv.x.need(p.issue.repo, "pull_requests", "write", RoleRead); err != nil {
		return err
	}
	if err := rv.x.writeTalk(p.issue); err != nil {
		return err
	}
	if _, ok := reviewState(in.Event); !ok {
		return errInvalid("PullRequestReview", "event", "invalid")
	}
	own := rv.x.login() == p.issue.Author
	switch {
	case own && in.Event == "APPROVE":
		return errUnprocessable("Unprocessable Entity: Can not approve your own pull request")
	case own && in.Event == "REQUEST_CHANGES":
		return errUnprocessable("Unprocessable Entity: Can not request changes on your own pull request")
	case in.Event == "REQUEST_CHANGES" && strings.TrimSpace(in.Body) == "" && len(in.Comments) == 0,
		in.Event == "COMMENT" && strings.TrimSpace(in.Body) == "" && len(in.Comments) == 0:
		return errUnprocessable("Unprocessable Entity: Body can't be blank")
	}
	return checkBody("PullRequestReview", in.Body)
}

func (rv reviews) newReview(p *Pull, state, body, commit string) *Review {
	v := &Review{
		ID: rv.x.s.newID(), Author: rv.x.login(), Body: body, State: state, CommitID: commit, ViaApp: rv.x.viaApp(),
		SubmittedAt: rv.x.s.now(), pull: p,
	}
	v.NodeID = nodeID("PRR", v.ID)
	p.Reviews = append(p.Reviews, v)
	p.issue.UpdatedAt = v.SubmittedAt
	rv.x.s.nodes[v.NodeID] = v
	return v
}

// submit submits a pending review.
func (rv reviews) submit(v *Review, event, body string) error {
	if err := rv.checkSubmit(v, event, body); err != nil {
		return err
	}
	state, _ := reviewState(event)
	if body != "" {
		v.Body = body
	}
	v.State, v.SubmittedAt = state, rv.x.s.now()
	rv.announce(v)
	return nil
}

// announce ends the request for the author's review, and sends a webhook for the review and one for each of its comments.
func (rv reviews) announce(v *Review) {
	v.pull.RequestedReviewers = slices.DeleteFunc(v.pull.RequestedReviewers, func(l string) bool { return l == v.Author })
	rv.x.webhooks().review("submitted", v, nil)
	for _, t := range v.pull.Threads {
		for _, k := range t.Comments {
			if k.ReviewID == v.ID {
				rv.x.webhooks().reviewComment("created", k, nil)
			}
		}
	}
}

// dismiss dismisses a review. It needs write access.
func (rv reviews) dismiss(v *Review) error {
	if err := rv.x.need(v.pull.issue.repo, "pull_requests", "write", RoleWrite); err != nil {
		return err
	}
	if v.State != ReviewApproved && v.State != ReviewChangesRequested {
		return errUnprocessable("Can not dismiss a %s pull request review", strings.ToLower(v.State))
	}
	v.State = ReviewDismissed
	rv.x.event(v.pull.issue, &Event{Event: "review_dismissed"})
	rv.x.webhooks().review("dismissed", v, nil)
	return nil
}
