package pushgate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
)

func TestMerges(t *testing.T) {
	t.Parallel()
	files := &store{}
	merged := Tree{"theirs.go": files.entry("theirs"), ".github/workflows/ci.yml": files.entry("on: push")}
	allow := func(p *Policy) { p.Merge = Merge{Commit: "main2", Tree: merged} }
	checkRule(t, RuleMerges, map[string]ruleCase{
		"a chain": {build: func(b *builder) { b.commit(b.file("a", "1")).commit(b.file("a", "2")) }},
		"a commit outside the chain": {
			build: func(b *builder) {
				b.commit(b.file("a", "1")).commit(b.file("a", "2"))
				b.cs.Commits[1].Parents[0] = "base"
			},
			want: []string{"commit commit2 does not follow"},
		},
		"a root commit": {
			build: func(b *builder) { b.commit(b.file("a", "1")); b.cs.Commits[0].Parents = nil },
			want:  []string{"commit1 does not follow"},
		},
		"any merge without leave": {
			build: func(b *builder) { b.mergeOf("main2", b.file("theirs.go", "theirs")) },
			want:  []string{"merges main2, which is not an allowed commit"},
		},
		"the base branch": {
			build: func(b *builder) {
				b.mergeOf("main2", b.file("theirs.go", "theirs"), b.file(".github/workflows/ci.yml", "on: push"))
			},
			policy: allow,
		},
		"the base branch as first parent": {
			build: func(b *builder) {
				b.mergeOf("main2")
				b.cs.Commits[0].Parents = []string{"main2", "base"}
			},
			policy: allow,
			want:   []string{"does not follow"},
		},
		"an octopus": {
			build:  func(b *builder) { b.mergeOf("main2"); c := &b.cs.Commits[0]; c.Parents = append(c.Parents, "x") },
			policy: allow,
			want:   []string{"merges 2 branches at once"},
		},
		"what comes from the base is not judged": {
			build: func(b *builder) {
				b.mergeOf("main2", b.file(".github/workflows/ci.yml", "on: push"))
			},
			policy: allow,
		},
	})
	checkRule(t, RuleProtected, map[string]ruleCase{
		"what differs from both parents is": {
			build: func(b *builder) {
				b.mergeOf("main2", b.file(".github/workflows/ci.yml", "on: pull_request_target"))
			},
			policy: allow,
			want:   []string{".github/workflows/ci.yml: "},
		},
		"so is a deletion that the base does not have": {
			build:  func(b *builder) { b.mergeOf("main2", gone(".github/workflows/ci.yml")) },
			policy: allow,
			want:   []string{".github/workflows/ci.yml: "},
		},
		"a mode that differs counts": {
			build: func(b *builder) {
				b.mergeOf("main2", b.put(changeset.ModeExecutable, ".github/workflows/ci.yml", "on: push"))
			},
			policy: allow,
			want:   []string{".github/workflows/ci.yml: "},
		},
	})
}

func TestProtected(t *testing.T) {
	t.Parallel()
	one := func(path string) func(*builder) {
		return func(b *builder) { b.commit(b.file(path, "x")) }
	}
	checkRule(t, RuleProtected, map[string]ruleCase{
		"a workflow":            {build: one(".github/workflows/ci.yml"), want: []string{".github/workflows/ci.yml: the path is protected by `.github/workflows/**`"}},
		"in other case":         {build: one(".GitHub/Workflows/ci.yml"), want: []string{"protected"}},
		"deleting one":          {build: func(b *builder) { b.commit(gone(".github/workflows/ci.yml")) }, want: []string{"protected"}},
		"next to the workflows": {build: one(".github/dependabot.yml")},
		"a name that goes on":   {build: one(".github/workflows-docs/a.md")},
		"deeper, not the root":  {build: one("templates/.github/workflows/ci.yml")},
		"own settings":          {build: one(".errand.yml"), want: []string{"`.errand.yml`"}},
		"nearly own settings":   {build: one("x.errand.yml")},
		"code owners":           {build: one("docs/CODEOWNERS"), want: []string{"protected"}},
		"hooks":                 {build: one(".husky/pre-commit"), want: []string{"protected"}},
		"agent's hooks":         {build: one(".claude/settings.local.json"), want: []string{"protected"}},
		"where large files go":  {build: one(".lfsconfig"), want: []string{"protected"}},
		"agent's guidance":      {build: one(".claude/CLAUDE.md"), want: []string{"protected"}},
		"a file for the folder": {build: one(".github"), want: []string{".github: "}},
		"a link for the folder": {build: func(b *builder) { b.commit(b.link(".github/workflows", "../x")) }, want: []string{".github/workflows: "}},
		"an exception": {
			build:  one(".github/workflows/docs.yml"),
			policy: func(p *Policy) { p.Operator.Unprotected = []string{".github/workflows/docs.yml"} },
		},
		"a broken list": {
			build:  one("a"),
			policy: func(p *Policy) { p.Operator.Protected = []string{"a/[z"} },
			want:   []string{`glob "a/[z" is not valid`},
		},
		"changed twice, reported once": {
			build: func(b *builder) { b.commit(b.file(".errand.yml", "1")).commit(b.file(".errand.yml", "2")) },
			want:  []string{".errand.yml: "},
		},
		"changed back is still published": {
			build: func(b *builder) { b.commit(b.file(".errand.yml", "1")).commit(gone(".errand.yml")) },
			want:  []string{".errand.yml: "},
		},
	})
}

