package provenance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/errand-bot/errand/internal/words"
)

// Limits on files whose lines are compared, because the base changed them as well.
const (
	maxMergedFiles = 50
	maxMergedBytes = 1 << 20
)

// A comparison has the files of four trees: where the pull request left its base, its head, the base, and the merge of both.
type comparison struct {
	gh                         GitHub
	fork, head, before, merged map[string]File
}

// verdict compares path by path. Where only one side changed a path, the merge must have its version; where both did, the lines of both.
func (c comparison) verdict(ctx context.Context) (Verdict, string, error) {
	paths := map[string]bool{}
	for _, tree := range []map[string]File{c.fork, c.head, c.before, c.merged} {
		for p := range tree {
			paths[p] = true
		}
	}
	altered, both := map[string]bool{}, map[string]bool{}
	changed := 0
	for p := range paths {
		fork, head, before, merged := c.fork[p], c.head[p], c.before[p], c.merged[p]
		if head != fork {
			changed++
		}
		switch {
		case before == fork || before == head: // the base left it alone, or changed it in the same way
			altered[p] = merged != head
		case head == fork: // only the base changed it
			altered[p] = merged != before
		default:
			both[p] = true
		}
	}
	maps.DeleteFunc(altered, func(_ string, is bool) bool { return !is })
	unclear, err := c.explainRenames(ctx, altered, both)
	if err != nil {
		return "", "", err
	}
	list := slices.Sorted(maps.Keys(both))
	switch {
	case len(altered) > 0:
		names := slices.Sorted(maps.Keys(altered))
		return Altered, fmt.Sprintf("changes %s in another way than the pull request and its base: %s", words.Many(len(names), "path"), cut(strings.Join(names, ", "), 300)), nil
	case unclear != "":
		return Unknown, fmt.Sprintf("cannot be compared: one side renamed %s, and the other changed it", cut(unclear, 200)), nil
	case len(list) > maxMergedFiles:
		return Unknown, fmt.Sprintf("cannot be compared: the base had changed %d of the same paths", len(list)), nil
	}
	for _, p := range list {
		same, err := c.sameLines(ctx, p, p)
		if err != nil {
			return "", "", err
		}
		if !same {
			return Unknown, "cannot be compared: the base had changed " + cut(p, 200) + ", too", nil
		}
	}
	detail := fmt.Sprintf("%s changed, all as in the pull request", words.Many(changed, "path"))
	if len(list) > 0 {
		detail += fmt.Sprintf("; in %d of them, which the base had changed as well, the same lines", len(list))
	}
	return Holds, detail, nil
}

// explainRenames removes the paths of files that one side renamed, while the other changed them: git puts these changes into the renamed
// file. It returns such a path, "" if there is none, whose lines cannot be compared.
func (c comparison) explainRenames(ctx context.Context, altered, both map[string]bool) (unclear string, err error) {
	if len(altered) > maxMergedFiles || len(both) > maxMergedFiles {
		return "", nil
	}
	for _, renamed := range slices.Sorted(maps.Keys(altered)) {
		if _, ok := c.fork[renamed]; ok {
			continue
		}
		for _, old := range slices.Sorted(maps.Keys(both)) {
			if _, ok := c.merged[old]; ok || !c.isRename(old, renamed) {
				continue
			}
			same, err := c.sameLines(ctx, old, renamed)
			if err != nil {
				return "", err
			}
			if !same {
				alike, err := c.isAlike(ctx, old, renamed)
				if err != nil {
					return "", err
				}
				if !alike {
					continue
				}
				unclear = old
			}
			delete(altered, renamed)
			delete(both, old)
			break
		}
	}
	return unclear, nil
}

// isRename reports whether one side has a new path instead of an old one, which the other side has still.
func (c comparison) isRename(old, renamed string) bool {
	has := func(tree map[string]File, path string) bool { _, ok := tree[path]; return ok }
	byHead := has(c.head, renamed) && !has(c.head, old) && has(c.before, old) && !has(c.before, renamed)
	byBase := has(c.before, renamed) && !has(c.before, old) && has(c.head, old) && !has(c.head, renamed)
	return has(c.fork, old) && (byHead || byBase)
}

// isAlike reports whether git takes one path for the other one renamed: at least half of the lines are the same.
func (c comparison) isAlike(ctx context.Context, old, renamed string) (bool, error) {
	from := c.fork[old]
	to, ok := c.head[renamed]
	if !ok {
		to = c.before[renamed]
	}
	if from.Blob == to.Blob {
		return true, nil
	}
	var texts [2]string
	for i, f := range []File{from, to} {
		var err error
		if texts[i], ok, err = c.text(ctx, f); err != nil || !ok {
			return true, err // without the lines nobody can tell
		}
	}
	count, common := map[string]int{}, 0
	for line := range strings.Lines(texts[0]) {
		count[line]++
	}
	for line := range strings.Lines(texts[1]) {
		if count[line] > 0 {
			count[line]--
			common += len(line)
		}
	}
	return 2*common >= max(len(texts[0]), len(texts[1])), nil
}

// sameLines reports whether the merge has exactly the lines that both sides changed, each at its place, and no others. Changes of the same
// lines are not compared. The side that renamed the file has it at the renamed path; otherwise both paths are the same.
func (c comparison) sameLines(ctx context.Context, old, renamed string) (bool, error) {
	var texts [4]string
	for i, tree := range []map[string]File{c.fork, c.head, c.before, c.merged} {
		f, ok := tree[renamed]
		if !ok {
			f, ok = tree[old]
		}
		if !ok || f.Mode != c.merged[renamed].Mode {
			return false, nil
		}
		var err error
		if texts[i], ok, err = c.text(ctx, f); err != nil || !ok {
			return false, err
		}
	}
	fork, head, before, merged := texts[0], texts[1], texts[2], texts[3]
	edits, ok := udiff.Merge(udiff.Lines(fork, head), udiff.Lines(fork, before))
	if !ok {
		return false, nil
	}
	want, err := udiff.Apply(fork, edits)
	return err == nil && want == merged, nil
}

// text returns the content of a file. It returns false for one that is too large, or no regular file.
func (c comparison) text(ctx context.Context, f File) (string, bool, error) {
	if !strings.HasPrefix(f.Mode, "100") {
		return "", false, nil
	}
	data, err := c.gh.Blob(ctx, f.Blob)
	if errors.Is(err, ErrTooLarge) || err == nil && len(data) > maxMergedBytes {
		return "", false, nil
	}
	return string(data), err == nil, err
}
