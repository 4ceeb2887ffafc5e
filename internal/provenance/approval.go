package provenance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/state"
)

// approval checks whether GitHub still shows an approval. text is the comment with the revision, nil if it is gone. That the account had write
// access at that time is errand's statement: GitHub does not show it afterwards.
func (v *verification) approval(ctx context.Context, r *Report, name string, text *Text, a Approval, p Revision) error {
	switch state.ApprovalVia(a.Via) {
	case state.ViaSettings:
		r.add(name, Stated, "errand states that the repository's settings required no approval")
	case state.ViaReaction:
		verdict, detail := reactionVerdict(text, a)
		r.add(name, verdict, detail)
	case state.ViaBox:
		verdict, detail := boxVerdict(text, a, p)
		r.add(name, verdict, detail)
	case state.ViaCommand:
		said, err := v.gh.Comment(ctx, a.Comment)
		if err != nil {
			return err
		}
		verdict, detail := commandVerdict(said, a)
		r.add(name, verdict, detail)
	default:
		r.add(name, Unknown, fmt.Sprintf("approved in a way that this version of errand does not know: %q", cut(a.Via, 60)))
	}
	return nil
}

// approved is the beginning of the details of an approval that holds.
func approved(a Approval, how string) string {
	return fmt.Sprintf("%s approved it %s on %s; errand saw %s access on %s", a.By.handle(), how, day(a.GivenAt), cut(a.Permission, 20), day(a.CheckedAt))
}

func (a Account) handle() string { return Person{ID: a.ID, Login: a.Login}.handle() }

func reactionVerdict(text *Text, a Approval) (Verdict, string) {
	if text == nil {
		return Gone, "the comment with the 👍 of " + a.By.handle() + " does not exist any more"
	}
	i := slices.IndexFunc(text.ThumbsUp, func(t Action) bool { return t.By.ID == a.By.ID })
	switch {
	case i >= 0 && sameSecond(text.ThumbsUp[i].At, a.GivenAt):
		return Holds, approved(a, "with a 👍")
	case i >= 0:
		return Gone, fmt.Sprintf("the 👍 that %s gave on %s was removed; the present one is from %s", a.By.handle(), day(a.GivenAt), day(text.ThumbsUp[i].At))
	}
	detail := fmt.Sprintf("the 👍 of %s is not there any more", a.By.handle())
	var others []string
	for _, t := range text.ThumbsUp[:min(len(text.ThumbsUp), 5)] {
		others = append(others, t.By.handle())
	}
	if len(others) > 0 {
		detail += "; there is one by " + strings.Join(others, ", ") + ", which is not the approval"
	}
	return Gone, detail
}

func boxVerdict(text *Text, a Approval, p Revision) (Verdict, string) {
	switch {
	case text == nil:
		return Gone, "the comment with the box that " + a.By.handle() + " ticked does not exist any more"
	case !slices.Contains(comment.Ticked(text.Body, p.Hash), a.Choice):
		return Gone, "the box that " + a.By.handle() + " ticked is not ticked any more"
	case !slices.ContainsFunc(text.Edits, func(e Action) bool { return e.By.ID == a.By.ID && !e.At.After(a.CheckedAt.Add(time.Minute)) }):
		return Gone, "GitHub shows no edit by " + a.By.handle() + " that ticked the box" + edited(text)
	}
	return Holds, approved(a, "by ticking the box")
}

func commandVerdict(said *Text, a Approval) (Verdict, string) {
	switch {
	case said == nil:
		return Gone, "the comment with the command of " + a.By.handle() + " does not exist any more, or is not visible"
	case said.By.ID != a.By.ID:
		return Altered, fmt.Sprintf("the comment with the command is by %s, and not by %s", said.By.handle(), a.By.handle())
	case a.CommentHash == "":
		return Unknown, "the statement does not have the text of the command"
	case state.CommentHash(said.Body) != a.CommentHash:
		return Altered, "the comment with the command of " + a.By.handle() + " has another text now" + edited(said)
	}
	return Holds, approved(a, "with a comment")
}

func sameSecond(a, b time.Time) bool { return a.Truncate(time.Second).Equal(b.Truncate(time.Second)) }
