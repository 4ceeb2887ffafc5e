package provenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/state"
)

// A stretch is a part of the publications, and the commits that the pull request had at its end. GitHub's rebases separate stretches, because they
// replace all commits before them.
type stretch struct {
	from, to int          // the publications; the first one is the rebase, if there is one
	rebase   *Publication // nil for the first stretch
	list     []CommitInfo // oldest first
	complete bool
	position map[string]int // of the commits, by ID
	covered  int            // number of the commits, from the first one, that the rebase made
}

// stretch returns the last stretch of the publications before one, whose commits are given.
func (v *verification) stretch(list []CommitInfo, complete bool, to int) *stretch {
	s := &stretch{to: to, list: list, complete: complete, position: map[string]int{}}
	for i, c := range list {
		s.position[c.ID] = i
	}
	for i := to - 1; i >= 0 && s.rebase == nil; i-- {
		p := &v.p.Publications[i]
		if _, same := s.position[p.before()]; p.isUpdate(state.UpdateRebase) && !(p.Unconfirmed && same) {
			s.from, s.rebase = i, p
		}
	}
	if s.rebase == nil {
		return s
	}
	if i, ok := s.position[s.rebase.Head]; ok {
		s.covered = i + 1
	} else if s.rebase.Head == "" { // all before the next publication
		s.covered = len(list)
		for _, p := range v.p.Publications[s.from:to] {
			for _, c := range p.listed() {
				if i, ok := s.position[c.ID]; ok {
					s.covered = min(s.covered, i)
				}
			}
		}
	}
	return s
}

func (p *Publication) isUpdate(m state.UpdateMethod) bool {
	return p.Update != nil && p.Update.Method == string(m)
}

// before returns the head that an update replaced, "" if the publication is none.
func (p *Publication) before() string {
	if p.Update == nil {
		return ""
	}
	return p.Update.Before
}

