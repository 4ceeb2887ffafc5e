package pushgate

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/changeset"
)

func FuzzJudge(f *testing.F) {
	f.Add("100644", "a/b.go", "package b", "120000", "c", "../x", "Fix it", "base")
	f.Add("120000", "a", "b/../..", "120000", "b", "a", "@x fixes y/z#1", "main2")
	f.Add("160000", ".gitmodules", "", "", ".GIT/x", "\x00", "", "")
	f.Add("100755", "A", "version https://git-lfs.github.com/spec/v1\noid", "100644", "a", "ghs_", "\x1b", "main2")
	words := scanner(f)
	f.Fuzz(func(t *testing.T, mode1, path1, content1, mode2, path2, content2, message, parent string) {
		b := &builder{}
		b.commitAs(message, b.put(changeset.Mode(mode1), path1, content1), b.put(changeset.Mode(mode2), path2, content2))
		b.mergeOf(parent, gone(path1), b.put(changeset.Mode(mode1), path2, content1))
		files := &store{}
		policy := Policy{
			Scanner: words, Content: files.get,
			Base:  Tree{path1: files.as(changeset.Mode(mode2), content2)},
			Merge: Merge{Commit: "main2", Tree: Tree{path2: files.entry(content1)}, Fork: Tree{path1: files.entry(content2)}},
		}
		first := Judge(&b.cs, policy)
		if diff := cmp.Diff(first, Judge(&b.cs, policy)); diff != "" {
			t.Fatalf("two calls differ (-first +second):\n%s", diff)
		}
	})
}

// Forbidden parts of a published message, expressed independently of the code under test.
var (
	callsSomebody = regexp.MustCompile(`(?:^|\W)@[A-Za-z0-9]`)
	creditsOthers = regexp.MustCompile(`(?im)^[ \t\pZ]*(?:co-authored-by|signed-off-by|skip-checks)[ \t\pZ]*:`)
	skipsChecks   = regexp.MustCompile(`(?i)\[(?:skip ci|ci skip|no ci|skip actions|actions skip)\]`)
	closesAnIssue = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)[*_~"')]*[\s\pZ:][\s\pZ\pM:*_~()"'\[]*([\w./-]*)#(\d+)\b`)
)

// FuzzSafeMessage checks that no message mentions or credits people, skips checks or closes another issue, and that
// SafeMessage is idempotent.
func FuzzSafeMessage(f *testing.F) {
	f.Add("Fix @a, closes x/y#2\n\nCo-authored-by: z\n[skip ci]\r\n")
	f.Add("fixes\u00a0#12 `@ada` .@ada /@ada closes:\u2003*x/y#3* _fixes_\n#4")
	f.Add("fixes fixes #1 fix: see#2 [no-ci [no ci]] @@a")
	f.Fuzz(func(t *testing.T, message string) {
		home := Home{Owner: "acme", Name: "widget", Issue: 7}
		once := SafeMessage(message, home)
		if once == "" {
			t.Fatal("got an empty text")
		}
		if twice := SafeMessage(once, home); twice != once {
			t.Fatalf("got %q, then %q", once, twice)
		}
		for _, bad := range []*regexp.Regexp{callsSomebody, creditsOthers, skipsChecks} {
			if found := bad.FindString(once); found != "" {
				t.Errorf("%q is left in %q", found, once)
			}
		}
		for _, m := range closesAnIssue.FindAllStringSubmatch(once, -1) {
			if own := m[1] == "" || strings.EqualFold(m[1], "acme/widget"); !own || strings.TrimLeft(m[2], "0") != "7" {
				t.Errorf("%q is left in %q", m[0], once)
			}
		}
	})
}
