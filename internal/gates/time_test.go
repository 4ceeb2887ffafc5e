package gates_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/gates"
)

// Reading reports ends with a sentence when its time is over, whatever takes it.
func TestReadingHasATimeLimit(t *testing.T) {
	t.Parallel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for name, files := range map[string][]string{
		"a good report": {"lcov.info", lcovReport},
		"no report":     {},
		"broken":        {"lcov.info", "TN:\nDA:1,1\n"},
	} {
		in := gates.Input{Gates: gates.Gates{Coverage: 1, Mutation: 1}, Changed: changed("src/div.js"), Tracked: []string{"src/div.js"}, Tree: tree(files...)}
		for _, got := range gates.Evaluate(late, in) {
			if !got.Failed || got.Text != "The reports were not read to their end, because that takes longer than 2 minutes." {
				t.Errorf("%s: got %+v", name, got)
			}
		}
	}
}

// A small report must not cause much work: names are looked for in few sources, and each once.
func TestSources(t *testing.T) {
	t.Parallel()
	list := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("s%d", i))
		}
		return out
	}
	testUnclear(t, map[string]unclear{
		"as many as allowed": {changed: []string{"s49/a.py"}, files: []string{"coverage.xml", coberturaOf(list(50), "a.py")}},
		"the same again":     {changed: []string{"s49/a.py"}, files: []string{"coverage.xml", coberturaOf(append(list(50), list(50)...), "a.py")}},
		"too many": {changed: []string{"s50/a.py"}, files: []string{"coverage.xml", coberturaOf(list(51), "a.py")},
			want: "The report coverage.xml cannot be used: line 1: it has more than 50 source folders."},
		"after their class": {changed: []string{"s0/a.py"}, tracked: []string{"a.py"},
			files: []string{"coverage.xml", strings.Replace(coberturaOf(nil, "a.py", "a.py"), "</class>", "</class><source>s0</source>", 1)}},
	})
}