// commits checks that the pull request has all published commits, in their order, and shows those of others. Commits that a rebase by GitHub
// replaced are read from where the branch was.
func (v *verification) commits(ctx context.Context, r *Report) error {
	list, complete, err := v.gh.Commits(ctx, v.pull.Number)
	if err != nil {
		return err
	}
	for name, to := LinkCommits, len(v.p.Publications); ; {
		s := v.stretch(list, complete, to)
		if err := v.checkStretch(ctx, s, name, r); err != nil {
			return err
		}
		if s.rebase == nil {
			return nil
		}
		before, base := s.rebase.Update.Before, s.ontoOf()
		name, to = LinkCommits+" at "+short(before), s.from
		if base == "" {
			r.add(name, Unknown, "the commit of the base onto which GitHub rebased them is unknown")
			return nil
		}
		list, complete, err = v.gh.Between(ctx, base, before)
		if errors.Is(err, ErrGone) {
			r.add(name, Gone, "GitHub no longer has the commits that the rebase replaced")
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// checkStretch checks the commits of a stretch, and GitHub's updates in it.
func (v *verification) checkStretch(ctx context.Context, s *stretch, name string, r *Report) error {
	v.publishedCommits(s, name, r)
	known := map[string]bool{}
	var updates []*Publication
	for i := s.from; i < s.to; i++ {
		p := &v.p.Publications[i]
		if p.Update == nil {
			for _, c := range p.listed() {
				known[c.ID] = true
			}
			continue
		}
		updates = append(updates, p)
		if at := s.mergeOf(p, v.pull.By); at >= 0 {
			known[s.list[at].ID] = true
		}
	}
	if err := v.otherCommits(ctx, s, known, r); err != nil {
		return err
	}
	for _, p := range updates {
		if err := v.update(ctx, s, p, r); err != nil {
			return err
		}
	}
	return nil
}

// publishedCommits checks that all published commits are there, in their order.
func (v *verification) publishedCommits(s *stretch, name string, r *Report) {
	last, count := -1, 0
	verdict, detail := Holds, ""
	for _, p := range v.p.Publications[s.from:s.to] {
		for _, c := range p.listed() {
			i, ok := s.position[c.ID]
			if !ok && p.Unconfirmed {
				continue
			}
			if p.Update == nil {
				count++
			}
			switch {
			case verdict != Holds:
			case !ok && !s.complete:
				verdict, detail = Unknown, fmt.Sprintf("GitHub lists only some of the commits, and %s is not one of them", short(c.ID))
			case !ok && p.Update != nil:
				verdict, detail = Altered, fmt.Sprintf("GitHub updated the branch to %s, and the pull request does not have it any more: it was replaced, or the branch was reset", short(c.ID))
			case !ok:
				verdict, detail = Altered, fmt.Sprintf("errand published %s, and the pull request does not have it any more: it was replaced, or the branch was reset", short(c.ID))
			case s.list[i].Tree != c.Tree:
				verdict, detail = Altered, fmt.Sprintf("the tree of %s is not the published one", short(c.ID))
			case i < last:
				verdict, detail = Altered, fmt.Sprintf("%s is not where errand published it", short(c.ID))
			}
			last = max(last, i)
		}
	}
	if verdict == Holds {
		listed := ""
		if slices.ContainsFunc(v.p.Shortened, func(s Shortened) bool { return s.List == "publications" || strings.HasSuffix(s.List, ".commits") }) {
			listed = " that the statement lists"
		}
		detail = fmt.Sprintf("all published commits%s (%d) are there, with their trees", listed, count)
		if s.rebase != nil {
			detail = fmt.Sprintf("GitHub rebased the branch; all commits%s that were published since (%d) are there, with their trees", listed, count)
		}
	}
	if verdict == Holds && !s.complete {
		verdict, detail = Unknown, "GitHub lists only some of the commits of the pull request, so there may be others; "+detail
	}
	r.add(name, verdict, detail)
}

// otherCommits shows the commits that the statement does not have. Those of others are shown once, where the pull request has them now.
func (v *verification) otherCommits(ctx context.Context, s *stretch, known map[string]bool, r *Report) error {
	holes := v.holes(s)
	for i, c := range s.list {
		name := LinkCommit + " " + short(c.ID)
		switch {
		case known[c.ID]:
		case c.Author.ID != v.pull.By.ID:
			if s.to == len(v.p.Publications) {
				r.add(name, Others, byOthers(c))
			}
		case i < s.covered:
		case slices.ContainsFunc(holes, func(h hole) bool { return h.after < i && i < h.before }):
			r.add(name, Unknown, fmt.Sprintf("by %s (%s), from a time whose publications the statement does not know, or not all", c.Author.handle(), signed(c)))
		case len(c.Parents) == 2:
			verdict, detail, err := v.mergeOfBase(ctx, c)
			if err != nil {
				return err
			}
			if verdict != Altered {
				verdict = Unknown
			}
			r.add(name, verdict, fmt.Sprintf("a merge by %s (%s) that is not in the statement; it %s", c.Author.handle(), signed(c), detail))
		default:
			r.add(name, Altered, fmt.Sprintf("by %s, but errand does not state that it published it (%s)", c.Author.handle(), signed(c)))
		}
	}
	return nil
}

// A hole is a part of the pull request's commits in which there may be some of errand's that the statement does not list.
type hole struct{ after, before int }

// holes returns the holes between the publications of a stretch, by the positions of the listed commits.
func (v *verification) holes(s *stretch) (list []hole) {
	last := -1
	for n := s.from; n < s.to; n++ {
		p := &v.p.Publications[n]
		first := len(s.list)
		for _, q := range v.p.Publications[n:s.to] {
			for _, c := range q.listed() {
				if i, ok := s.position[c.ID]; ok {
					first = min(first, i)
				}
			}
		}
		if v.p.lacksBefore(n) {
			list = append(list, hole{last, first})
		}
		for _, c := range p.listed() {
			if i, ok := s.position[c.ID]; ok {
				last = max(last, i)
			}
		}
	}
	if s.to < len(v.p.Publications) && v.p.lacksBefore(s.to) {
		list = append(list, hole{last, len(s.list)})
	}
	return list
}

// byOthers describes a commit that is not errand's.
func byOthers(c CommitInfo) string {
	who := c.Author.handle() + ", a person"
	switch {
	case c.Author.ID == 0:
		who = fmt.Sprintf("%q, whom GitHub does not know", cut(c.Author.Login, 60))
	case c.Author.Bot:
		who = c.Author.handle() + ", another App"
	}
	return "by " + who + " (" + signed(c) + "); errand states nothing about it"
}

func signed(c CommitInfo) string {
	if c.Verified {
		return "GitHub verified its signature"
	}
	return "without a verified signature"
}
