package forge

import (
	"context"
)

// thumbsUpFields selects the newest 👍 on a text.
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
            nodes { id state url body createdAt lastEditedAt author ` + actorFields + ` editor ` + actorFields + ` ` + thumbsUpFields + ` }
          }
        }
      }
    }
  }
}`

// PullText is the conversation of a pull request, with the data that decides which parts are trusted.
type PullText struct {
	Text Comment // body of the pull request
	// Comments are the first 100 comments of the conversation, then the texts of the first 50 reviews, then the first
	// 25 comments of each of the first 40 threads.
	Comments []PullComment
	// Truncated is set if there are more.
	Truncated bool
}

// PullComment is a text of a pull request and its place.
type PullComment struct {
	Comment
	// Review is the state of the review with this text: APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED. It is
	// empty for other comments.
	Review string
	// Thread is the thread of the comment, without its comments; nil for comments outside of threads.
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

// PullText reads the body, conversation, reviews and threads of a pull request in one request, with further requests
// only for comments with more than 20 👍. It reads long conversations up to the limits of type PullText.
func (f *Forge) PullText(ctx context.Context, r Repo, number int) (PullText, error) {
	op, err := f.client.Read(ctx, r.Installation, "read a pull request's text", onIssue(r, number))
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

// addReviews adds the texts of reviews.
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

// withNewestReactions returns a text with the 👍 of its first page.
func (n *commentNode) withNewestReactions() Comment {
	v := n.comment()
	v.ThumbsUp = n.Reactions.reactions()
	return v
}

// lineOf returns the line of a thread in the current head, or else in the original commit; 0 for a whole file.
func lineOf(now, original *int) int {
	switch {
	case now != nil:
		return *now
	case original != nil:
		return *original
	}
	return 0
}
