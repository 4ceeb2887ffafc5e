package simgithub

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// comment adds a comment to a conversation.
func (x *session) comment(i *Issue, body string) (*Comment, error) {
	if err := x.writeTalk(i); err != nil {
		return nil, err
	}
	if strings.TrimSpace(body) == "" {
		return nil, errUnprocessable("Validation Failed: body can't be blank")
	}
	if err := checkBody("IssueComment", body); err != nil {
		return nil, err
	}
	k := &Comment{
		ID: x.s.newID(), Author: x.login(), Body: body, ViaApp: x.viaApp(),
		CreatedAt: x.s.now(), UpdatedAt: x.s.now(), issue: i,
	}
	k.NodeID = nodeID("IC", k.ID)
	i.Comments = append(i.Comments, k)
	i.UpdatedAt = k.CreatedAt
	x.s.nodes[k.NodeID] = k
	x.webhooks().comment("created", k, nil)
	x.crossReference(i, body)
	return k, nil
}

// editComment changes the text of a comment. It is permitted to the author and to users with write access.
func (x *session) editComment(k *Comment, body string) error {
	if err := x.own(k.issue, k.Author); err != nil {
		return err
	}
	if x.viaApp() && x.need(k.issue.repo, "issues|pull_requests", "write", RoleWrite) != nil {
		return errIntegration()
	}
	if strings.TrimSpace(body) == "" {
		return errUnprocessable("Validation Failed: body can't be blank")
	}
	if err := checkBody("IssueComment", body); err != nil {
		return err
	}
	if body == k.Body {
		return nil
	}
	from := k.Body
	k.Edits = append(k.Edits, Edit{At: x.s.now(), Editor: x.login(), From: from})
	k.Body, k.UpdatedAt = body, x.s.now()
	k.issue.UpdatedAt = k.UpdatedAt
	x.webhooks().comment("edited", k, obj{"changes": obj{"body": obj{"from": from}}})
	return nil
}

// deleteComment deletes a comment. It is permitted to the author and to users with write access.
func (x *session) deleteComment(k *Comment) error {
	if err := x.own(k.issue, k.Author); err != nil {
		return err
	}
	i := k.issue
	i.Comments = slices.DeleteFunc(i.Comments, func(o *Comment) bool { return o == k })
	i.UpdatedAt = x.s.now()
	delete(x.s.nodes, k.NodeID)
	x.event(i, &Event{Event: "comment_deleted"})
	x.webhooks().comment("deleted", k, nil)
	return nil
}

// commentByID finds a comment of a repository's conversations.
func (x *session) commentByID(full string, id int64) (*Comment, error) {
	r, err := x.repo(full)
	if err != nil {
		return nil, err
	}
	k, ok := x.s.nodes[nodeID("IC", id)].(*Comment)
	if !ok || k.issue.repo != r {
		return nil, errNotFound()
	}
	perm := "issues"
	if k.issue.Pull != nil {
		perm = "issues|pull_requests"
	}
	return k, x.need(r, perm, "read", RoleRead)
}

// minimize hides a comment or shows it again. It is permitted to the author and to users with write access.
func (x *session) minimize(k *Comment, minimized bool, reason string) error {
	if err := x.own(k.issue, k.Author); err != nil {
		return err
	}
	k.Minimized, k.MinimizedReason = minimized, ""
	if minimized {
		k.MinimizedReason = strings.ToLower(reason)
	}
	return nil
}

// reactionContents lists all kinds of reactions in GitHub's order.
func reactionContents() []string {
	return []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"}
}

// react adds a reaction; made is false if it exists already. GitHub sends no webhook for reactions.
func (x *session) react(i *Issue, list *[]*Reaction, content string) (re *Reaction, made bool, err error) {
	if err := x.writeTalk(i); err != nil {
		return nil, false, err
	}
	if !slices.Contains(reactionContents(), content) {
		return nil, false, errInvalid("Reaction", "content", "invalid")
	}
	for _, re := range *list {
		if re.User == x.login() && re.Content == content {
			return re, false, nil
		}
	}
	re = &Reaction{ID: x.s.newID(), User: x.login(), Content: content, CreatedAt: x.s.now()}
	re.NodeID = nodeID("REA", re.ID)
	*list = append(*list, re)
	return re, true, nil
}

// unreact removes a reaction by its id or, if id is 0, the actor's own reaction with a content.
func (x *session) unreact(i *Issue, list *[]*Reaction, id int64, content string) error {
	if err := x.writeTalk(i); err != nil {
		return err
	}
	for n, re := range *list {
		if re.ID == id || id == 0 && re.User == x.login() && re.Content == content {
			if re.User != x.login() {
				return errForbidden("You may only remove your own reactions.")
			}
			*list = slices.Delete(*list, n, n+1)
			return nil
		}
	}
	return errNotFound()
}

// references matches "#N" and "owner/repo#N".
var references = regexp.MustCompile(`(?:^|[\s(,;:])(?:([\w.-]+/[\w.-]+))?#(\d+)\b`)

// crossReference adds an entry to the history of each issue that the text mentions, unless it has one from this issue.
func (x *session) crossReference(i *Issue, body string) {
	for _, m := range references.FindAllStringSubmatch(body, 50) {
		full := i.repo.FullName()
		if m[1] != "" {
			full = m[1]
		}
		n, err := strconv.Atoi(m[2])
		if err != nil {
			continue
		}
		r, err := x.repo(full)
		if err != nil {
			continue
		}
		target, ok := r.Issues[n]
		if !ok || target == i || slices.ContainsFunc(target.Events, func(e *Event) bool {
			return e.Event == "cross-referenced" && e.Source == i.ID
		}) {
			continue
		}
		x.event(target, &Event{Event: "cross-referenced", Source: i.ID})
	}
}
