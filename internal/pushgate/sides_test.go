package pushgate

import (
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
)

// TestRepositorySettingsOnlyTighten: neither side can allow paths that the other protects. The operator's settings are
// the ceiling, and the operator's exceptions do not apply to the repository's own protected paths.
func TestRepositorySettingsOnlyTighten(t *testing.T) {
	t.Parallel()
	const ci, docs, own = ".github/workflows/ci.yml", ".github/workflows/docs.yml", "deploy/keys.txt"
	change := func(paths ...string) func(*builder) {
		return func(b *builder) {
			var changes []changeset.Change
			for _, path := range paths {
				changes = append(changes, b.file(path, "x"))
			}
			b.commit(changes...)
		}
	}
	sides := func(operator, repository Settings) func(*Policy) {
		return func(p *Policy) { p.Operator, p.Repository = operator, repository }
	}
	excepts := func(globs ...string) Settings { return Settings{Unprotected: globs} }
	protects := func(globs ...string) Settings { return Settings{Protected: globs} }
	checkRule(t, RuleProtected, map[string]ruleCase{
		"an exception of the repository's alone": {
			build: change(ci), policy: sides(Settings{}, excepts(".github/**")), want: []string{ci + ": "},
		},
		"an exception of the operator's, of two files": {
			build: change(ci, docs), policy: sides(excepts(docs), Settings{}), want: []string{ci + ": "},
		},
		"an exception that the repository gives up for one of two": {
			build: change(ci, docs), policy: sides(excepts(".github/workflows/**"), excepts(docs)), want: []string{ci + ": "},
		},
		"an exception that the repository gives up for all": {
			build: change(ci, docs), policy: sides(excepts(".github/workflows/**"), Settings{Unprotected: []string{}}), want: []string{ci + ": ", docs + ": "},
		},
		"an exception of the operator's from what the repository protects": {
			build: change(own, ci), policy: sides(excepts("**"), protects("deploy/**")), want: []string{own + ": the path is protected by `deploy/**`"},
		},
		"an exception of the repository's from what the operator protects": {
			build: change(own), policy: sides(protects("deploy/**"), excepts("deploy/**")), want: []string{own + ": "},
		},
		"paths that both sides protect, and those always protected": {
			build: change(ci, own, "ops/a"), policy: sides(protects("deploy/**"), protects("ops/**")), want: []string{ci + ": ", own + ": ", "ops/a: "},
		},
		"a broken list of the operator's exceptions": {
			build: change("a"), policy: sides(excepts("a/[z"), Settings{}), want: []string{`glob "a/[z" is not valid`},
		},
		"a broken list of what the repository protects": {
			build: change("a"), policy: sides(protects("b"), protects("a/[z")), want: []string{`glob "a/[z" is not valid`},
		},
		"a broken list of the repository's exceptions": {
			build: change("a"), policy: sides(excepts("b"), excepts("a/[z")), want: []string{`glob "a/[z" is not valid`},
		},
	})
	size := func(operator, repository Settings) func(*Policy) { return sides(operator, repository) }
	checkRule(t, RuleSize, map[string]ruleCase{
		"more paths than the operator's": {build: change("a", "b"), policy: size(Settings{MaxPaths: 1}, Settings{MaxPaths: 5}), want: []string{"2 paths differ, and at most 1 may"}},
		"fewer paths":                    {build: change("a", "b"), policy: size(Settings{MaxPaths: 5}, Settings{MaxPaths: 1}), want: []string{"2 paths differ, and at most 1 may"}},
		"more bytes than the operator's": {
			build:  func(b *builder) { b.commit(b.file("a", "1"), b.file("b", "23")) },
			policy: size(Settings{MaxBytes: 2}, Settings{MaxBytes: 9}), want: []string{"of new content"},
		},
		"fewer bytes": {
			build:  func(b *builder) { b.commit(b.file("a", "1"), b.file("b", "23")) },
			policy: size(Settings{MaxBytes: 9}, Settings{MaxBytes: 2}), want: []string{"of new content"},
		},
	})
}

