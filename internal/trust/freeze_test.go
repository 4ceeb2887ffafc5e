package trust

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDifference(t *testing.T) {
	t.Parallel()
	sentence := strings.Repeat("all is well and so on, ", 30)
	tests := map[string]struct {
		before, after Text
		want          string
	}{
		"nothing":               {Text{"A", "b"}, Text{"A", "b"}, ""},
		"line ends":             {Text{"A", "b\nc"}, Text{"A", "b\r\nc\r\n"}, ""},
		"the title":             {Text{"A", "b"}, Text{"B", "b"}, "-A\n+B\n \n b"},
		"a line more":           {Text{"A", "b"}, Text{"A", "b\nc"}, " \n b\n+c"},
		"in long lines":         {Text{"A", sentence + "x" + sentence}, Text{"A", sentence + "yz" + sentence}, " A\n \n-… well and so on, all is well and so on, xall is well and so on, all is well and s…\n+… well and so on, all is well and so on, yzall is well and so on, all is well and s…"},
		"a line end of Unicode": {Text{"A", "b"}, Text{"A", "b\u2028c"}, " A\n \n-b\n+b\\u{2028}c"},
		"what is hidden":        {Text{"A", "b"}, Text{"A", "b\u200b\U000E0041"}, " A\n \n-b\n+b\\u{200B}\\u{E0041}"},
		"fences inside":         {Text{"A", "b"}, Text{"A", "````\nb"}, " A\n \n+````\n b"},
		"two places": {
			Text{"A", "1\n2\n3\n4\n5\n6\n7\n8\n9"}, Text{"A", "1\nx\n3\n4\n5\n6\n7\ny\n9"},
			" \n 1\n-2\n+x\n 3\n 4\n …\n 6\n 7\n-8\n+y\n 9",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Difference(tc.before, tc.after); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestDifferenceIsBounded(t *testing.T) {
	t.Parallel()
	var a, b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&a, "%d %s\n", i, strings.Repeat("ä", i%400))
		fmt.Fprintf(&b, "%d %s\n", i*7, strings.Repeat("ö", i%300))
	}
	got := Difference(Text{"A", a.String()}, Text{"B", b.String()})
	lines := strings.Split(got, "\n")
	if len(lines) > maxDiffLines+1 || !strings.Contains(got, "more lines") {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > maxDiffWidth+2 {
			t.Errorf("a line of %d characters", n)
		}
	}
}

func FuzzDifference(f *testing.F) {
	f.Add("a\nb\n", "a\nc\r\n")
	f.Add(strings.Repeat("x", 300)+"é", strings.Repeat("x", 300)+"\xff```")
	f.Fuzz(func(t *testing.T, before, after string) {
		got := Difference(Text{"T", before}, Text{"T", after})
		if again := Difference(Text{"T", before}, Text{"T", before}); again != "" {
			t.Fatalf("a text differs from itself: %q", again)
		}
		if got != "" && (!utf8.ValidString(got) || !strings.Contains(got, "\n+") && !strings.Contains(got, "\n-")) {
			t.Fatalf("difference %q", got)
		}
	})
}
