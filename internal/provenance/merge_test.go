package provenance

import (
	"context"
	"strings"
	"testing"
	"time"
)

// blobs is a GitHub of which only the contents of files are read: the content of a blob is its ID.
type blobs struct{ GitHub }

func (blobs) Blob(_ context.Context, id string) ([]byte, error) {
	if id == "huge" {
		return nil, ErrTooLarge
	}
	return []byte(strings.ReplaceAll(id, " ", "\n") + "\n"), nil
}

func tree(files ...string) map[string]File {
	out := map[string]File{}
	for _, f := range files {
		path, blob, _ := strings.Cut(f, "=")
		out[path] = File{"100644", blob}
	}
	return out
}

// TestMergeIsCompared: a merge must change the base as the pull request changed it, and nothing else.
func TestMergeIsCompared(t *testing.T) {
	t.Parallel()
	const lines, theirs, mine, merged = "a b c d e f g h i", "A b c d e f g h i", "a b c d e f g h I", "A b c d e f g h I"
	fork, head := tree("x="+lines, "y=1", "z=1"), tree("x="+mine, "y=1", "n=1")
	for name, c := range map[string]struct {
		before, merged map[string]File
		want           Verdict
	}{
		"the base stood still":            {fork, head, Holds},
		"the base changed another file":   {tree("x="+lines, "y=2", "z=1"), tree("x="+mine, "y=2", "n=1"), Holds},
		"the base changed other lines":    {tree("x="+theirs, "y=1", "z=1"), tree("x="+merged, "y=1", "n=1"), Holds},
		"the base changed the same way":   {tree("x="+mine, "y=1", "z=1"), tree("x="+mine, "y=1", "n=1"), Holds},
		"the base's change is lost":       {tree("x="+theirs, "y=1", "z=1"), tree("x="+mine, "y=1", "n=1"), Unknown},
		"a file more":                     {fork, tree("x="+mine, "y=1", "n=1", "door=1"), Altered},
		"a file less":                     {fork, tree("x="+mine, "n=1"), Altered},
		"a change is missing":             {fork, tree("x="+lines, "y=1", "n=1"), Altered},
		"another change":                  {fork, tree("x=a b", "y=1", "n=1"), Altered},
		"a deletion is missing":           {fork, tree("x="+mine, "y=1", "z=1", "n=1"), Altered},
		"the base's file changed":         {tree("x="+lines, "y=2", "z=1"), tree("x="+mine, "y=3", "n=1"), Altered},
		"too large to compare":            {tree("x=huge", "y=1", "z=1"), tree("x="+merged, "y=1", "n=1"), Unknown},
		"both, and other lines":           {tree("x="+theirs, "y=1", "z=1"), tree("x=A b c d door f g h I", "y=1", "n=1"), Unknown},
		"the right lines elsewhere":       {tree("x=i b c d e f g h i", "y=1", "z=1"), tree("x=I b c d e f g h i", "y=1", "n=1"), Unknown},
		"the same lines changed":          {tree("x=a b c d e f g h J", "y=1", "z=1"), tree("x=a b c d e f g h I", "y=1", "n=1"), Unknown},
		"the base deleted a changed file": {tree("y=1", "z=1"), tree("y=1", "n=1"), Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, detail, err := comparison{gh: blobs{}, fork: fork, head: head, before: c.before, merged: c.merged}.verdict(t.Context())
			if err != nil || verdict != c.want {
				t.Errorf("got %q (%s), %v, want %q", verdict, detail, err, c.want)
			}
		})
	}
}