// TestEachOfTwoMergesIsChecked: an allowed, known or harmless item does not excuse a second one.
func TestEachOfTwoMergesIsChecked(t *testing.T) {
	t.Parallel()
	files := &store{}
	line := "token = " + fakeToken() + "\n"
	has := func(tree Tree) func(*Policy) {
		return func(p *Policy) { p.Base, p.Content = tree, files.get }
	}
	allow := func(globs ...string) func(*Policy) {
		return func(p *Policy) { p.Operator.SecretsAllowedIn = globs }
	}
	checkRule(t, RuleSecrets, map[string]ruleCase{
		"the second version of a file":         {build: func(b *builder) { b.commit(b.file("a", "x")).commit(b.file("a", line)) }, want: []string{"a: line 1"}},
		"a copy where secrets are not allowed": {build: func(b *builder) { b.commit(b.file("testdata/a", line), b.file("z", line)) }, policy: allow("testdata/**"), want: []string{"z: line 1"}},
		"a copy of a file that stays, changed": {
			build:  func(b *builder) { b.commit(b.file("a", line+"more\n"), b.file("b", line+"other\n")) },
			policy: has(Tree{"a": files.entry(line)}), want: []string{"b: line 1"},
		},
		"a move in an earlier commit": {
			build:  func(b *builder) { b.commit(gone("a")).commit(b.file("b", line+"other\n")) },
			policy: has(Tree{"a": files.entry(line)}), want: []string{"b: line 1"},
		},
		"a name of a file that stays": {
			build:  func(b *builder) { b.commit(b.file("a/"+fakeToken(), "changed"), b.file("b/"+fakeToken(), "x")) },
			policy: has(Tree{"a/" + fakeToken(): files.entry("x")}), want: []string{"b/[redacted]"},
		},
		"both in one file": {build: func(b *builder) { b.commit(b.file("a", line+knownSecret+"\n")) }, want: []string{"a: line 1 contains text that looks like a secret (github-token)", "a: line 2 contains text that looks like a secret (known-value)"}},
		"another secret in the same file": {
			build:  func(b *builder) { b.commit(b.file("a", line+knownSecret+"\n")) },
			policy: has(Tree{"a": files.entry(line)}), want: []string{"a: line 2 contains text that looks like a secret (known-value)"},
		},
	})
	checkRule(t, RuleSecrets, map[string]ruleCase{
		"a copy of what a merge brought, and another file": {
			build: func(b *builder) {
				b.mergeOf("main2", b.file("theirs.env", line)).commit(b.file("copy.env", line), b.file("z.env", line+"more\n"))
			},
			policy: func(p *Policy) {
				p.Merge, p.Content = Merge{Commit: "main2", Tree: Tree{"theirs.env": files.entry(line)}, Fork: Tree{}}, files.get
			},
			want: []string{"z.env: line 1"},
		},
	})
	checkRule(t, RuleMessages, map[string]ruleCase{
		"the second message": {build: func(b *builder) { b.commit(b.file("a", "x")).commitAs("Use "+knownSecret, b.file("a", "y")) }, want: []string{"commit2 contains text that looks like a secret"}},
	})
}

