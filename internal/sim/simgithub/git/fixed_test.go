package git

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDiffMatchesGit: the list and the patches of one git are those of two.
func TestDiffMatchesGit(t *testing.T) {
	t.Parallel()
	r := emptyRepo(t)
	long := strings.Repeat("a line\n", 20)
	commit(t, r, "", "main", "One", map[string]string{"moved": long, "gone": "1\n", "bin": "\x00\x01", "a \"b\"\t": "2\n", "same": "3\n", "ü": "4"})
	commit(t, r, "main", "main", "Two", map[string]string{"new/place": long + "more\n", "bin": "\x00\x02", "a \"b\"\t": "-2\n", "ü": "5", "x\ny": "6\n"}, "moved", "gone")
	to := r.Branch("main")
	from := r.Commit(to).Parents[0]
	for name, from := range map[string]string{"of a commit": from, "of everything": "", "of nothing": to} {
		got, err := r.Diff(from, to)
		if err != nil {
			t.Fatal(err)
		}
		if from == "" {
			from = emptyTree
		}
		want := parseRaw(runGit(t, r, "diff", "-M", "--raw", "-z", "--no-abbrev", from, to))
		patches := splitPatches(runGit(t, r, "diff", "--no-color", "-M", "-p", from, to))
		if len(got) != len(want) || len(got) != len(patches) {
			t.Fatalf("%s: got %d files, want %d with %d patches", name, len(got), len(want), len(patches))
		}
		for n := range got {
			want[n].Patch, want[n].Additions, want[n].Deletions = patches[n], got[n].Additions, got[n].Deletions
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOnlyFixedOutputIsKept: the commits of a branch change, those of an id do not, and an error is not kept.
func TestOnlyFixedOutputIsKept(t *testing.T) {
	t.Parallel()
	r := testRepo(t)
	side, apart := r.Branch("side"), r.Branch("apart")
	count := func(base, head string, want int) {
		t.Helper()
		if ahead, _, err := r.CountBetween(base, head); err != nil || ahead != want {
			t.Errorf("%s is %d commits ahead of %s (%v), want %d", head, ahead, base, err, want)
		}
	}
	const unknown = "1234567890123456789012345678901234567890"
	if _, _, err := r.CountBetween(side, unknown); err == nil {
		t.Error("an unknown commit was compared")
	}
	count(side, apart, 1)
	count(side, "apart", 1)
	commit(t, r, "apart", "apart", "Four", map[string]string{"a": "9\n"})
	count(side, "apart", 2)
	count(side, apart, 1)
	if _, _, err := r.CountBetween(side, unknown); err == nil {
		t.Error("an unknown commit was compared the second time")
	}
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	count(side, apart, 1)
}
