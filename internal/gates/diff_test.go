package gates_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/gates"
)

const patch = `diff --git a/div.go b/div.go
index 1111111..2222222 100644
--- a/div.go
+++ b/div.go
@@ -1 +1,2 @@ package div
-package div // old
+package div
++++ b/other.go
@@ -5,2 +6,0 @@ func div() {
--- a/x
-gone
@@ -9,0 +9 @@ func div() {
+@@ -1 +1 @@
\ No newline at end of file
diff --git a/old b/old
deleted file mode 100644
--- a/old
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/a name b/a name
new file mode 100644
--- /dev/null
+++ b/a name	
@@ -0,0 +1 @@
+x
diff --git "a/\303\244\n.go" "b/\303\244\n.go"
--- "a/\303\244\n.go"
+++ "b/\303\244\n.go"
@@ -0,0 +3 @@
+x
diff --git a/old.go b/moved.go
similarity index 100%
rename from old.go
rename to moved.go
`

// TestParseDiff tells which lines count: those that a hunk adds, whatever they look like.
func TestParseDiff(t *testing.T) {
	t.Parallel()
	got, err := gates.ParseDiff([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]int{"div.go": {1, 2, 9}, "a name": {1}, "ä\n.go": {3}}
	have := map[string][]int{}
	for name, l := range got {
		have[name] = l.Numbers()
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestNamesInDiffs reads names as git writes them: quoted if they have unusual characters, and with a tab at the end if they have a space.
func TestNamesInDiffs(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"b/a":                    "a",
		"b/a b\t":                "a b",
		"\"b/\\303\\244 b\"\t":   "ä b",
		"\"b/a\\tb\"":            "a\tb",
		`"b/\a\b\t\n\v\f\r\"\\"`: "\a\b\t\n\v\f\r\"\\",
		`"b/\377\000\1770"`:      "\xff\x00\x7f0",
		"\"b/\xff\\t\xe4\"":      "\xff\t\xe4",
		"b/\xff":                 "\xff",
		`"b/'x"`:                 "'x",
	} {
		got, err := gates.ParseDiff([]byte("+++ " + written + "\n@@ -0,0 +1 @@\n+x\n"))
		if len(got) != 1 || got[want] == nil || err != nil {
			t.Errorf("%q: got %v, %v, want %q", written, got, err, want)
		}
	}
}

func TestParseDiffRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a hunk that ends early": "+++ b/x\n@@ -1 +1 @@\n-a\ndiff --git a/y b/y\n",
		"a header":               "+++ b/x\n@@ nonsense\n",
		"lines that go back":     "+++ b/x\n@@ -0,0 +5,2 @@\n+a\n+b\n@@ -0,0 +5 @@\n+a\n",
		"a huge number":          "+++ b/x\n@@ -0,0 +5,99999999999 @@\n+a\n",
		"no prefix":              "+++ x\n",
		"an open quote":          "+++ \"b/x\n@@ -0,0 +1 @@\n+a\n",
		"only a quote":           "+++ \"\n",
		"text after a quote":     "+++ \"b/x\"y\"\n@@ -0,0 +1 @@\n+a\n",
		"an open escape":         "+++ \"b/x\\\"\n@@ -0,0 +1 @@\n+a\n",
		"a short octal":          "+++ \"b/\\37\"\n@@ -0,0 +1 @@\n+a\n",
		"a large octal":          "+++ \"b/\\777\"\n@@ -0,0 +1 @@\n+a\n",
		"an octal with a 9":      "+++ \"b/\\309\"\n@@ -0,0 +1 @@\n+a\n",
		"an unknown escape":      "+++ \"b/\\x41\"\n@@ -0,0 +1 @@\n+a\n",
	} {
		if got, err := gates.ParseDiff([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// TestHasCode: only files of languages for which tools write reports are code.
func TestHasCode(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"README.md": false, "go.mod": false, ".github/workflows/ci.yml": false, "docs/go": false, "main.go": true, "web/App.VUE": true, "a/b.test.ts": true, "tool.sh": true,
	} {
		if got := (gates.Changes{name: nil}).HasCode(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
