package trust

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
)

// A Comment is a text on GitHub: a comment in a conversation or a review thread, a submitted review, or the body of an
// issue or a pull request. To decide on it, author, editor and reactions must have been read together with the body,
// otherwise an edit could be missed.
type Comment struct {
	ID   int64  // 0 for the body of an issue or a pull request
	Node string // GraphQL ID
	URL  string
	// Author has the ID 0 if the account was deleted.
	Author    state.Person
	Body      string
	CreatedAt time.Time // by GitHub's clock, in whole seconds
	// EditedAt is when the body was last edited, zero if never.
	EditedAt time.Time
	// Editor is the person of the last edit, nil if the comment was never edited or the editor is unknown.
	Editor    *state.Person
	Minimized bool
	// ThumbsUp are all 👍 on it, newest first.
	ThumbsUp []Reaction
}

// A Reaction is the 👍 of a person. GitHub does not report those of bots and deleted accounts.
type Reaction struct {
	Node string // GraphQL ID of the reaction
	By   state.Person
	At   time.Time // by GitHub's clock, in whole seconds
}

// An Issue is the issue's own text.
type Issue struct {
	// Title is shown or withheld together with the body.
	Title string
	Comment
	// VouchedBy is the person who triggered the bot (or froze the text again), if Title and Body are as in that
	// person's webhook, or the operator, who was shown them. The text then needs no 👍.
	VouchedBy state.Person
}

// Permissions returns a person's permission on the task's repository. It uses the ID, because logins can be renamed and
// reused. An error means unknown, not that the person has none.
type Permissions interface {
	Permission(ctx context.Context, who state.Person) (state.Permission, error)
}

// A Policy holds the settings of a decision.
type Policy struct {
	// Self is the bot's own user ID. Its comments are never input.
	Self int64
	// Allowed are logins of people who are treated as having write access.
	Allowed []string
	// Bots are logins of bots (with or without "[bot]") whose comments are shown. Comments of other bots are withheld
	// even with a 👍, and a bot's 👍 never counts.
	Bots []string
	// Redactor redacts secrets in visible texts; nil keeps them.
	Redactor *Redactor
	// MaxLookups limits permission lookups, because anyone can comment and react on a public issue; 0 means 200.
	MaxLookups int
}

const defaultMaxLookups = 200

// A View holds the texts that the agent can see, and the withheld ones.
type View struct {
	// ShowsIssue reports whether title and body are visible.
	ShowsIssue  bool
	Title, Body string
	// IssueVouchedBy is the person whose 👍 makes the issue's text visible, zero if none was needed. GitHub does not
	// report whether the title, or a pull request's files, changed after the 👍.
	IssueVouchedBy state.Person
	// Comments are visible and stripped, oldest first. Comments that are empty after stripping are omitted.
	Comments []Visible
	Withheld []Withheld
	// Stripped describes the hidden content removed from visible texts.
	Stripped []Stripped
}

// Empty reports whether no text is visible.
func (v View) Empty() bool { return !v.ShowsIssue && len(v.Comments) == 0 }

// Visible is a comment that the agent can see.
type Visible struct {
	ID     int64
	Node   string // Node of the Comment
	Author state.Person
	At     time.Time
	Body   string
	// VouchedBy is the person whose 👍 makes it visible, zero if none was needed.
	VouchedBy state.Person
}

// Withheld is a text that the agent does not see. Reason and Release are clauses for people.
type Withheld struct {
	ID              int64
	Node            string
	By              state.Person
	Reason, Release string
}

// Reasons for withholding a text.
const (
	ReasonOutsider    = "its author has no write access"
	ReasonEditor      = "it was edited by somebody without write access"
	ReasonEditedAfter = "it was edited after the 👍"
	ReasonBot         = "it is by a bot that is not on the list"
	ReasonTooMany     = "too many people have commented or reacted to check everyone's permission"
)

// Decide selects the texts of an issue and its comments that the agent can see. A text is visible if its author and its
// last editor have write access; if somebody with write access gave it a 👍 strictly later than its last edit (GitHub's
// times are in seconds); or, for the issue's own text, if somebody with write access vouched for it. Each person's
// permission is looked up once. Decide returns an error if a lookup fails.
func Decide(ctx context.Context, issue Issue, comments []Comment, permissions Permissions, policy Policy) (View, error) {
	j := &assessor{permissions: permissions, policy: policy, known: map[int64]bool{}, lookupsLeft: cmp.Or(policy.MaxLookups, defaultMaxLookups)}
	var view View
	if err := j.assessIssue(ctx, issue, &view); err != nil {
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
		verdict, err := j.assessComment(ctx, c)
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
			view.Comments = append(view.Comments, Visible{
				ID:        c.ID,
				Node:      c.Node,
				Author:    c.Author,
				At:        c.CreatedAt,
				Body:      body,
				VouchedBy: verdict.vouchedBy,
			})
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
	release := "somebody with write access can show it to the agent by giving it a 👍"
	switch reason {
	case ReasonEditedAfter:
		release = "remove the 👍 and give it again"
	case ReasonBot:
		release = "an operator can add the bot to the list of bots whose comments are shown, or somebody can quote it"
	}
	return Withheld{ID: c.ID, Node: c.Node, By: c.Author, Reason: reason, Release: release}
}
