package web

import (
	"maps"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// pullActs returns the forms of a pull request's pages: those of an issue, and those about changes.
func pullActs() map[string]act {
	acts := issueActs()
	maps.Copy(acts, map[string]act{
		"line": actLine, "drop": actDrop, "submit": actSubmit, "reply": actReply, "merge": actMerge,
		"resolve": func(v *visit) (string, error) {
			return "", v.p.ResolveThread(v.full(), v.n(), v.number("thread"), v.field("resolved") == "true")
		},
		"draft": func(v *visit) (string, error) {
			return "#end", v.p.SetDraft(v.full(), v.n(), v.field("draft") == "true")
		},
		"ask": func(v *visit) (string, error) { return "", v.p.RequestReview(v.full(), v.n(), v.field("login")) },
		"unask": func(v *visit) (string, error) {
			return "", v.p.UnrequestReview(v.full(), v.n(), v.field("login"))
		},
		"dismiss":       func(v *visit) (string, error) { return "", v.p.DismissReview(v.full(), v.n(), v.number("id")) },
		"delete_branch": actDeleteBranch,
	})
	return acts
}

func (v *visit) draftKey() draftKey { return draftsKey(v.p.Login(), v.full(), v.n()) }

// actLine comments on a line, at once or as a draft of the pending review.
func actLine(v *visit) (string, error) {
	c := simgithub.NewReviewComment{Path: v.field("path"), Line: int(v.number("line")), Side: v.field("side"), Body: v.field("body")}
	if strings.TrimSpace(c.Body) == "" {
		return "", invalid("PullRequestReviewComment", "body", "missing_field")
	}
	if v.field("when") == "now" {
		k, err := v.p.CommentOnLine(v.full(), v.n(), c)
		if err != nil {
			return "", err
		}
		return "#discussion_r" + itoa(k.ID), nil
	}
	head, err := v.p.CheckLine(v.full(), v.n(), c)
	if err != nil {
		return "", err
	}
	v.web.addDraft(v.draftKey(), draft{NewReviewComment: c, Commit: head})
	return "#review", nil
}

// actDrop deletes one draft of the pending review, or all of them.
func actDrop(v *visit) (string, error) {
	v.web.dropDrafts(v.draftKey(), v.number("draft"))
	return "#review", nil
}

// actSubmit submits the pending review with all drafts.
func actSubmit(v *visit) (string, error) {
	in := simgithub.NewReview{Event: v.field("event"), Body: v.field("body")}
	if in.Event == "" {
		return "", invalid("PullRequestReview", "event", "missing_field")
	}
	for _, d := range v.web.draftsOf(v.draftKey()) {
		in.CommitID = d.Commit
		in.Comments = append(in.Comments, d.NewReviewComment)
	}
	r, err := v.p.Review(v.full(), v.n(), in)
	if err != nil {
		return "", err
	}
	v.web.dropDrafts(v.draftKey(), 0)
	return "/" + v.full() + "/pull/" + itoa(int64(v.n())) + "#pullrequestreview-" + itoa(r.ID), nil
}

func actReply(v *visit) (string, error) {
	k, err := v.p.ReplyToThread(v.full(), v.n(), v.number("thread"), v.field("body"))
	if err != nil {
		return "", err
	}
	return "#discussion_r" + itoa(k.ID), nil
}

// actMerge merges the head that the page showed; a head that was pushed in between is refused.
func actMerge(v *visit) (string, error) {
	return "#end", v.p.Merge(v.full(), v.n(), simgithub.Merge{Method: v.field("method"), SHA: v.field("sha")})
}

func actDeleteBranch(v *visit) (string, error) {
	i, err := v.p.Issue(v.full(), v.n())
	if err != nil {
		return "", err
	}
	if i.Pull == nil {
		return "", notFound()
	}
	return "#end", v.p.DeleteBranch(v.full(), i.Pull.Head)
}