// TestRenamesAreCompared: if one side renames a file and the other edits it, git puts the edit into the renamed file. An edit that nobody made is
// found nevertheless.
func TestRenamesAreCompared(t *testing.T) {
	t.Parallel()
	const lines, first, last, both = "a b c d e f g h i", "A b c d e f g h i", "a b c d e f g h I", "A b c d e f g h I"
	fork := tree("old="+lines, "y=1")
	for name, c := range map[string]struct {
		head, before, merged map[string]File
		want                 Verdict
	}{
		"the pull request renames":             {tree("new="+lines, "y=1"), tree("old="+first, "y=1"), tree("new="+first, "y=1"), Holds},
		"the pull request renames and edits":   {tree("new="+last, "y=1"), tree("old="+first, "y=1"), tree("new="+both, "y=1"), Holds},
		"the base renames":                     {tree("old="+last, "y=1"), tree("new="+lines, "y=1"), tree("new="+last, "y=1"), Holds},
		"the base renames and edits":           {tree("old="+last, "y=1"), tree("new="+first, "y=1"), tree("new="+both, "y=1"), Holds},
		"both edit the same line":              {tree("new="+first, "y=1"), tree("old=1 b c d e f g h i", "y=1"), tree("new="+first, "y=1"), Unknown},
		"a line more":                          {tree("new="+lines, "y=1"), tree("old="+first, "y=1"), tree("new=door "+first, "y=1"), Unknown},
		"another file more":                    {tree("new="+lines, "y=1"), tree("old="+first, "y=1"), tree("new="+first, "y=1", "door=1"), Altered},
		"the old file stays":                   {tree("new="+lines, "y=1"), tree("old="+first, "y=1"), tree("new="+first, "old="+first, "y=1"), Altered},
		"a deletion and another file":          {tree("new=1 2 3", "y=1"), tree("old="+first, "y=1"), tree("new=1 2 3 door", "y=1"), Altered},
		"the base did not edit it":             {tree("new="+lines, "y=1"), fork, tree("new="+first, "y=1"), Altered},
		"a file too large to compare":          {tree("new=huge", "y=1"), tree("old="+first, "y=1"), tree("new="+first, "y=1"), Unknown},
		"an edit of another file than renamed": {tree("new="+lines, "y=1"), tree("old="+first, "y=1"), tree("new="+first, "y=2"), Altered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verdict, detail, err := comparison{gh: blobs{}, fork: fork, head: c.head, before: c.before, merged: c.merged}.verdict(t.Context())
			if err != nil || verdict != c.want {
				t.Errorf("got %q (%s), %v, want %q", verdict, detail, err, c.want)
			}
		})
	}
}

// TestFileModeIsCompared: a file that becomes executable by the merge is another one.
func TestFileModeIsCompared(t *testing.T) {
	t.Parallel()
	merged := map[string]File{"x": {"100755", "1"}}
	verdict, _, err := comparison{gh: blobs{}, fork: tree("x=0"), head: tree("x=1"), before: tree("x=0"), merged: merged}.verdict(t.Context())
	if err != nil || verdict != Altered {
		t.Errorf("got %q, %v", verdict, err)
	}
}

// TestWithdrawnApproval: a 👍 or a tick that is gone is not called altered, and a later one is not the approval.
func TestWithdrawnApproval(t *testing.T) {
	t.Parallel()
	ada, eve := Person{ID: 1, Login: "ada"}, Person{ID: 2, Login: "eve"}
	a := Approval{By: Account{1, "ada"}, Via: "reaction", GivenAt: day1, CheckedAt: day1.Add(5 * time.Second)}
	for name, c := range map[string]struct {
		thumbs []Action
		want   Verdict
	}{
		"there":         {[]Action{{eve, day1}, {ada, day1}}, Holds},
		"none":          {nil, Gone},
		"another's":     {[]Action{{eve, day1}}, Gone},
		"given again":   {[]Action{{ada, day1.Add(time.Hour)}}, Gone},
		"a namesake's":  {[]Action{{Person{ID: 3, Login: "ada"}, day1}}, Gone},
		"renamed since": {[]Action{{Person{ID: 1, Login: "ada2"}, day1}}, Holds},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, detail := reactionVerdict(&Text{ThumbsUp: c.thumbs}, a); got != c.want {
				t.Errorf("got %q (%s)", got, detail)
			}
		})
	}
	if got, _ := reactionVerdict(nil, a); got != Gone {
		t.Errorf("without the comment: got %q", got)
	}
}

// history is a GitHub with commits, whose trees are named after them.
type history struct {
	*fakeGitHub
	parents map[string][]string
	trees   map[string]map[string]File
	cut     bool
}

