package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// issueActs returns the forms of an issue's page.
func issueActs() map[string]act {
	return map[string]act{
		"comment": actComment, "edit_text": actEditText, "delete": actDelete, "fold": actFold, "react": actReact, "tick": actTick,
		"title":  func(v *visit) (string, error) { return "", v.edit(simgithub.IssueEdit{Title: new(v.field("title"))}) },
		"close":  func(v *visit) (string, error) { return "#end", v.p.Close(v.full(), v.n(), v.field("reason")) },
		"reopen": func(v *visit) (string, error) { return "#end", v.p.Reopen(v.full(), v.n()) },
		"lock":   func(v *visit) (string, error) { return "", v.p.Lock(v.full(), v.n(), v.field("reason")) },
		"unlock": func(v *visit) (string, error) { return "", v.p.Unlock(v.full(), v.n()) },
		"assign": actAssign,
		"unassign": func(v *visit) (string, error) {
			return "", v.p.Unassign(v.full(), v.n(), v.field("login"))
		},
		"label":   actLabel,
		"block":   actBlock,
		"unblock": actBlock,
		"unlabel": func(v *visit) (string, error) {
			return "", v.p.RemoveLabel(v.full(), v.n(), v.field("label"))
		},
	}
}

func (v *visit) edit(in simgithub.IssueEdit) error { return v.p.EditIssue(v.full(), v.n(), in) }

// actComment adds a comment, and closes or reopens the issue if that button was pressed.
func actComment(v *visit) (string, error) {
	then := v.field("then")
	to := "#end"
	if body := v.field("body"); then == "" || strings.TrimSpace(body) != "" {
		k, err := v.p.Comment(v.full(), v.n(), body)
		if err != nil {
			return "", err
		}
		to = "#issuecomment-" + itoa(k.ID)
	}
	switch then {
	case "close":
		return to, v.p.Close(v.full(), v.n(), "completed")
	case "not_planned":
		return to, v.p.Close(v.full(), v.n(), "not_planned")
	case "reopen":
		return to, v.p.Reopen(v.full(), v.n())
	default:
		return to, nil
	}
}

// actAssign assigns an account. GitHub's API silently ignores accounts that cannot be assigned; the page reports it.
func actAssign(v *visit) (string, error) {
	login := v.field("login")
	if err := v.p.Assign(v.full(), v.n(), login); err != nil {
		return "", err
	}
	i, err := v.p.Issue(v.full(), v.n())
	if err == nil && !slices.Contains(i.Assignees, login) {
		err = unprocessable("%s cannot be assigned here", login)
	}
	return "", err
}

func actLabel(v *visit) (string, error) {
	name := strings.TrimSpace(v.field("label"))
	if name == "" {
		return "", invalid("Label", "name", "missing_field")
	}
	return "", v.p.AddLabels(v.full(), v.n(), name)
}

// actBlock adds or removes a dependency on another issue of the repository, given by its number.
func actBlock(v *visit) (string, error) {
	other, err := v.p.Issue(v.full(), int(v.number("number")))
	if err != nil {
		return "", unprocessable("There is no such issue")
	}
	if v.field("act") == "unblock" {
		return "", v.p.RemoveBlockedBy(v.full(), v.n(), other.ID)
	}
	return "", v.p.AddBlockedBy(v.full(), v.n(), other.ID)
}

// written is the text to which a form applies.
type written struct {
	kind, anchor, body string
	edit               func(body string) error
	given              []*simgithub.Reaction
	react, unreact     func(content string) error
}

// written returns the text to which the form applies.
func (v *visit) written() (written, error) {
	i, err := v.p.Issue(v.full(), v.n())
	if err != nil {
		return written{}, err
	}
	id := v.number("id")
	switch kind := v.field("kind"); kind {
	case textIssue:
		return written{
			kind, "#issue-" + itoa(int64(i.Number)), i.Body, func(b string) error { return v.edit(simgithub.IssueEdit{Body: &b}) }, i.Reactions,
			func(c string) error { return v.p.ReactToIssue(v.full(), v.n(), c) },
			func(c string) error { return v.p.UnreactToIssue(v.full(), v.n(), c) },
		}, nil
	case textTalk:
		for _, k := range i.Comments {
			if k.ID == id {
				return written{
					kind, "#issuecomment-" + itoa(id), k.Body, func(b string) error { return v.p.EditComment(v.full(), id, b) }, k.Reactions,
					func(c string) error { return v.p.React(v.full(), id, c) },
					func(c string) error { return v.p.Unreact(v.full(), id, c) },
				}, nil
			}
		}
	case textLine:
		return v.lineTarget(i, id)
	}
	return written{}, notFound()
}

func (v *visit) lineTarget(i *simgithub.Issue, id int64) (written, error) {
	if i.Pull == nil {
		return written{}, notFound()
	}
	for _, t := range i.Pull.Threads {
		for _, k := range t.Comments {
			if k.ID != id {
				continue
			}
			return written{
				textLine, "#discussion_r" + itoa(id), k.Body,
				func(b string) error { return v.p.EditReviewComment(v.full(), v.n(), id, b) }, k.Reactions,
				func(c string) error { return v.p.ReactToReviewComment(v.full(), v.n(), id, c) },
				func(c string) error { return v.p.UnreactToReviewComment(v.full(), v.n(), id, c) },
			}, nil
		}
	}
	return written{}, notFound()
}

// unchanged returns an error if the text has changed since the form was shown.
func (v *visit) unchanged(t written) error {
	if v.field("hash") != digest(t.body) {
		return &simgithub.Error{Status: http.StatusConflict, Message: "The text has changed since the page was loaded. Check it again."}
	}
	return nil
}

func actEditText(v *visit) (string, error) {
	t, err := v.written()
	if err != nil {
		return "", err
	}
	if err := v.unchanged(t); err != nil {
		return "", err
	}
	return t.anchor, t.edit(v.field("body"))
}

// actTick checks or unchecks one box by editing the text, as GitHub does.
func actTick(v *visit) (string, error) {
	t, err := v.written()
	if err != nil {
		return "", err
	}
	if err := v.unchanged(t); err != nil {
		return "", err
	}
	body, ok := v.web.md.tick(t.body, int(v.number("box")))
	if !ok {
		return "", notFound()
	}
	return t.anchor, t.edit(body)
}

// actReact adds a reaction, or removes it if the person had added it before.
func actReact(v *visit) (string, error) {
	t, err := v.written()
	if err != nil {
		return "", err
	}
	content := v.field("content")
	mine := func(r *simgithub.Reaction) bool { return r.User == v.p.Login() && r.Content == content }
	if slices.ContainsFunc(t.given, mine) {
		return t.anchor, t.unreact(content)
	}
	return t.anchor, t.react(content)
}

func actDelete(v *visit) (string, error) {
	if v.field("kind") == textLine {
		return "", v.p.DeleteReviewComment(v.full(), v.n(), v.number("id"))
	}
	return "", v.p.DeleteComment(v.full(), v.number("id"))
}

// actFold minimizes a comment for a reason, or shows it again.
func actFold(v *visit) (string, error) {
	return "#issuecomment-" + v.field("id"), v.p.MinimizeComment(v.full(), v.number("id"), v.field("reason"))
}
