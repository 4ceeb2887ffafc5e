package walk

import (
	"context"

	"github.com/errand-bot/errand/internal/forge"
)

// IssueSnapshot reads the initial data of a task in one call.
func (a api) IssueSnapshot(ctx context.Context, _ forge.Repo, number int, _ string) (forge.IssueSnapshot, error) {
	return read(ctx, a, "read discussion", func() (out forge.IssueSnapshot, err error) {
		i := a.issues[number]
		if i == nil {
			return out, notFound("read discussion")
		}
		out.DefaultBranch, out.Head = mainBranch, a.branches[mainBranch]
		if a.config != "" {
			out.Config = []byte(a.config)
		}
		out.Text = i.words()
		for _, c := range i.comments {
			if !c.gone {
				out.Comments = append(out.Comments, c.view())
			}
		}
		return out, nil
	})
}

// words returns an issue's text with the data that decides whether it is trusted.
func (i *issue) words() forge.Comment {
	v := forge.Comment{Node: i.node, Author: i.author.Person, Body: i.text().body, CreatedAt: i.created, ThumbsUp: views(i.thumbs)}
	if len(i.texts) > 1 {
		editor := i.text().by.Person
		v.EditedAt, v.Editor = i.text().at, &editor
	}
	return v
}

// PlanSnapshot reads a plan's comment with its issue, and the head of a branch.
func (a api) PlanSnapshot(ctx context.Context, _ forge.Repo, node, said, branch string) (forge.PlanSnapshot, error) {
	return read(ctx, a, "read plan", func() (out forge.PlanSnapshot, err error) {
		out.Head = a.branches[branch]
		if c := a.find(func(c *comment) bool { return c.node == said }); said != "" && c != nil {
			v := c.view()
			out.Approval = &v
		}
		c := a.find(func(c *comment) bool { return c.node == node })
		if c == nil {
			out.Deleted = true
			return out, nil
		}
		t := c.on.text()
		out.Comment, out.Title, out.Body, out.Closed = c.view(), t.title, t.body, c.on.closed
		if a.w.plant.stale {
			out.Comment.Body = c.bodies[0].text
		}
		return out, nil
	})
}

// CommentAndHead reads a person's current comment and the head of a branch.
func (a api) CommentAndHead(ctx context.Context, _ forge.Repo, node, branch string) (said *forge.Comment, head string, err error) {
	said, err = read(ctx, a, "read a comment again", func() (*forge.Comment, error) {
		head = a.branches[branch]
		c := a.find(func(c *comment) bool { return c.node == node })
		if c == nil {
			return nil, nil
		}
		v := c.view()
		return &v, nil
	})
	return said, head, err
}

// CommitFiles reads the base commit of work; the walks' repository has no files.
func (a api) CommitFiles(ctx context.Context, _ forge.Repo, _ string, _ []string) (map[string]string, error) {
	return read(ctx, a, "read files", func() (map[string]string, error) { return nil, nil })
}

// FilePaths lists the files of the base commit.
func (a api) FilePaths(ctx context.Context, _ forge.Repo, _ string) ([]string, error) {
	return read(ctx, a, "list files", func() ([]string, error) { return nil, nil })
}