func TestCheckGlobs(t *testing.T) {
	t.Parallel()
	if err := CheckGlobs(append(DefaultProtected(), "a/{b,c}/*")); err != nil {
		t.Error(err)
	}
	for _, glob := range []string{"", "!", "!a", "a{b", "[a"} {
		if CheckGlobs([]string{"ok/**", glob}) == nil {
			t.Errorf("glob %q passed", glob)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	many := func(n int) func(*builder) {
		return func(b *builder) {
			var changes []changeset.Change
			for i := range n {
				changes = append(changes, b.file(fmt.Sprintf("f%d", i), "x"))
			}
			b.commit(changes...).commit(changes[0])
		}
	}
	small := func(p *Policy) { p.Operator.MaxBytes = 10; p.MaxCommits = 2 }
	checkRule(t, RuleSize, map[string]ruleCase{
		"300 paths":           {build: many(300)},
		"301 paths":           {build: many(301), want: []string{"301 paths differ, and at most 300 may"}},
		"the same blob twice": {build: func(b *builder) { b.commit(b.file("a", "0123456789"), b.file("b", "0123456789")) }, policy: small},
		"one byte too many":   {build: func(b *builder) { b.commit(b.file("a", "0123456789"), b.file("b", "!")) }, policy: small, want: []string{"of new content"}},
		"deletions are free":  {build: func(b *builder) { b.commit(b.file("a", "0123456789"), gone("b")) }, policy: small},
		"too many commits": {
			build:  func(b *builder) { b.commit().commit().commit() },
			policy: small,
			want:   []string{"3 commits, and at most 2"},
		},
		"the default is 20 MB": {
			build:  func(b *builder) { b.commit(b.file("a", strings.Repeat("\x00", DefaultMaxBytes+1))) },
			policy: func(p *Policy) { p.Scanner = nil }, // 20 MB take a while to search
			want:   []string{"20.0 MB"},
		},
	}, RuleSecrets)
}

func TestModesAndSubmodules(t *testing.T) {
	t.Parallel()
	checkRule(t, RuleModes, map[string]ruleCase{
		"an unknown mode":    {build: func(b *builder) { b.commit(b.put("100600", "a", "x")) }, want: []string{`a: the file mode "100600"`}},
		"a tree":             {build: func(b *builder) { b.commit(b.put("040000", "a", "x")) }, want: []string{"a: "}},
		"content is missing": {build: func(b *builder) { b.commit(changeset.Change{Path: "a", Mode: changeset.ModeFile, Blob: "nowhere"}) }, want: []string{"content is missing"}},
		"an empty file":      {build: func(b *builder) { b.commit(b.file("a", "")) }},
		"a mode alone": {
			build:  func(b *builder) { b.commit(b.put(changeset.ModeExecutable, "a", "x")) },
			policy: func(p *Policy) { p.Base = Tree{"a": (&store{}).entry("x")} },
		},
	})
	checkRule(t, RuleSubmodules, map[string]ruleCase{
		"added": {build: func(b *builder) {
			b.commit(changeset.Change{Path: "lib", Mode: changeset.ModeSubmodule, Blob: "c0ffee"})
		}, want: []string{"lib: a submodule"}},
		"its list":        {build: func(b *builder) { b.commit(b.file(".gitmodules", "[submodule]")) }, want: []string{".gitmodules: "}},
		"removed":         {build: func(b *builder) { b.commit(gone("lib"), gone(".gitmodules")) }},
		"nearly its list": {build: func(b *builder) { b.commit(b.file("docs/.gitmodules", "")) }},
	})
}

func TestPaths(t *testing.T) {
	t.Parallel()
	one := func(path string) func(*builder) {
		return func(b *builder) { b.commit(b.file(path, "x")) }
	}
	checkRule(t, RulePaths, map[string]ruleCase{
		"ordinary":           {build: one("a b/ü/日本.go")},
		"empty":              {build: one(""), want: []string{"empty"}},
		"absolute":           {build: one("/etc/passwd"), want: []string{"absolute"}},
		"upwards":            {build: one("../x"), want: []string{"`..` parts"}},
		"upwards inside":     {build: one("a/../../x"), want: []string{"`..` parts"}},
		"dots in a name":     {build: one("a/..b/c...d")},
		"double slash":       {build: one("a//b"), want: []string{"empty"}},
		"deleting upwards":   {build: func(b *builder) { b.commit(gone("../x")) }, want: []string{"`..` parts"}},
		"git's directory":    {build: one(".git/hooks/post-checkout"), want: []string{"git's own"}},
		"in other case":      {build: one("a/.GIT/config"), want: []string{"git's own"}},
		"as a short name":    {build: one("GIT~1/config"), want: []string{"git's own"}},
		"with a stream":      {build: one(".git::$INDEX_ALLOCATION/config"), want: []string{"git's own"}},
		"with an end":        {build: one(".git . /config"), want: []string{"git's own"}},
		"with a joiner":      {build: one(".g\u200bit/config"), want: []string{"invisible"}},
		"like git":           {build: one(".gitignore")},
		"a control":          {build: one("a\nb"), want: []string{`"a\nb": the path has control`}},
		"bidi":               {build: one("a\u202ecod.exe"), want: []string{"invisible"}},
		"not UTF-8":          {build: one("a\xff"), want: []string{"UTF-8"}},
		"too long":           {build: one(strings.Repeat("abcd/", 205) + "x"), want: []string{"1026 bytes"}},
		"a long name":        {build: one("d/" + strings.Repeat("a", 256)), want: []string{"256 bytes"}},
		"just not too long":  {build: one("d/" + strings.Repeat("a", 255))},
		"a device":           {build: one("src/aux.go"), want: []string{"device"}},
		"a port":             {build: one("COM1"), want: []string{"device"}},
		"no port":            {build: one("com0/lpt10/auxiliary.go")},
		"a colon":            {build: one("a:b"), want: []string{"Windows does not allow"}},
		"a dot at the end":   {build: one("a./b"), want: []string{"ends in a dot"}},
		"deleting a bad one": {build: func(b *builder) { b.commit(gone("a:b")) }},
		"two spellings":      {build: func(b *builder) { b.commit(b.file("Read.me", "1"), b.file("read.me", "2")) }, want: []string{"read.me: it collides with `Read.me`"}},
		"composed or not":    {build: func(b *builder) { b.commit(b.file("caf\u00e9", "1"), b.file("cafe\u0301", "2")) }, want: []string{"collides"}},
		"renamed in case":    {build: func(b *builder) { b.commit(gone("Read.me"), b.file("read.me", "2")) }},
		"with the base":      {build: one("SRC/main.go"), policy: func(p *Policy) { p.Base = Tree{"src/a.go": {}} }, want: []string{"SRC/main.go: it collides with `src`"}},
		"the base's own affair": {
			build:  one("src/b.go"),
			policy: func(p *Policy) { p.Base = Tree{"src/a.go": {}, "SRC/a.go": {}} },
		},
		"a file as a folder": {
			build:  one("a/b"),
			policy: func(p *Policy) { p.Base = Tree{"a": {Mode: changeset.ModeSymlink}} },
			want:   []string{"a/b: it collides with `a`"},
		},
	})
}

// TestNoSettingAboveTheCeiling: a refusal never suggests a limit above the ceiling. A merge can drop more paths than a
// changeset has changes.
func TestNoSettingAboveTheCeiling(t *testing.T) {
	t.Parallel()
	for paths, want := range map[int]bool{CeilingPaths: true, CeilingPaths + 1: false} {
		theirs := Tree{}
		for i := range paths {
			theirs[fmt.Sprint(i)] = Entry{Mode: changeset.ModeFile, Blob: "theirs"}
		}
		b := &builder{}
		b.mergeOf("newer")
		got := Judge(&b.cs, Policy{Scanner: scanner(t), Base: Tree{}, Merge: Merge{Commit: "newer", Tree: theirs, Fork: Tree{}}})
		if len(got) != 1 || got[0].Rule != RuleSize || strings.Contains(got[0].Remedy, "max_paths") != want {
			t.Errorf("got %d paths: %+v", paths, got)
		}
	}
}
