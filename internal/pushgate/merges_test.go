package pushgate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/changeset"
)

// mergeWorld is a branch that changed own.go, and a base branch that changed ci.yml, gained new.go and
// deleted old.go since they parted. both.go was changed by both.
type mergeWorld struct {
	files  store
	policy func(p *Policy)
}

const ciPath = ".github/workflows/ci.yml"

func newMergeWorld() *mergeWorld {
	w := &mergeWorld{}
	entry := w.files.entry
	fork := Tree{ciPath: entry("v1"), "old.go": entry("old"), "own.go": entry("own v1"), "both.go": entry("both v1"), "lib": w.files.as(changeset.ModeSubmodule, "lib v1")}
	ours := Tree{ciPath: entry("v1"), "old.go": entry("old"), "own.go": entry("own v2"), "both.go": entry("both ours"), "lib": w.files.as(changeset.ModeSubmodule, "lib v1")}
	theirs := Tree{ciPath: entry("v2"), "new.go": entry("new"), "own.go": entry("own v1"), "both.go": entry("both theirs"), "lib": w.files.as(changeset.ModeSubmodule, "lib v2")}
	w.policy = func(p *Policy) {
		p.Base, p.Content = ours, w.files.get
		p.Merge = Merge{Commit: "main2", Tree: theirs, Fork: fork}
	}
	return w
}

// clean returns the changes of a merge that takes all changes of the base branch, and its version of both.go.
func clean(b *builder) []changeset.Change {
	return []changeset.Change{
		b.file(ciPath, "v2"), b.file("both.go", "both theirs"),
		{Path: "lib", Mode: changeset.ModeSubmodule, Blob: blobID("lib v2"), OldMode: changeset.ModeSubmodule},
		b.file("new.go", "new"), gone("old.go"),
	}
}

// only returns the changes of a clean merge at the given paths; all other paths keep the branch's version.
func only(b *builder, paths ...string) (list []changeset.Change) {
	for _, c := range clean(b) {
		for _, path := range paths {
			if c.Path == path {
				list = append(list, c)
			}
		}
	}
	return list
}

// A merge is judged by its result compared to both sides, not to its first parent only.
func TestMergesAreCheckedAgainstBothSides(t *testing.T) {
	t.Parallel()
	w := newMergeWorld()
	checkRule(t, RuleProtected, map[string]ruleCase{
		"a clean merge":                 {build: func(b *builder) { b.mergeOf("main2", clean(b)...) }, policy: w.policy},
		"a clean merge twice":           {build: func(b *builder) { b.mergeOf("main2", clean(b)...).mergeOf("main2") }, policy: w.policy},
		"keeps what the branch has":     {build: func(b *builder) { b.mergeOf("main2", only(b, "both.go", "lib", "new.go")...) }, policy: w.policy, want: []string{ciPath + ": the path is protected by `.github/workflows/**`, and merge commit1 undoes"}},
		"deletes what the base changed": {build: func(b *builder) { b.mergeOf("main2", append(only(b, "lib"), gone(ciPath))...) }, policy: w.policy, want: []string{ciPath + ": the path is protected"}},
		"changes the mode of what it takes": {build: func(b *builder) {
			b.mergeOf("main2", append(only(b, "lib"), b.put(changeset.ModeExecutable, ciPath, "v2"))...)
		}, policy: w.policy, want: []string{ciPath}},
		"a second merge undoes the first one": {build: func(b *builder) { b.mergeOf("main2", clean(b)...).mergeOf("main2", b.file(ciPath, "v1")) }, policy: w.policy, want: []string{ciPath}},
		"a commit after it undoes it":         {build: func(b *builder) { b.mergeOf("main2", clean(b)...).commit(b.file(ciPath, "v1")) }, policy: w.policy, want: []string{ciPath}},
		"a second merge of what a commit did": {build: func(b *builder) {
			b.mergeOf("main2", clean(b)...).commit(b.file("z.go", "z")).mergeOf("main2", b.file(ciPath, "v3"))
		}, policy: w.policy, want: []string{ciPath}},
		"without the fork everything counts": {
			build: func(b *builder) { b.mergeOf("main2", only(b, "lib")...) },
			policy: func(p *Policy) {
				w.policy(p)
				p.Merge.Fork = nil
			}, want: []string{ciPath},
		},
	})
	checkRule(t, RuleSubmodules, map[string]ruleCase{
		"keeps an older submodule": {build: func(b *builder) { b.mergeOf("main2", only(b, ciPath, "new.go", "old.go")...) }, policy: w.policy, want: []string{"lib: a submodule was"}},
	})
	checkRule(t, RuleSize, map[string]ruleCase{
		"every path counts that it throws away": {
			build: func(b *builder) { b.mergeOf("main2", only(b, ciPath, "lib")...) },
			policy: func(p *Policy) {
				w.policy(p)
				p.Operator.MaxPaths = 2
			}, want: []string{"3 paths differ"}, // both.go, new.go, old.go
		},
		"what it takes over does not": {
			build: func(b *builder) { b.mergeOf("main2", clean(b)...) },
			policy: func(p *Policy) {
				w.policy(p)
				p.Operator.MaxPaths = 1
			},
		},
	})
}

