package trust

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/state"
)

// assessor decides text by text and caches trusted people.
type assessor struct {
	permissions Permissions
	policy      Policy
	known       map[int64]bool
	lookupsLeft int
	exhausted   bool // MaxLookups prevented a lookup for the current text
}

// assessIssue decides about title and body. Bots cannot vouch, listed or not: they may label or assign any issue. The operator of
// errand can, without an account.
func (j *assessor) assessIssue(ctx context.Context, assessIssue Issue, view *View) error {
	vouched := assessIssue.VouchedBy.IsOperator()
	if !vouched && !assessIssue.VouchedBy.Bot {
		var err error
		if vouched, err = j.isTrusted(ctx, assessIssue.VouchedBy); err != nil {
			return err
		}
	}
	if !vouched {
		verdict, err := j.assessComment(ctx, assessIssue.Comment)
		if err != nil {
			return err
		}
		if verdict.reason != "" {
			view.Withheld = append(view.Withheld, withhold(assessIssue.Comment, verdict.reason))
			return nil
		}
		view.IssueVouchedBy = verdict.vouchedBy
	}
	view.ShowsIssue = true
	title, fromTitle := j.policy.clean(StripLine, assessIssue.Title)
	body, fromBody := j.policy.clean(Strip, assessIssue.Body)
	view.Title, view.Body, view.Stripped = title, body, Join(fromTitle, fromBody)
	return nil
}

// verdict is the decision about one text; it is visible if reason is empty.
type verdict struct {
	reason    string
	vouchedBy state.Person
}

func (j *assessor) assessComment(ctx context.Context, c Comment) (verdict, error) {
	j.exhausted = false
	if c.Author.Bot && !j.listedBot(c.Author) {
		return verdict{reason: ReasonBot}, nil
	}
	reason := ReasonOutsider
	author, err := j.isTrusted(ctx, c.Author)
	if err != nil {
		return verdict{}, err
	}
	if author {
		if c.EditedAt.IsZero() {
			return verdict{}, nil
		}
		var by state.Person
		if c.Editor != nil {
			by = *c.Editor
		}
		editor, err := j.isTrusted(ctx, by)
		if err != nil || editor {
			return verdict{}, err
		}
		reason = ReasonEditor
	}
	by, early, err := j.findApproval(ctx, c)
	switch {
	case err != nil:
		return verdict{}, err
	case by.ID != 0:
		return verdict{vouchedBy: by}, nil
	case early:
		reason = ReasonEditedAfter
	case j.exhausted:
		reason = ReasonTooMany
	}
	return verdict{reason: reason}, nil
}

// findApproval looks for a valid 👍. early reports that one was given before the last edit. It checks known people first, so
// that many reactions do not use up the lookups.
func (j *assessor) findApproval(ctx context.Context, c Comment) (by state.Person, early bool, err error) {
	last := c.CreatedAt
	if c.EditedAt.After(last) {
		last = c.EditedAt
	}
	reactions := slices.Clone(c.ThumbsUp)
	slices.SortStableFunc(reactions, func(a, b Reaction) int {
		return cmp.Or(cmp.Compare(j.unknown(a.By), j.unknown(b.By)), a.At.Compare(b.At))
	})
	for _, r := range reactions {
		if r.By.Bot {
			continue
		}
		trusted, err := j.isTrusted(ctx, r.By)
		if err != nil {
			return state.Person{}, false, err
		}
		if trusted && r.At.After(last) {
			return r.By, false, nil
		}
		early = early || trusted
	}
	return state.Person{}, early, nil
}

func (j *assessor) unknown(who state.Person) int {
	if _, known := j.known[who.ID]; known || containsLogin(j.policy.Allowed, who.Login) {
		return 0
	}
	return 1
}

// isTrusted reports whether a person may direct the bot. Deleted accounts and unlisted bots may not.
func (j *assessor) isTrusted(ctx context.Context, who state.Person) (bool, error) {
	switch {
	case who.ID == 0:
		return false, nil
	case who.Bot:
		return j.listedBot(who), nil
	case containsLogin(j.policy.Allowed, who.Login):
		return true, nil
	}
	if trusted, known := j.known[who.ID]; known {
		return trusted, nil
	}
	if j.lookupsLeft == 0 {
		j.exhausted = true
		return false, nil
	}
	j.lookupsLeft--
	permission, err := j.permissions.Permission(ctx, who)
	if err != nil {
		return false, fmt.Errorf("read the permission of %s: %w", who.Login, err)
	}
	j.known[who.ID] = permission.CanWrite()
	return permission.CanWrite(), nil
}

func (j *assessor) listedBot(who state.Person) bool { return ListedBot(j.policy.Bots, who) }

// ListedBot reports whether logins contains the bot's login, with or without "[bot]", ignoring case.
func ListedBot(logins []string, who state.Person) bool {
	return who.Bot && who.ID != 0 && (containsLogin(logins, who.Login) || containsLogin(logins, strings.TrimSuffix(who.Login, "[bot]")))
}

func containsLogin(logins []string, login string) bool {
	return login != "" && slices.ContainsFunc(logins, func(l string) bool { return strings.EqualFold(l, login) })
}
