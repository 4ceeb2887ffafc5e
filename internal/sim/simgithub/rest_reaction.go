package simgithub

func reactionRoutes() []route {
	const repo = "/repos/{owner}/{repo}"
	var all []route
	for path, find := range map[string]reacted{
		repo + "/issues/{number}/reactions": issueReactions, repo + "/issues/comments/{id}/reactions": commentReactions,
		repo + "/pulls/comments/{id}/reactions": reviewCommentReactions,
	} {
		all = append(all,
			route{"GET", path, listReactions(find)},
			route{"POST", path, createReaction(find)},
			route{"DELETE", path + "/{reaction}", deleteReaction(find)})
	}
	return all
}

// reacted returns the reactions of the object in the path, and its issue.
type reacted func(c *call) (*Issue, *[]*Reaction, error)

func issueReactions(c *call) (*Issue, *[]*Reaction, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, nil, err
	}
	return i, &i.Reactions, nil
}

func commentReactions(c *call) (*Issue, *[]*Reaction, error) {
	k, err := c.theComment()
	if err != nil {
		return nil, nil, err
	}
	return k.issue, &k.Reactions, nil
}

func reviewCommentReactions(c *call) (*Issue, *[]*Reaction, error) {
	k, err := c.theReviewComment()
	if err != nil {
		return nil, nil, err
	}
	return k.thread.pull.issue, &k.Reactions, nil
}

func listReactions(find reacted) handler {
	return func(c *call) (any, error) {
		_, list, err := find(c)
		if err != nil {
			return nil, err
		}
		var out []*Reaction
		for _, re := range *list {
			if want := c.query("content"); want == "" || want == re.Content {
				out = append(out, re)
			}
		}
		return each(page(c, out), c.s.json.reaction), nil
	}
}

func createReaction(find reacted) handler {
	return func(c *call) (any, error) {
		i, list, err := find(c)
		if err != nil {
			return nil, err
		}
		var req struct{ Content string }
		if err := c.decode(&req); err != nil {
			return nil, err
		}
		re, made, err := c.react(i, list, req.Content)
		if err != nil {
			return nil, err
		}
		if !made {
			return c.s.json.reaction(re), nil
		}
		return c.created(c.s.json.reaction(re))
	}
}

func deleteReaction(find reacted) handler {
	return func(c *call) (any, error) {
		i, list, err := find(c)
		if err != nil {
			return nil, err
		}
		return nil, c.unreact(i, list, c.id("reaction"), "")
	}
}
