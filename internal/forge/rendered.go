package forge

import (
	"context"
	"fmt"
)

// A TextRef names a text on GitHub: the body of an issue, a comment on an issue or pull request, or, of the pull request
// Pull, a review or the newest 100 comments in review threads.
type TextRef struct {
	Issue   int
	Comment int64
	Pull    int
	Review  int64
	Threads bool
}

func (t TextRef) path() string {
	switch {
	case t.Comment != 0:
		return fmt.Sprintf("issues/comments/%d", t.Comment)
	case t.Review != 0:
		return fmt.Sprintf("pulls/%d/reviews/%d", t.Pull, t.Review)
	case t.Threads:
		return fmt.Sprintf("pulls/%d/comments?sort=created&direction=desc&per_page=100", t.Pull)
	}
	return fmt.Sprintf("issues/%d", t.Issue)
}

// Rendered returns a text as GitHub shows it now, in HTML. Addresses of attachments in it are signed: for minutes they can
// be read without a token.
func (f *Forge) Rendered(ctx context.Context, r Repo, text TextRef) (string, error) {
	op, err := f.client.Read(ctx, r.Installation, "render a text", "in "+r.FullName())
	if err != nil {
		return "", err
	}
	type rendered struct {
		HTML string `json:"body_html"`
	}
	var list []rendered
	var one rendered
	var out any = &one
	if text.Threads {
		out = &list
	}
	if err := op.GetAs("application/vnd.github.full+json", fmt.Sprintf("repos/%s/%s/%s", r.Owner, r.Name, text.path()), out); err != nil {
		return "", op.Wrap(err)
	}
	for _, c := range list {
		one.HTML += c.HTML + "\n"
	}
	return one.HTML, nil
}
