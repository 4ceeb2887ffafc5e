package forge

import (
	"context"
)

// thumbsUpFields are the newest 👍 on a text.
const thumbsUpFields = `reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields

const pullTextQuery = `query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      id url body createdAt lastEditedAt author ` + actorFields + ` editor ` + actorFields + ` ` + thumbsUpFields + `
      comments(first: 100) ` + commentPageFields + `
      reviews(first: 50) {
        pageInfo { hasNextPage endCursor }
        nodes { id url body state createdAt lastEditedAt author ` + actorFields + ` editor ` + actorFields + ` ` + thumbsUpFields + ` }
      }
      reviewThreads(first: 40) {
        pageInfo { hasNextPage endCursor }
        nodes {
          isResolved isOutdated path line originalLine
          comments(first: 25) {
            pageInfo { hasNextPage endCursor }
            nodes { id url body createdAt lastEditedAt author ` + actorFields + ` editor ` + actorFields + ` ` + thumbsUpFields + ` }
          }
        }
      }
    }
  }
}`

// PullText is what was written in a pull request, with all that decides whether it may be believed.
type PullText struct {
	Text Comment // the pull request's own
	// Comments are the first hundred comments of the conversation, then the texts of the first fifty reviews, then the
	// first 25 comments of each of the first forty threads.
	Comments []PullComment
	// Truncated reports whether there is more than that.
	Truncated bool
}

// PullComment is a text of a pull request and where it stands.
type PullComment struct {
	Comment
	// Review is the judgement that the text comes with, as GitHub names it: APPROVED, CHANGES_REQUESTED, COMMENTED,
	// DISMISSED; empty for all else.
	Review string
	// Thread is the thread that it stands in, without its comments; nil for all else.
	Thread *Thread
}

type pullTextNode struct {
	issueNode
	Reviews struct {
		PageInfo pageInfo `json:"pageInfo"`
		Nodes    []struct {
			commentNode
			State string `json:"state"`
		} `json:"nodes"`
	} `json:"reviews"`
	Threads struct {
		PageInfo pageInfo `json:"pageInfo"`
		Nodes    []struct {
			IsResolved   bool        `json:"isResolved"`
			IsOutdated   bool        `json:"isOutdated"`
			Path         string      `json:"path"`
			Line         *int        `json:"line"`
			OriginalLine *int        `json:"originalLine"`
			Comments     commentPage `json:"comments"`
		} `json:"nodes"`
	} `json:"reviewThreads"`
}

// PullText reads a pull request's own text, its conversation, reviews and threads, all in one request; more follow only for
// texts of the conversation with more than twenty 👍. Of long ones it reads the beginning, as PullText says.
func (f *Forge) PullText(ctx context.Context, r Repo, number int) (PullText, error) {
	op, err := f.client.Read(ctx, r.Installation, "read a pull request's text", about(r, number))
	if err != nil {
		return PullText{}, err
	}
	var data struct {
		Repository *struct {
			Pull *pullTextNode `json:"pullRequest"`
		} `json:"repository"`
	}
	if err := op.GraphQL(pullTextQuery, map[string]any{"owner": r.Owner, "name": r.Name, "number": number}, &data); err != nil {
		return PullText{}, op.Wrap(err)
	}
	if data.Repository == nil || data.Repository.Pull == nil {
		return PullText{}, op.Deleted()
	}
	pull := data.Repository.Pull
	out := PullText{Truncated: pull.Comments.PageInfo.HasNextPage}
	pull.Comments.PageInfo.HasNextPage = false
	var begin IssueSnapshot
	if err := readDiscussion(op, &pull.issueNode, &begin); err != nil {
		return PullText{}, op.Wrap(err)
	}
	out.Text = begin.Text
	for _, c := range begin.Comments {
		out.Comments = append(out.Comments, PullComment{Comment: c})
	}
	out.addReviews(pull)
	out.addThreads(pull)
	return out, nil
}

// addReviews adds what reviews say beyond their judgement.
func (t *PullText) addReviews(n *pullTextNode) {
	t.Truncated = t.Truncated || n.Reviews.PageInfo.HasNextPage
	for i := range n.Reviews.Nodes {
		if v := &n.Reviews.Nodes[i]; v.Body != "" && v.State != "PENDING" {
			t.Comments = append(t.Comments, PullComment{Comment: v.withNewestReactions(), Review: v.State})
		}
	}
}

// addThreads adds the comments of the threads.
func (t *PullText) addThreads(n *pullTextNode) {
	t.Truncated = t.Truncated || n.Threads.PageInfo.HasNextPage
	for i := range n.Threads.Nodes {
		th := &n.Threads.Nodes[i]
		where := &Thread{Path: th.Path, Resolved: th.IsResolved, Outdated: th.IsOutdated, Line: lineOf(th.Line, th.OriginalLine)}
		t.Truncated = t.Truncated || th.Comments.PageInfo.HasNextPage
		for _, c := range th.Comments.Nodes {
			if c != nil && c.ID != "" {
				t.Comments = append(t.Comments, PullComment{Comment: c.withNewestReactions(), Thread: where})
			}
		}
	}
}

// withNewestReactions is a text with its newest 👍, no more than came with it.
func (n *commentNode) withNewestReactions() Comment {
	v := n.comment()
	v.ThumbsUp = n.Reactions.reactions()
	return v
}

// lineOf is a thread's line: in the present head, else of the original commit; 0 for a whole file.
func lineOf(now, original *int) int {
	switch {
	case now != nil:
		return *now
	case original != nil:
		return *original
	}
	return 0
}
