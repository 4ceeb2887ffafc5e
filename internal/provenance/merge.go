package provenance

import (
	"context"
	"fmt"
	"slices"
)

// merge checks that the merge brought in exactly the head of the pull request. It needs no knowledge of the method: a merge commit, a squash
// and a rebase all have to change the base as the pull request changed it.
func (v *verification) merge(ctx context.Context, r *Report) error {
	if !v.pull.Merged {
		return nil
	}
	if v.pull.MergeCommit == "" {
		r.add(LinkMerge, Unknown, "GitHub does not name the commit of the merge")
		return nil
	}
	if v.pull.MergeCommit == v.pull.Head {
		r.add(LinkMerge, Holds, "the base has the head "+short(v.pull.Head)+" itself")
		return nil
	}
	merged, err := v.gh.Commit(ctx, v.pull.MergeCommit)
	if err != nil {
		return err
	}
	about := fmt.Sprintf("the merge commit %s", short(merged.ID))
	if len(merged.Parents) == 0 {
		r.add(LinkMerge, Altered, about+" has no parent")
		return nil
	}
	if len(merged.Parents) > 1 && !slices.Contains(merged.Parents[1:], v.pull.Head) {
		r.add(LinkMerge, Altered, fmt.Sprintf("%s does not have the head %s as a parent", about, short(v.pull.Head)))
		return nil
	}
	verdict, detail, err := v.compareMerge(ctx, v.pull.Head, merged.Parents[0], merged)
	if err != nil {
		return err
	}
	if verdict != Holds && len(merged.Parents) == 1 {
		before, err := v.beforeRebase(ctx, merged)
		if err != nil {
			return err
		}
		if before != "" && before != merged.Parents[0] {
			rebased, words, err := v.compareMerge(ctx, v.pull.Head, before, merged)
			if err != nil {
				return err
			}
			if rebased == Holds || verdict == Altered && rebased == Unknown {
				verdict, detail = rebased, words
			}
		}
	}
	how := "squashed or rebased into"
	if len(merged.Parents) > 1 {
		how = "merged in"
	}
	if verdict == Holds {
		detail = fmt.Sprintf("the head %s was %s %s: %s", short(v.pull.Head), how, short(merged.ID), detail)
	} else {
		detail = about + " " + detail
	}
	r.add(LinkMerge, verdict, detail)
	return nil
}

// beforeRebase returns the commit on which the commits of the pull request were put, if they were rebased; "" if there is none.
func (v *verification) beforeRebase(ctx context.Context, merged CommitInfo) (string, error) {
	list, complete, err := v.gh.Commits(ctx, v.pull.Number)
	if err != nil || !complete {
		return "", err
	}
	steps := 0
	for _, c := range list {
		if len(c.Parents) < 2 { // a rebase leaves out merges
			steps++
		}
	}
	at := merged
	for range steps - 1 {
		if len(at.Parents) != 1 {
			return "", nil
		}
		if at, err = v.gh.Commit(ctx, at.Parents[0]); err != nil {
			return "", err
		}
	}
	if len(at.Parents) != 1 {
		return "", nil
	}
	return at.Parents[0], nil
}

// compareMerge compares what a merge, or a rebase, changed since a commit of the base with what the pull request had changed at its head since it left
// the base.
func (v *verification) compareMerge(ctx context.Context, head, before string, merged CommitInfo) (Verdict, string, error) {
	fork, err := v.gh.MergeBase(ctx, before, head)
	if err != nil {
		return "", "", err
	}
	var trees [4]map[string]File
	for i, id := range []string{fork, head, before, merged.ID} {
		c := merged
		if id != merged.ID {
			if c, err = v.gh.Commit(ctx, id); err != nil {
				return "", "", err
			}
		}
		files, complete, err := v.gh.Files(ctx, c.Tree)
		if err != nil {
			return "", "", err
		}
		if !complete {
			return Unknown, "cannot be compared: the repository has more files than GitHub lists", nil
		}
		trees[i] = files
	}
	c := comparison{gh: v.gh, fork: trees[0], head: trees[1], before: trees[2], merged: trees[3]}
	return c.verdict(ctx)
}
