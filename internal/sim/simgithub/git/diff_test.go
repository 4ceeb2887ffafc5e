package git

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHunks(t *testing.T) {
	t.Parallel()
	hunks := ParseHunks(patch)
	for name, c := range map[string]struct {
		line int
		left bool
		want string
	}{
		"an added line":    {2, false, "@@ -1,3 +1,4 @@ func f\n one\n+two"},
		"a line of both":   {3, true, "@@ -1,3 +1,4 @@ func f\n one\n+two\n three\n four"},
		"a removed line":   {11, true, "@@ -10,2 +11 @@\n-ten\n-eleven"},
		"outside the diff": {7, false, ""},
		"only on the left": {12, false, ""},
	} {
		got := ""
		for _, h := range hunks {
			if text, ok := h.upTo(c.line, c.left); ok {
				got = text
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzHunks(f *testing.F) {
	f.Add(patch, 3, false)
	f.Add("@@ -0,0 +1 @@\n+x", 1, false)
	f.Fuzz(func(t *testing.T, patch string, line int, left bool) {
		for _, h := range ParseHunks(patch) {
			text, ok := h.upTo(line, left)
			if ok && !strings.HasPrefix(text, "@@ -") {
				t.Errorf("a hunk without its header: %q", text)
			}
		}
	})
}

const patch = `@@ -1,3 +1,4 @@ func f
 one
+two
 three
 four
@@ -10,2 +11 @@
-ten
-eleven
+both`