// TestOneAllowedMergeAllowsNoOther: neither does the content of the allowed merge excuse other content.
func TestOneAllowedMergeAllowsNoOther(t *testing.T) {
	t.Parallel()
	files := &store{}
	theirs := Tree{"theirs.go": files.entry("theirs"), ciPath: files.entry("on: push")}
	merging := func(p *Policy) { p.Merge = Merge{Commit: "main2", Tree: theirs, Fork: Tree{}} }
	checkRule(t, RuleMerges, map[string]ruleCase{
		"another commit than the allowed one": {build: func(b *builder) { b.mergeOf("evil") }, policy: merging, want: []string{"merges evil, which is not an allowed commit"}},
		"another one after the allowed one": {build: func(b *builder) {
			b.mergeOf("main2", b.file("theirs.go", "theirs"), b.file(ciPath, "on: push")).mergeOf("evil")
		}, policy: merging, want: []string{"commit2 merges evil"}},
		"the allowed one twice, with nothing new in the second": {build: func(b *builder) {
			b.mergeOf("main2", b.file("theirs.go", "theirs"), b.file(ciPath, "on: push")).mergeOf("main2")
		}, policy: merging},
	})
	checkRule(t, RuleProtected, map[string]ruleCase{
		"taken back by a second merge": {
			build: func(b *builder) {
				b.mergeOf("main2", b.file("theirs.go", "theirs"), b.file(ciPath, "on: push")).mergeOf("main2", gone(ciPath))
			},
			policy: merging, want: []string{ciPath + ": "},
		},
	})
	checkRule(t, RuleModes, map[string]ruleCase{
		"missing content next to the base's": {
			build:  func(b *builder) { b.commit(changeset.Change{Path: "b", Mode: changeset.ModeFile, Blob: "nowhere"}) },
			policy: func(p *Policy) { p.Base, p.Content = Tree{"a": files.entry("x")}, files.get }, want: []string{"b: its content is missing"},
		},
	})
}

// TestASecondMergeOfTheSameCommit: a second merge of the same commit adds nothing, so it cannot undo the branch's
// changes to the first.
func TestASecondMergeOfTheSameCommit(t *testing.T) {
	t.Parallel()
	files := &store{}
	policy := Policy{Merge: Merge{Commit: "main2", Tree: Tree{"a.go": files.entry("theirs"), "b.go": files.entry("theirs too")}, Fork: Tree{"a.go": files.entry("old")}}}
	policy.Base = policy.Merge.Fork
	b := &builder{}
	b.mergeOf("main2", b.file("a.go", "theirs"), b.file("b.go", "theirs too")).commit(b.file("a.go", "changed"), gone("b.go")).mergeOf("main2")
	if got := Undone(&b.cs, policy); len(got) > 0 {
		t.Errorf("%v are undone, want none", got)
	}
	b = &builder{}
	b.mergeOf("main2", b.file("a.go", "theirs")).mergeOf("main2")
	if got := Undone(&b.cs, policy); len(got) != 1 || got[0] != "b.go" {
		t.Errorf("%v are undone, want b.go by the first merge", got)
	}
}

// TestEachLargeFileIsChecked: an available or known large file does not excuse a missing one.
func TestEachLargeFileIsChecked(t *testing.T) {
	t.Parallel()
	first, firstText := changeset.PointerTo([]byte("first"))
	second, secondText := changeset.PointerTo([]byte("second"))
	both := func(brought ...string) func(*builder) {
		return func(b *builder) {
			b.cs.LFS = map[string][]byte{}
			for _, content := range brought {
				p, _ := changeset.PointerTo([]byte(content))
				b.cs.LFS[p.OID] = []byte(content)
			}
			b.commit(b.file("1.bin", firstText), b.file("2.bin", secondText))
		}
	}
	known := func(list ...changeset.Pointer) func(*Policy) {
		return func(p *Policy) {
			p.LFSObjects = map[changeset.Pointer]bool{}
			for _, l := range list {
				p.LFSObjects[l] = true
			}
		}
	}
	checkRule(t, RuleLFS, map[string]ruleCase{
		"both known":           {build: both(), policy: known(first, second)},
		"both brought":         {build: both("first", "second")},
		"one known":            {build: both(), policy: known(first), want: []string{"2.bin: the LFS object"}},
		"one brought":          {build: both("second"), want: []string{"1.bin: the LFS object"}},
		"each by another side": {build: both("second"), policy: known(first)},
	})
}