func (h history) Commit(_ context.Context, id string) (CommitInfo, error) {
	return CommitInfo{ID: id, Tree: id, Parents: h.parents[id]}, nil
}
func (h history) MergeBase(context.Context, string, string) (string, error) { return "fork", nil }
func (h history) Files(_ context.Context, id string) (map[string]File, bool, error) {
	return h.trees[id], !h.cut, nil
}
func (h history) Blob(ctx context.Context, id string) ([]byte, error) { return blobs{}.Blob(ctx, id) }

// TestMergeOfThePullRequest: each kind of merge holds if it brings in the head, and nothing else. A rebase of commits that change the same lines
// cannot be told from a squash on a base that changed them.
func TestMergeOfThePullRequest(t *testing.T) {
	t.Parallel()
	const held, altered, unknown = "", "merge: altered", "merge: unknown"
	more := File{"100644", "new door"}
	for name, c := range map[string]struct {
		parents []string // of the merge commit
		change  func(h *history)
		want    string
	}{
		"a merge":                         {[]string{"main", "head"}, func(*history) {}, held},
		"a merge with a line more":        {[]string{"main", "head"}, func(h *history) { h.trees["merged"]["x"] = more }, altered},
		"a merge of something else":       {[]string{"main", "other"}, func(*history) {}, altered},
		"a merge the other way round":     {[]string{"head", "main"}, func(*history) {}, altered},
		"a merge of a third one":          {[]string{"main", "head", "other"}, func(h *history) { h.trees["merged"]["door"] = more }, altered},
		"a squash":                        {[]string{"main"}, func(*history) {}, held},
		"a squash with a line more":       {[]string{"main"}, func(h *history) { h.trees["merged"]["x"] = more }, altered},
		"a squash with a file more":       {[]string{"main"}, func(h *history) { h.trees["merged"]["door"] = more }, altered},
		"a squash without the change":     {[]string{"main"}, func(h *history) { h.trees["merged"] = h.trees["main"] }, altered},
		"the base has the change as well": {[]string{"main"}, func(h *history) { h.trees["main"] = tree("x=new", "y=1") }, held},
		"without a parent":                {nil, func(*history) {}, altered},
		"the head itself":                 {nil, func(h *history) { h.pull.MergeCommit = "head" }, held},
		"no merge commit":                 {nil, func(h *history) { h.pull.MergeCommit = "" }, unknown},
		"a list of files that is cut":     {[]string{"main"}, func(h *history) { h.cut = true }, unknown},
		"a rebase":                        {[]string{"first'"}, func(h *history) { h.rebased() }, held},
		"a rebase with a line more":       {[]string{"first'"}, func(h *history) { h.rebased(); h.trees["merged"]["x"] = more }, unknown},
		"a rebase with a file more":       {[]string{"first'"}, func(h *history) { h.rebased(); h.trees["merged"]["door"] = more }, altered},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := history{fakeGitHub: &fakeGitHub{commits: []CommitInfo{{ID: "head", Parents: []string{"fork"}}}}}
			h.pull = Pull{Number: 8, Head: "head", Merged: true, MergeCommit: "merged"}
			h.parents = map[string][]string{"head": {"fork"}, "merged": c.parents, "main": {"fork"}}
			h.trees = map[string]map[string]File{"fork": tree("x=old", "y=1"), "main": tree("x=old", "y=1"), "head": tree("x=new", "y=1"), "merged": tree("x=new", "y=1")}
			c.change(&h)
			var r Report
			if err := (&verification{gh: h, pull: h.pull}).merge(t.Context(), &r); err != nil || flaws(r) != c.want || len(r.Links) != 1 {
				t.Errorf("got %q, %v, want %q: %+v", flaws(r), err, c.want, r.Links)
			}
		})
	}
}

// rebased makes the pull request two commits, which change the same line one after the other, and puts copies of them on the base.
func (h *history) rebased() {
	h.commits = []CommitInfo{{ID: "first", Parents: []string{"fork"}}, {ID: "head", Parents: []string{"first"}}}
	h.parents["first'"] = []string{"main"}
	h.trees["first'"] = tree("x=half", "y=1")
}