// A merge that drops the branch's work is judged like any change. In a conflict, the base's version is accepted,
// because it is already published.
func TestMergeThatDropsTheBranchIsChecked(t *testing.T) {
	t.Parallel()
	w := newMergeWorld()
	protect := func(p *Policy) {
		w.policy(p)
		p.Operator.Protected = []string{"own.go", "both.go"}
	}
	checkRule(t, RuleProtected, map[string]ruleCase{
		"takes the base's version of what the branch alone changed": {
			build: func(b *builder) { b.mergeOf("main2", append(clean(b), b.file("own.go", "own v1"))...) }, policy: protect, want: []string{"own.go"},
		},
		"takes the base's version in a conflict": {build: func(b *builder) { b.mergeOf("main2", clean(b)...) }, policy: protect},
		"keeps the branch's version in a conflict": {
			build: func(b *builder) { b.mergeOf("main2", only(b, ciPath, "lib", "new.go", "old.go")...) }, policy: protect, want: []string{"both.go"},
		},
	})
}

func TestRevertedBaseChangesAreFound(t *testing.T) {
	t.Parallel()
	w := newMergeWorld()
	for name, c := range map[string]struct {
		build func(b *builder)
		want  []string
	}{
		"cleanly":     {func(b *builder) { b.mergeOf("main2", clean(b)...) }, nil},
		"keeping all": {func(b *builder) { b.mergeOf("main2") }, []string{ciPath, "both.go", "lib", "new.go", "old.go"}},
		"restored later": {func(b *builder) {
			b.mergeOf("main2", only(b, ciPath, "lib")...).commit(only(b, "both.go", "new.go", "old.go")...)
		}, nil},
		"with a version of its own": {func(b *builder) {
			b.mergeOf("main2", append(only(b, ciPath, "lib", "new.go", "old.go"), b.file("both.go", "both of both"))...)
		}, nil},
		"of nothing that is known": {func(b *builder) { b.mergeOf("other") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &builder{}
			c.build(b)
			policy := Policy{}
			w.policy(&policy)
			if diff := cmp.Diff(c.want, Undone(&b.cs, policy)); diff != "" {
				t.Errorf("undone (-want +got):\n%s", diff)
			}
		})
	}
}

// A merge that discards the changes of a large base branch reads none of its files from GitHub.
func TestMergeThatKeepsTheBranchReadsNoFiles(t *testing.T) {
	t.Parallel()
	base, theirs := Tree{}, Tree{}
	for i := range 1000 {
		path := fmt.Sprintf("f%d.go", i)
		base[path], theirs[path] = Entry{Mode: changeset.ModeFile, Blob: blobID("old" + path)}, Entry{Mode: changeset.ModeFile, Blob: blobID("new" + path)}
	}
	asked := 0
	policy := Policy{
		Scanner: scanner(t), Base: base, Merge: Merge{Commit: "main2", Tree: theirs, Fork: base}, LentFiles: map[string]string{"secret.env": "a long enough text"},
		Content: func(string) ([]byte, bool) { asked++; return nil, true },
	}
	got := Judge(&(&builder{}).mergeOf("main2").cs, policy)
	if len(got) != 1 || got[0].Rule != RuleSize || asked > 0 {
		t.Errorf("got %d files were read for %+v", asked, got)
	}
}

// A file may replace a directory only if the changeset deletes each path in it.
func TestAFileReplacesADirectoryOnlyWithItsDeletions(t *testing.T) {
	t.Parallel()
	files := &store{}
	base := func(p *Policy) {
		p.Base = Tree{"d/a": files.entry("a"), "d/e/b": files.entry("b"), "da": files.entry("c")}
	}
	checkRule(t, RulePaths, map[string]ruleCase{
		"with them":           {build: func(b *builder) { b.commit(b.file("d", "x"), gone("d/a"), gone("d/e/b")) }, policy: base},
		"without one of them": {build: func(b *builder) { b.commit(b.file("d", "x"), gone("d/a")) }, policy: base, want: []string{"d: it collides with `d/e/b`"}},
		"without any":         {build: func(b *builder) { b.commit(b.link("d", "da")) }, policy: base, want: []string{"d: it collides with `d/"}},
		"a name that goes on": {build: func(b *builder) { b.commit(b.file("d-", "x")) }, policy: base},
	})
}
