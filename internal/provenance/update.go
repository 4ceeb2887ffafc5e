package provenance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/state"
)

// update checks an update of the branch by GitHub: the branch must have been changed by nothing but commits of the base. An update whose result is
// missing is named by the commits.
func (v *verification) update(ctx context.Context, s *stretch, p *Publication, r *Report) error {
	at := s.mergeOf(p, v.pull.By)
	if p == s.rebase {
		at = s.covered - 1
	}
	if at < 0 {
		return nil
	}
	c := s.list[at]
	check := v.mergeUpdate
	if p == s.rebase {
		check = v.rebaseUpdate
	}
	verdict, detail, err := check(ctx, s, p, c)
	if errors.Is(err, ErrGone) {
		verdict, detail, err = Gone, "cannot be compared: GitHub no longer has its commits", nil
	}
	if err != nil {
		return err
	}
	if p.Head == "" && verdict == Altered { // perhaps somebody else has pushed
		verdict, detail = Unknown, detail+"; errand does not know the result of the update"
	}
	by := ""
	if p.Update.By != nil {
		by = ", as " + p.Update.By.handle() + " requested"
	}
	how := fmt.Sprintf("GitHub merged the base into %s at the request of errand%s: the result ", short(p.Update.Before), by)
	if p == s.rebase {
		how = fmt.Sprintf("GitHub rebased %s at the request of errand%s: the result ", short(p.Update.Before), by)
	}
	r.add(LinkUpdate+" "+short(c.ID), verdict, how+detail)
	return nil
}

// mergeOf returns the position of the merge that an update made, -1 if there is none. Without a stated result it is a merge by the App.
func (s *stretch) mergeOf(p *Publication, app Person) int {
	if !p.isUpdate(state.UpdateMerge) {
		return -1
	}
	return slices.IndexFunc(s.list, func(c CommitInfo) bool {
		return c.ID == p.Head || p.Head == "" && len(c.Parents) == 2 && c.Parents[0] == p.Update.Before && c.Author.ID == app.ID
	})
}

// mergeUpdate checks an update by a merge.
func (v *verification) mergeUpdate(ctx context.Context, _ *stretch, p *Publication, c CommitInfo) (Verdict, string, error) {
	if len(c.Parents) != 2 || c.Parents[0] != p.Update.Before || p.Base != "" && c.Parents[1] != p.Base {
		return Altered, "is not a merge of the stated commits", nil
	}
	return v.mergeOfBase(ctx, c)
}

// mergeOfBase compares a merge with what git makes of its parents, the second of which must be a commit of the base.
func (v *verification) mergeOfBase(ctx context.Context, c CommitInfo) (Verdict, string, error) {
	if in, err := v.inBase(ctx, c.Parents[1]); err != nil || !in {
		return Unknown, fmt.Sprintf("cannot be compared: %s is not in the base %s", short(c.Parents[1]), cut(v.pull.Base, 100)), err
	}
	verdict, detail, err := v.compareMerge(ctx, c.Parents[0], c.Parents[1], c)
	if verdict == Holds {
		detail = "has the newest commits of the base, and changes nothing else: " + detail
	}
	return verdict, detail, err
}

// ontoOf returns the commit of the base onto which the stretch was rebased, "" if it is not known.
func (s *stretch) ontoOf() string {
	if s.rebase.Base == "" && len(s.list) > 0 && len(s.list[0].Parents) == 1 {
		return s.list[0].Parents[0]
	}
	return s.rebase.Base
}

// rebaseUpdate checks an update by a rebase: all commits together must change the base as those did that they replaced.
func (v *verification) rebaseUpdate(ctx context.Context, s *stretch, p *Publication, c CommitInfo) (Verdict, string, error) {
	onto := s.ontoOf()
	if onto == "" {
		return Unknown, "cannot be compared: the commit of the base onto which it was rebased is unknown", nil
	}
	if in, err := v.inBase(ctx, onto); err != nil || !in {
		return Unknown, fmt.Sprintf("cannot be compared: %s is not in the base %s", short(onto), cut(v.pull.Base, 100)), err
	}
	verdict, detail, err := v.compareMerge(ctx, p.Update.Before, onto, c)
	if verdict == Holds {
		detail = "makes the same changes to the base as the commits that it replaced: " + detail
	}
	return verdict, detail, err
}

// inBase reports whether the base branch has a commit. A branch that does not exist has none.
func (v *verification) inBase(ctx context.Context, id string) (bool, error) {
	at, err := v.gh.MergeBase(ctx, id, v.pull.Base)
	if errors.Is(err, ErrGone) {
		return false, nil
	}
	return err == nil && at == id, err
}
