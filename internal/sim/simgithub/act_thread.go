package simgithub

import (
	"net/http"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// newThread returns a thread that is not added yet, or an error if its line is not in the diff.
func (rv reviews) newThread(p *Pull, in NewReviewComment, commit string) (*Thread, error) {
	if strings.TrimSpace(in.Body) == "" {
		return nil, errInvalid("PullRequestReviewComment", "body", "missing_field")
	}
	if in.Side == "" {
		in.Side = "RIGHT"
	}
	base := p.issue.repo.Git.MergeBase(p.BaseSHA, commit)
	hunk, ok := p.issue.repo.Git.HunkAt(git.Place{From: base, To: commit, Path: in.Path, Line: in.Line, Left: in.Side == "LEFT"})
	if !ok {
		return nil, errCustom("PullRequestReviewComment", "pull_request_review_thread.line must be part of the diff")
	}
	return &Thread{
		Path: in.Path, Side: in.Side, Line: in.Line, StartLine: in.StartLine, OriginalLine: in.Line,
		OriginalCommitID: commit, DiffHunk: hunk, pull: p,
	}, nil
}

func (rv reviews) addThread(t *Thread, v *Review, body string) *ReviewComment {
	t.ID = rv.x.s.newID()
	t.NodeID = nodeID("PRRT", t.ID)
	t.pull.Threads = append(t.pull.Threads, t)
	rv.x.s.nodes[t.NodeID] = t
	return rv.addComment(t, v, body)
}

func (rv reviews) addComment(t *Thread, v *Review, body string) *ReviewComment {
	k := &ReviewComment{
		ID: rv.x.s.newID(), ReviewID: v.ID, Author: rv.x.login(), Body: body, CommitID: v.CommitID, ViaApp: rv.x.viaApp(),
		CreatedAt: rv.x.s.now(), UpdatedAt: rv.x.s.now(), thread: t,
	}
	if len(t.Comments) > 0 {
		k.InReplyTo = t.Comments[0].ID
	}
	k.NodeID = nodeID("PRRC", k.ID)
	t.Comments = append(t.Comments, k)
	rv.x.s.nodes[k.NodeID] = k
	return k
}

// reply adds a comment to a thread. Like GitHub, it wraps the comment in a separate review and sends both webhooks.
func (rv reviews) reply(t *Thread, body string) (*ReviewComment, error) {
	if err := rv.check(t.pull, NewReview{Event: "COMMENT", Body: body}); err != nil {
		return nil, err
	}
	if err := rv.onePendingReply(t.pull); err != nil {
		return nil, err
	}
	v := rv.newReview(t.pull, ReviewCommented, "", t.pull.HeadSHA)
	k := rv.addComment(t, v, body)
	rv.announce(v)
	return k, nil
}

// replyTo adds a comment to the thread whose first comment has an id. Ids of later comments are refused.
func (rv reviews) replyTo(p *Pull, id int64, body string) (*ReviewComment, error) {
	k, ok := rv.x.s.nodes[nodeID("PRRC", id)].(*ReviewComment)
	if !ok || k.thread.pull != p {
		return nil, &Error{Status: http.StatusNotFound, Message: "Parent comment not found"}
	}
	if k.InReplyTo != 0 {
		return nil, errCustom("PullRequestReviewComment", "in_reply_to must be the id of a top-level review comment")
	}
	return rv.reply(k.thread, body)
}

// startThread adds a single comment at a line. Like GitHub, it wraps it in a review.
func (rv reviews) startThread(p *Pull, in NewReviewComment, commit string) (*ReviewComment, error) {
	v, err := rv.add(p, NewReview{Event: "COMMENT", CommitID: commit, Comments: []NewReviewComment{in}})
	if err != nil {
		return nil, err
	}
	t := p.Threads[len(p.Threads)-1]
	if t.Comments[0].ReviewID != v.ID {
		return nil, errUnprocessable("comment was not added")
	}
	return t.Comments[0], nil
}

// resolve resolves or unresolves a thread. It is permitted to the author of the pull request and to users with write
// access.
func (rv reviews) resolve(t *Thread, resolved bool) error {
	i := t.pull.issue
	if rv.x.viaApp() || rv.x.by == nil || rv.x.by.Login != i.Author {
		if err := rv.x.need(i.repo, "pull_requests", "write", RoleWrite); err != nil {
			return err
		}
	}
	if t.Resolved == resolved {
		return nil
	}
	t.Resolved, t.ResolvedBy = resolved, ""
	action := "unresolved"
	if resolved {
		t.ResolvedBy, action = rv.x.login(), "resolved"
	}
	rv.x.webhooks().thread(action, t)
	return nil
}

func (rv reviews) editComment(k *ReviewComment, body string) error {
	if err := rv.x.own(k.thread.pull.issue, k.Author); err != nil {
		return err
	}
	if strings.TrimSpace(body) == "" {
		return errInvalid("PullRequestReviewComment", "body", "missing_field")
	}
	if body == k.Body {
		return nil
	}
	from := k.Body
	k.Edits = append(k.Edits, Edit{At: rv.x.s.now(), Editor: rv.x.login(), From: from})
	k.Body, k.UpdatedAt = body, rv.x.s.now()
	if k.thread.pull.IsPending(k) {
		return nil
	}
	rv.x.webhooks().reviewComment("edited", k, obj{"changes": obj{"body": obj{"from": from}}})
	return nil
}

func (rv reviews) deleteComment(k *ReviewComment) error {
	t := k.thread
	if err := rv.x.own(t.pull.issue, k.Author); err != nil {
		return err
	}
	rv.removeComment(k)
	if !t.pull.IsPending(k) {
		rv.x.webhooks().reviewComment("deleted", k, nil)
	}
	return nil
}

// removeComment removes a comment, and its thread if it was the last one.
func (rv reviews) removeComment(k *ReviewComment) {
	t := k.thread
	t.Comments = slices.DeleteFunc(t.Comments, func(o *ReviewComment) bool { return o == k })
	if len(t.Comments) == 0 {
		t.pull.Threads = slices.DeleteFunc(t.pull.Threads, func(o *Thread) bool { return o == t })
		delete(rv.x.s.nodes, t.NodeID)
	}
	delete(rv.x.s.nodes, k.NodeID)
}

// follow moves the line of a thread from one head to the next. It shifts with the lines above it. The thread is
// outdated if the line itself changed.
func (t *Thread) follow(in *git.Repository, before, after string) {
	if t.Line == 0 || t.Outdated || t.Side != "RIGHT" {
		return
	}
	shift, changed, err := in.FollowLine(t.Path, t.Line, before, after)
	switch {
	case err != nil: // for example because the file was deleted: the thread stays where it is
	case changed:
		t.Outdated, t.Line, t.StartLine = true, 0, 0
	default:
		t.Line += shift
		if t.StartLine > 0 {
			t.StartLine = max(1, t.StartLine+shift)
		}
	}
}
