package provenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Limits on files whose lines are compared, because the base changed them as well.
const (
	maxMergedFiles = 50
	maxMergedBytes = 1 << 20
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
	verdict, detail, err := v.compareMerge(ctx, merged, merged.Parents[0])
	if err != nil {
		return err
	}
	if verdict != Holds && len(merged.Parents) == 1 {
		before, err := v.beforeRebase(ctx, merged)
		if err != nil {
			return err
		}
		if before != "" && before != merged.Parents[0] {
			rebased, words, err := v.compareMerge(ctx, merged, before)
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

// compareMerge compares what a merge changed since the commit before with what the pull request changed since it left the base.
func (v *verification) compareMerge(ctx context.Context, merged CommitInfo, before string) (Verdict, string, error) {
	fork, err := v.gh.MergeBase(ctx, before, v.pull.Head)
	if err != nil {
		return "", "", err
	}
	var trees [4]map[string]File
	for i, id := range []string{fork, v.pull.Head, before, merged.ID} {
		c, err := v.gh.Commit(ctx, id)
		if err != nil {
			return "", "", err
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

type comparison struct {
	gh                         GitHub
	fork, head, before, merged map[string]File
}

// verdict compares path by path. Where only one side changed a path, the merge must have its version.
func (c comparison) verdict(ctx context.Context) (Verdict, string, error) {
	paths := map[string]bool{}
	for _, tree := range []map[string]File{c.fork, c.head, c.before, c.merged} {
		for p := range tree {
			paths[p] = true
		}
	}
	var altered, both []string
	changed := 0
	for p := range paths {
		fork, head, before, merged := c.fork[p], c.head[p], c.before[p], c.merged[p]
		if head != fork {
			changed++
		}
		switch {
		case before == fork || before == head: // the base left it alone, or changed it in the same way
			if merged != head {
				altered = append(altered, p)
			}
		case head == fork && merged == before:
		default:
			both = append(both, p)
		}
	}
	slices.Sort(altered)
	slices.Sort(both)
	if len(altered) > 0 {
		return Altered, fmt.Sprintf("changes %d paths in another way than the pull request: %s", len(altered), cut(strings.Join(altered, ", "), 300)), nil
	}
	if len(both) > maxMergedFiles {
		return Unknown, fmt.Sprintf("cannot be compared: the base had changed %d of the same paths", len(both)), nil
	}
	for _, p := range both {
		same, err := c.sameLines(ctx, p)
		if err != nil {
			return "", "", err
		}
		if !same {
			return Unknown, "cannot be compared: the base had changed " + cut(p, 200) + ", too", nil
		}
	}
	detail := fmt.Sprintf("%d paths changed, all as in the pull request", changed)
	if len(both) > 0 {
		detail += fmt.Sprintf("; in %d of them, which the base had changed as well, the same lines", len(both))
	}
	return Holds, detail, nil
}

// sameLines reports whether the merge has exactly the lines that both sides changed, each at its place, and no others. Changes of the same
// lines are not compared.
func (c comparison) sameLines(ctx context.Context, path string) (bool, error) {
	var texts [4]string
	for i, tree := range []map[string]File{c.fork, c.head, c.before, c.merged} {
		f, ok := tree[path]
		if !ok || f.Mode != c.merged[path].Mode || !strings.HasPrefix(f.Mode, "100") {
			return false, nil
		}
		data, err := c.gh.Blob(ctx, f.Blob)
		if errors.Is(err, ErrTooLarge) || err == nil && len(data) > maxMergedBytes {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		texts[i] = string(data)
	}
	fork, head, before, merged := texts[0], texts[1], texts[2], texts[3]
	edits, ok := udiff.Merge(udiff.Lines(fork, head), udiff.Lines(fork, before))
	if !ok {
		return false, nil
	}
	want, err := udiff.Apply(fork, edits)
	return err == nil && want == merged, nil
}

// ErrTooLarge is the error of [GitHub.Blob] for content that is too large to be compared.
var ErrTooLarge = errors.New("the file is too large")
