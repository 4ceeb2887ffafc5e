package simgithub

import "slices"

// pendingReview returns an account's pending review, nil if there is none. There is at most one.
func (p *Pull) pendingReview(login string) *Review {
	for _, v := range p.Reviews {
		if v.State == ReviewPending && v.Author == login {
			return v
		}
	}
	return nil
}

// IsPending reports whether a comment belongs to a review that is not submitted yet. Only its author sees it.
func (p *Pull) IsPending(k *ReviewComment) bool {
	return slices.ContainsFunc(p.Reviews, func(v *Review) bool { return v.ID == k.ReviewID && v.State == ReviewPending })
}

// sees reports whether an account sees a comment in a thread.
func (t *Thread) sees(login string, k *ReviewComment) bool {
	return k.Author == login || !t.pull.IsPending(k)
}

// visible returns the comments of a thread that an account sees.
func (t *Thread) visible(login string) (list []*ReviewComment) {
	for _, k := range t.Comments {
		if t.sees(login, k) {
			list = append(list, k)
		}
	}
	return list
}

// hidePending removes the pending reviews of others, with their comments and the threads that they start.
func (p *Pull) hidePending(login string) {
	for _, t := range p.Threads {
		t.Comments = slices.DeleteFunc(t.Comments, func(k *ReviewComment) bool { return k.Author != login && p.IsPending(k) })
	}
	p.Threads = slices.DeleteFunc(p.Threads, func(t *Thread) bool { return len(t.Comments) == 0 })
	p.Reviews = slices.DeleteFunc(p.Reviews, func(v *Review) bool { return v.State == ReviewPending && v.Author != login })
}

// replyPending adds a comment to a pending review. It sends no webhook before the review is submitted.
func (rv reviews) replyPending(t *Thread, v *Review, body string) (*ReviewComment, error) {
	if err := rv.check(t.pull, NewReview{Event: "COMMENT", Body: body}); err != nil {
		return nil, err
	}
	switch {
	case v.pull != t.pull:
		return nil, errUnprocessable("The review and the thread belong to different pull requests.")
	case v.State != ReviewPending:
		return nil, errUnprocessable("Review has already been submitted.")
	}
	return rv.addComment(t, v, body), nil
}

// deletePending deletes a pending review with its comments. Submitted reviews cannot be deleted.
func (rv reviews) deletePending(v *Review) error {
	if err := rv.x.need(v.pull.issue.repo, "pull_requests", "write", RoleRead); err != nil {
		return err
	}
	if v.State != ReviewPending {
		return errUnprocessable("Can not delete a non-pending pull request review")
	}
	p := v.pull
	for _, t := range slices.Clone(p.Threads) {
		for _, k := range slices.Clone(t.Comments) {
			if k.ReviewID == v.ID {
				rv.removeComment(k)
			}
		}
	}
	p.Reviews = slices.DeleteFunc(p.Reviews, func(o *Review) bool { return o == v })
	delete(rv.x.s.nodes, v.NodeID)
	return nil
}

// checkSubmit returns why a pending review cannot be submitted, or nil.
func (rv reviews) checkSubmit(v *Review, event, body string) error {
	if _, ok := reviewState(event); !ok || event == "" || v.Author != rv.x.login() {
		return errInvalid("PullRequestReview", "event", "invalid")
	}
	if v.State != ReviewPending {
		return errUnprocessable("Review has already been submitted.")
	}
	own := slices.ContainsFunc(v.pull.Threads, func(t *Thread) bool {
		return slices.ContainsFunc(t.Comments, func(k *ReviewComment) bool { return k.ReviewID == v.ID })
	})
	in := NewReview{Event: event, Body: body}
	if in.Body == "" {
		in.Body = v.Body
	}
	if own {
		in.Comments = []NewReviewComment{{}}
	}
	return rv.check(v.pull, in)
}

// onePending refuses a second pending review, and a submitted one next to a pending one, like GitHub.
func (rv reviews) onePending(p *Pull) error {
	if p.pendingReview(rv.x.login()) == nil {
		return nil
	}
	return errUnprocessable("User can only have one pending review per pull request")
}

// onePendingReply is the same refusal for a comment that is not part of a review.
func (rv reviews) onePendingReply(p *Pull) error {
	if rv.onePending(p) == nil {
		return nil
	}
	return &Error{Status: 422, Message: "Validation Failed", Fields: []FieldError{{
		Resource: "PullRequestReview", Code: "custom", Field: "user_id", Message: "user_id can only have one pending review per pull request",
	}}}
}
