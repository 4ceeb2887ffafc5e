package simgithub

import (
	"slices"
	"strings"
)

// NewReview is a review with its comments.
type NewReview struct {
	Event    string // APPROVE, REQUEST_CHANGES, COMMENT; empty: stays pending
	Body     string
	CommitID string // empty: the head
	Comments []NewReviewComment
}

// NewReviewComment starts a thread at a line of the diff.
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

// review submits a review; who may read may review, but nobody may judge their own pull request.
func (x *session) review(p *Pull, in NewReview) (*Review, error) {
	if err := x.mayReview(p, in); err != nil {
		return nil, err
	}
	if in.CommitID == "" {
		in.CommitID = p.HeadSHA
	}
	var threads []*Thread
	for _, c := range in.Comments {
		t, err := x.newThread(p, c, in.CommitID)
		if err != nil {
			return nil, err
		}
		threads = append(threads, t)
	}
	state, _ := reviewState(in.Event)
	v := x.newReview(p, state, in.Body, in.CommitID)
	for n, t := range threads {
		x.addThread(t, v, in.Comments[n].Body)
	}
	p.RequestedReviewers = slices.DeleteFunc(p.RequestedReviewers, func(l string) bool { return l == v.Author })
	if state != ReviewPending {
		x.announceReview(v)
	}
	return v, nil
}

func (x *session) mayReview(p *Pull, in NewReview) error {
	if err := x.need(p.issue.repo, "pull_requests", "write", RoleRead); err != nil {
		return err
	}
	if err := x.writeTalk(p.issue); err != nil {
		return err
	}
	if _, ok := reviewState(in.Event); !ok {
		return errInvalid("PullRequestReview", "event", "invalid")
	}
	own := x.login() == p.issue.Author
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

func (x *session) newReview(p *Pull, state, body, commit string) *Review {
	v := &Review{
		ID: x.s.newID(), Author: x.login(), Body: body, State: state, CommitID: commit, ViaApp: x.viaApp(),
		SubmittedAt: x.s.now(), pull: p,
	}
	v.NodeID = nodeID("PRR", v.ID)
	p.Reviews = append(p.Reviews, v)
	p.issue.UpdatedAt = v.SubmittedAt
	x.s.nodes[v.NodeID] = v
	return v
}

// submitReview turns a pending review into a judgement.
func (x *session) submitReview(v *Review, event, body string) error {
	state, ok := reviewState(event)
	if !ok || event == "" || v.State != ReviewPending || v.Author != x.login() {
		return errInvalid("PullRequestReview", "event", "invalid")
	}
	if body != "" {
		v.Body = body
	}
	v.State, v.SubmittedAt = state, x.s.now()
	x.announceReview(v)
	return nil
}

// announceReview sends the review's webhook and one for each of its comments.
func (x *session) announceReview(v *Review) {
	x.emitReview("submitted", v, nil)
	for _, t := range v.pull.Threads {
		for _, k := range t.Comments {
			if k.ReviewID == v.ID {
				x.emitReviewComment("created", k, nil)
			}
		}
	}
}

// dismissReview takes a judgement back (write).
func (x *session) dismissReview(v *Review) error {
	if err := x.need(v.pull.issue.repo, "pull_requests", "write", RoleWrite); err != nil {
		return err
	}
	if v.State != ReviewApproved && v.State != ReviewChangesRequested {
		return errUnprocessable("Can not dismiss a %s pull request review", strings.ToLower(v.State))
	}
	v.State = ReviewDismissed
	x.event(v.pull.issue, &Event{Event: "review_dismissed"})
	x.emitReview("dismissed", v, nil)
	return nil
}
