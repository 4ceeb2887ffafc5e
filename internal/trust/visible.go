package trust

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
)

// Comment is a text as GitHub has it now. Author, editor and reactions must have been read together
// with the body, or an edit could slip in between.
type Comment struct {
	// ID is GitHub's id, 0 for the issue's own title and body.
	ID   int64
	Node string
	// Author is the zero Person for a deleted account, as is EditedBy where GitHub names nobody.
	Author    state.Person
	Body      string
	CreatedAt time.Time
	// EditedAt is when the body was last edited, zero if never.
	EditedAt time.Time
	EditedBy state.Person
	// ThumbsUp are all the 👍 on it.
	ThumbsUp []Reaction
}

// Reaction is one person's 👍.
type Reaction struct {
	By state.Person
	At time.Time
}

// Issue is the issue's own text.
type Issue struct {
	// Title is shown or withheld together with the body.
	Title string
	Comment
	// VouchedBy is who triggered the bot (or re-froze the text), if Title and Body are as that
	// person's webhook had them. Such a person needs no 👍.
	VouchedBy state.Person
}

// Permissions asks for a person's permission on the task's repository, by id: logins are renamed
// and used again. An error means that nobody could tell, not that there is none.
type Permissions interface {
	Permission(ctx context.Context, who state.Person) (state.Permission, error)
}

// Policy is what decides besides permissions.
type Policy struct {
	// Self is our own bot's user id. Its comments are never input.
	Self int64
	// Allowed are logins of people who count as if they had write permission.
	Allowed []string
	// Bots are logins of bots (with or without "[bot]") whose comments are shown. All others are
	// denied; a 👍 does not change that, and a bot's 👍 never counts.
	Bots []string
	// Redactor blanks secrets in what is shown; nil leaves them.
	Redactor *Redactor
	// MaxLookups bounds the permissions asked for, because anybody can comment and react on a
	// public issue; 0 means 200.
	MaxLookups int
}

const defaultMaxLookups = 200

// View is what the agent may see and what it may not.
type View struct {
	// ShowsIssue reports whether title and body are visible.
	ShowsIssue  bool
	Title, Body string
	// IssueVouchedBy is who gave the 👍 that shows the issue's text, zero if it needed none. GitHub does
	// not say whether the title, or a pull request's files, were others then.
	IssueVouchedBy state.Person
	// Comments are visible and stripped, oldest first. A comment of which nothing is left is not
	// among them.
	Comments []Visible
	Withheld []Withheld
	// Stripped is what was hidden in the visible texts.
	Stripped []Stripped
}

// Empty reports whether there is nothing for an agent to go by.
func (v View) Empty() bool { return !v.ShowsIssue && len(v.Comments) == 0 }

// Visible is a comment that the agent may see.
type Visible struct {
	ID     int64
	Node   string // as the Comment's
	Author state.Person
	At     time.Time
	Body   string
	// VouchedBy is who gave the 👍 that shows it, zero if it needed none.
	VouchedBy state.Person
}

// Withheld is a text that the agent does not see. Reason and Release are clauses for people.
type Withheld struct {
	ID              int64
	Node            string
	By              state.Person
	Reason, Release string
}

// The reasons for withholding a text.
const (
	ReasonOutsider    = "its author has no write permission"
	ReasonEditor      = "it was edited by somebody without write permission"
	ReasonEditedAfter = "it was edited after the 👍"
	ReasonBot         = "it is by a bot that is not on the list"
	ReasonTooMany     = "too many people have commented or reacted to ask for the permission of all"
)

// Decide chooses what the agent may see of an issue and its comments. A text is visible if its
// author, and whoever edited it last, may write; or if somebody who may write gave it a 👍 that is
// strictly later than its last edit (GitHub counts in seconds); or, for the issue's own text, if
// somebody who may write vouched for it. Permissions are asked for once per person. An error of
// Permissions ends the decision.
func Decide(ctx context.Context, issue Issue, comments []Comment, permissions Permissions, policy Policy) (View, error) {
	j := &judge{permissions: permissions, policy: policy, known: map[int64]bool{}, left: cmp.Or(policy.MaxLookups, defaultMaxLookups)}
	var view View
	if err := j.issue(ctx, issue, &view); err != nil {
		return View{}, err
	}
	comments = slices.Clone(comments)
	slices.SortStableFunc(comments, func(a, b Comment) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, c := range comments {
		if c.Author.ID == policy.Self && policy.Self != 0 {
			continue
		}
		verdict, err := j.comment(ctx, c)
		if err != nil {
			return View{}, err
		}
		if verdict.reason != "" {
			view.Withheld = append(view.Withheld, withhold(c, verdict.reason))
			continue
		}
		body, stripped := policy.clean(Strip, c.Body)
		view.Stripped = Join(view.Stripped, stripped)
		if body != "" {
			view.Comments = append(view.Comments, Visible{ID: c.ID, Node: c.Node, Author: c.Author, At: c.CreatedAt, Body: body, VouchedBy: verdict.vouchedBy})
		}
	}
	return view, nil
}

// clean strips and then redacts a text.
func (p Policy) clean(strip func(string) (string, []Stripped), text string) (string, []Stripped) {
	out, stripped := strip(text)
	if p.Redactor == nil {
		return out, stripped
	}
	for i := range stripped {
		stripped[i].Sample, _ = p.Redactor.Redact(stripped[i].Sample)
	}
	out, n := p.Redactor.Redact(out)
	if n > 0 {
		stripped = append(stripped, Stripped{Kind: KindSecret, Count: n})
	}
	return out, stripped
}

func withhold(c Comment, reason string) Withheld {
	release := "somebody with write permission can show it to the agent by giving it a 👍"
	switch reason {
	case ReasonEditedAfter:
		release = "take the 👍 back and give it again"
	case ReasonBot:
		release = "an operator can add the bot to the list of those whose comments are shown, or somebody can quote it"
	}
	return Withheld{ID: c.ID, Node: c.Node, By: c.Author, Reason: reason, Release: release}
}
