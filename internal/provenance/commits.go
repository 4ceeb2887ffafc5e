package provenance

import (
	"context"
	"fmt"
)

// commits checks that the pull request has all published commits, in their order, and shows those of others.
func (v *verification) commits(ctx context.Context, r *Report) error {
	list, complete, err := v.gh.Commits(ctx, v.pull.Number)
	if err != nil {
		return err
	}
	position := map[string]int{}
	for i, c := range list {
		position[c.ID] = i
	}
	published := map[string]bool{}
	last, count := -1, 0
	verdict, detail := Holds, ""
	for _, p := range v.p.Publications {
		for _, c := range p.Commits {
			published[c.ID] = true
			count++
			i, ok := position[c.ID]
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
	var strange []Link
	for _, c := range list {
		if published[c.ID] {
			continue
		}
		switch {
		case c.Author.ID != v.pull.By.ID:
			strange = append(strange, Link{LinkCommit + " " + short(c.ID), Others, byOthers(c)})
		case v.p.lacksCommits():
			strange = append(strange, Link{LinkCommit + " " + short(c.ID), Unknown, "by errand's account; the statement lists only the newest commits"})
		default:
			strange = append(strange, Link{LinkCommit + " " + short(c.ID), Altered,
				fmt.Sprintf("by %s, but errand does not state that it published it (%s)", c.Author.handle(), signed(c))})
		}
	}
	if verdict == Holds {
		detail = fmt.Sprintf("all published commits (%d) are there, with their trees", count)
	}
	r.add(LinkCommits, verdict, detail)
	for _, l := range strange {
		r.add(l.Name, l.Verdict, l.Detail)
	}
	return nil
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
