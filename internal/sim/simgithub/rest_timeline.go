package simgithub

import (
	"cmp"
	"net/http"
	"slices"
)

func listEvents(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	var list []*Event
	for _, e := range i.Events {
		if e.Event != "cross-referenced" {
			list = append(list, e)
		}
	}
	return each(page(c, list), func(e *Event) obj { return c.s.json.event(i, e) }), nil
}

func listTimeline(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	return page(c, c.s.json.timeline(i)), nil
}

// timeline encodes the history of an issue: events, comments, reviews and commits, in order.
func (j encoder) timeline(i *Issue) []obj {
	type entry struct {
		id int64
		at int64
		o  obj
	}
	var list []entry
	for _, e := range i.Events {
		list = append(list, entry{e.ID, e.CreatedAt.Unix(), j.timelineEvent(i, e)})
	}
	for _, k := range i.Comments {
		o := j.comment(k)
		o["event"], o["actor"] = "commented", o["user"]
		list = append(list, entry{k.ID, k.CreatedAt.Unix(), o})
	}
	if i.Pull != nil {
		for _, v := range i.Pull.Reviews {
			o := j.review(v)
			o["event"], o["state"] = "reviewed", lower(v.State)
			list = append(list, entry{v.ID, v.SubmittedAt.Unix(), o})
		}
		commits, err := j.s.pulls.commits(i.Pull)
		if err != nil {
			j.s.log.Warn().Err(err).Msg("failed to list the commits of a pull request")
		}
		for _, k := range commits {
			o := j.gitCommit(i.repo, &k)
			o["event"] = "committed"
			list = append(list, entry{0, k.Committer.At.Unix(), o})
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	out := make([]obj, 0, len(list))
	for _, e := range list {
		out = append(out, e.o)
	}
	return out
}

func (j encoder) timelineEvent(i *Issue, e *Event) obj {
	if e.Event != "cross-referenced" {
		o := j.event(i, e)
		if e.Event == "closed" {
			o["state_reason"] = orNull(i.StateReason)
		}
		return o
	}
	o := obj{
		"event": e.Event, "actor": j.user(e.Actor), "created_at": stamp(e.CreatedAt), "updated_at": stamp(e.CreatedAt),
		"source": obj{"type": "issue"},
	}
	if from, ok := j.s.find.issue(e.Source); ok {
		issue := j.issue(from)
		issue["repository"] = j.repo(from.repo)
		o["source"] = obj{"type": "issue", "issue": issue}
	}
	return o
}

func lockIssue(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	var req struct {
		LockReason string `json:"lock_reason"`
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"", "off-topic", "too heated", "resolved", "spam"}, req.LockReason) {
		return nil, errInvalid("Issue", "lock_reason", "invalid")
	}
	c.status = http.StatusNoContent
	return nil, c.lock(i, true, req.LockReason)
}

func unlockIssue(c *call) (any, error) {
	i, err := c.theIssue()
	if err != nil {
		return nil, err
	}
	return nil, c.lock(i, false, "")
}
