package provenance

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// commits checks that the pull request has all published commits, in their order, and shows those of others.
func (v *verification) commits(ctx context.Context, r *Report) error {
	list, complete, err := v.gh.Commits(ctx, v.pull.Number)
	if err != nil {
		return err
	}
	position, published := map[string]int{}, map[string]bool{}
	for i, c := range list {
		position[c.ID] = i
	}
	last, count := -1, 0
	verdict, detail := Holds, ""
	for _, p := range v.p.Publications {
		for _, c := range p.listed() {
			published[c.ID] = true
			i, ok := position[c.ID]
			if !ok && p.Unconfirmed {
				continue
			}
			count++
			switch {
			case verdict != Holds:
			case !ok && !complete:
				verdict, detail = Unknown, fmt.Sprintf("GitHub lists only some of the commits, and %s is not one of them", short(c.ID))
			case !ok:
				verdict, detail = Altered, fmt.Sprintf("errand published %s, and the pull request does not have it any more: it was replaced, or the branch was reset", short(c.ID))
			case list[i].Tree != c.Tree:
				verdict, detail = Altered, fmt.Sprintf("the tree of %s is not the published one", short(c.ID))
			case i < last:
				verdict, detail = Altered, fmt.Sprintf("%s is not where errand published it", short(c.ID))
			}
			last = max(last, i)
		}
	}
	if verdict == Holds {
		detail = fmt.Sprintf("all published commits (%d) are there, with their trees", count)
		if slices.ContainsFunc(v.p.Shortened, func(s Shortened) bool { return s.List == "publications" || strings.HasSuffix(s.List, ".commits") }) {
			detail = fmt.Sprintf("all published commits that the statement lists (%d) are there, with their trees", count)
		}
	}
	if verdict == Holds && !complete {
		verdict, detail = Unknown, "GitHub lists only some of the commits of the pull request, so there may be others; "+detail
	}
	r.add(LinkCommits, verdict, detail)
	holes := v.holes(position)
	for i, c := range list {
		if published[c.ID] {
			continue
		}
		name := LinkCommit + " " + short(c.ID)
		switch {
		case c.Author.ID != v.pull.By.ID:
			r.add(name, Others, byOthers(c))
		case slices.ContainsFunc(holes, func(h hole) bool { return h.after < i && i < h.before }):
			r.add(name, Unknown, fmt.Sprintf("by %s (%s), from a time whose publications the statement does not know, or not all", c.Author.handle(), signed(c)))
		case len(c.Parents) > 1:
			r.add(name, Unknown, fmt.Sprintf("a merge by %s (%s), such as GitHub makes when errand brings the branch up to date with its base; errand states nothing about it",
				c.Author.handle(), signed(c)))
		default:
			r.add(name, Altered, fmt.Sprintf("by %s, but errand does not state that it published it (%s)", c.Author.handle(), signed(c)))
		}
	}
	return nil
}

// A hole is a part of the pull request's commits in which there may be some of errand's that the statement does not list.
type hole struct{ after, before int }

// holes returns the holes between the publications, by the positions of the listed commits.
func (v *verification) holes(position map[string]int) (list []hole) {
	last := -1
	for n, p := range v.p.Publications {
		first := len(position)
		for _, q := range v.p.Publications[n:] {
			for _, c := range q.listed() {
				if i, ok := position[c.ID]; ok {
					first = min(first, i)
				}
			}
		}
		if v.p.lacksBefore(n) {
			list = append(list, hole{last, first})
		}
		for _, c := range p.listed() {
			if i, ok := position[c.ID]; ok {
				last = max(last, i)
			}
		}
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
