package gates_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/gates"
)

// fuzz judges a report of any content under a name that the default patterns match.
func fuzz(f *testing.F, gate gates.Gates, name string, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed)
	}
	files := []string{"src/div.js", "src/div.py", "div/div.go", "src/main/java/org/example/calc/Div.java"}
	f.Fuzz(func(t *testing.T, report string) {
		for _, g := range gates.Evaluate(t.Context(), gates.Input{
			Gates: gate, Changed: changed(files...), Tracked: files, Tree: tree(name, report), Roots: []string{root},
		}) {
			if g.Name == "" || strings.Contains(g.Name, "\n") || g.Failed != (g.Text != "") || len(g.Text) > 6000 || !utf8.ValidString(g.Text) {
				t.Errorf("got %+v", g)
			}
			if strings.ContainsFunc(g.Text, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x202e }) {
				t.Errorf("invisible characters in %q", g.Text)
			}
			rest := strings.Split(g.Text, "\n")[1:]
			if slices.ContainsFunc(rest, func(l string) bool {
				return !strings.HasPrefix(l, "and ") && !slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(l, f+":") })
			}) {
				t.Errorf("a line names no changed file: %q", g.Text)
			}
		}
	})
}

func FuzzLCOV(f *testing.F) {
	fuzz(f, gates.Gates{Coverage: 100}, "lcov.info", lcovReport, "SF:../../x\nDA:1,-1\nend_of_record\n", "TN:\nDA:1,1\n")
}

func FuzzCobertura(f *testing.F) {
	fuzz(f, gates.Gates{Coverage: 100}, "coverage.xml", coberturaReport, "<coverage><source>/</source></coverage>")
}

func FuzzJaCoCo(f *testing.F) {
	fuzz(f, gates.Gates{Coverage: 100}, "jacoco.xml", jacocoReport, `<report><package name="../.."><sourcefile name="x"/></package></report>`)
}

func FuzzGoProfile(f *testing.F) {
	fuzz(f, gates.Gates{Coverage: 100}, "cover.out", goReport, "mode: count\nx:1.1,9999999999.1 1 1\n")
}

func FuzzPIT(f *testing.F) {
	fuzz(f, gates.Gates{Mutation: 100}, "mutations.xml", pitReport, "<mutations><mutation detected='false'/></mutations>")
}

func FuzzParseDiff(f *testing.F) {
	f.Add(patch)
	f.Add("+++ b/x\n@@ -1,2 +3,4 @@\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := gates.ParseDiff([]byte(text))
		if err != nil {
			return
		}
		for name, l := range got {
			if numbers := l.Numbers(); name == "" || len(numbers) == 0 || numbers[0] < 1 || !slices.IsSorted(numbers) || len(slices.Compact(numbers)) != len(l.Numbers()) {
				t.Errorf("%q has %v", name, numbers)
			}
		}
	})
}
