package gates_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/gates"
)

// lcovOf returns a record in which line 2 of a file ran, and so did or did not line 6.
func lcovOf(file, hits string) string {
	return "SF:" + file + "\nDA:2,1\nDA:6," + hits + "\nend_of_record\n"
}

// jacocoOf returns a report in which line 6 of each file of a package ran or not.
func jacocoOf(pkg, ci string, files ...string) string {
	text := `<report name="all"><package name="` + pkg + `">`
	for _, file := range files {
		text += `<sourcefile name="` + file + `"><line nr="6" mi="1" ci="` + ci + `"/></sourcefile>`
	}
	return text + "</package></report>"
}

// unclear is a case in which a name in a report does not lead to exactly one file.
type unclear struct {
	gates   gates.Gates // empty means 1 % coverage
	changed []string
	tracked []string // in addition
	files   []string // pairs of path and content
	want    string   // the text, empty if the gate is reached
	figure  string   // if the gate is reached; empty means 50 %
}

func testUnclear(t *testing.T, tests map[string]unclear) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !tt.gates.Enabled() {
				tt.gates.Coverage = 1
			}
			got := judged(t, gates.Input{Gates: tt.gates, Changed: changed(tt.changed...), Tracked: append(tt.tracked, tt.changed...), Tree: tree(tt.files...)})
			if got.Text != tt.want || got.Failed != (tt.want != "") || got.Failed != strings.Contains(got.Name, ": unknown (") {
				t.Errorf("got %+v, want %q", got, tt.want)
			}
			if figure := cmp.Or(tt.figure, "50 %"); !got.Failed && !strings.Contains(got.Name, ": "+figure+" (") {
				t.Errorf("got %+v, want %s", got, figure)
			}
		})
	}
}

// A name that several files of the repository have says nothing about any of them, so it fails the gate if one of them was changed.
func TestAmbiguousNamesFail(t *testing.T) {
	t.Parallel()
	const a, b, other = "a/src/main/java/org/example/calc/Div.java", "b/src/main/java/org/example/calc/Div.java", "a/src/main/java/org/example/calc/Mul.java"
	one := jacocoOf("org/example/calc", "0", "Div.java")
	all := strings.Replace(one, "</package>", `<sourcefile name="Mul.java"><line nr="6" mi="0" ci="3"/></sourcefile></package>`, 1)
	want := "The report all/target/jacoco.xml names \"org/example/calc/Div.java\", which may be several files: " + a + ", " + b + "."
	testUnclear(t, map[string]unclear{
		"both were changed":       {changed: []string{a, b}, files: []string{"all/target/jacoco.xml", one}, want: want},
		"beside one that is sure": {changed: []string{a, b, other}, files: []string{"all/target/jacoco.xml", all}, want: want},
		"one was changed":         {changed: []string{b, other}, tracked: []string{a}, files: []string{"all/target/jacoco.xml", all}, want: want},
		"beside a good report":    {changed: []string{b, other}, tracked: []string{a}, files: []string{"a/target/jacoco.xml", all, "all/target/jacoco.xml", one}, want: want},
		"none was changed":        {changed: []string{other}, tracked: []string{a, b}, files: []string{"all/target/jacoco.xml", all}, figure: "100 %"},
		"PIT": {gates: gates.Gates{Mutation: 1}, changed: []string{a}, tracked: []string{b}, files: []string{"mutations.xml", pitReport},
			want: "The report mutations.xml names \"org/example/calc/Div.java\", which may be several files: " + a + ", " + b + "."},
	})
}

// coberturaOf returns a report with sources and classes of files, in which line 6 did not run.
func coberturaOf(sources []string, files ...string) string {
	text := "<coverage><sources>"
	for _, source := range sources {
		text += "<source>" + source + "</source>"
	}
	text += "</sources>"
	for _, file := range files {
		text += `<class filename="` + file + `"><lines><line number="2" hits="1"/><line number="6" hits="0"/></lines></class>`
	}
	return text + "</coverage>"
}

// A file that several sources of a Cobertura report have may be each of them, unless the sources are the same.
func TestAmbiguousSourcesFail(t *testing.T) {
	t.Parallel()
	testUnclear(t, map[string]unclear{
		"absolute": {changed: []string{"b/util.py"}, tracked: []string{"a/util.py"}, files: []string{"coverage.xml", coberturaOf([]string{root + "/a", root + "/b"}, "util.py")},
			want: `The report coverage.xml names "util.py", which may be several files: a/util.py, b/util.py.`},
		"relative": {changed: []string{"a/util.py"}, tracked: []string{"b/util.py"}, files: []string{"out/coverage.xml", coberturaOf([]string{"b", "a"}, "util.py")},
			want: `The report out/coverage.xml names "util.py", which may be several files: a/util.py, b/util.py.`},
		"the root and a folder": {changed: []string{"src/util.py"}, tracked: []string{"util.py"}, files: []string{"coverage.xml", coberturaOf([]string{root, "src"}, "util.py")},
			want: `The report coverage.xml names "util.py", which may be several files: src/util.py, util.py.`},
		"the same twice":     {changed: []string{"a/util.py"}, tracked: []string{"b/util.py"}, files: []string{"coverage.xml", coberturaOf([]string{root + "/a", "a", root + "/c"}, "util.py")}},
		"other files":        {changed: []string{"a/main.py"}, tracked: []string{"a/util.py", "b/util.py"}, files: []string{"coverage.xml", coberturaOf([]string{"a", "b"}, "util.py", "main.py")}},
		"one source has one": {changed: []string{"b/util.py"}, tracked: []string{"c/util.py"}, files: []string{"coverage.xml", coberturaOf([]string{"a", "b"}, "util.py")}},
	})
}

// Of several Go modules with one path a cover profile is about the one nearest to it.
func TestGoModulesOfOnePath(t *testing.T) {
	t.Parallel()
	const mod, profile = "module example.org/twin\n", "mode: set\nexample.org/twin/x.go:2.2,2.20 1 1\nexample.org/twin/x.go:6.2,6.20 1 0\n"
	with := func(path string, mods ...string) []string {
		files := []string{path, profile}
		for _, name := range mods {
			files = append(files, name, mod)
		}
		return files
	}
	testUnclear(t, map[string]unclear{
		"the report is in one of them": {changed: []string{"b/x.go"}, tracked: []string{"a/go.mod", "a/x.go", "b/go.mod"}, files: with("b/out/cover.out", "a/go.mod", "b/go.mod")},
		"in neither of them": {changed: []string{"b/x.go"}, tracked: []string{"a/go.mod", "a/x.go", "b/go.mod"}, files: with("cover.out", "a/go.mod", "b/go.mod"),
			want: `The report cover.out names "example.org/twin/x.go", which may be several files: a/x.go, b/x.go.`},
		"in the folder of both": {changed: []string{"m/a/x.go"}, tracked: []string{"m/a/go.mod", "m/b/x.go", "m/b/go.mod"}, files: with("m/cover.out", "m/a/go.mod", "m/b/go.mod"),
			want: `The report m/cover.out names "example.org/twin/x.go", which may be several files: m/a/x.go, m/b/x.go.`},
		"only one has the file": {changed: []string{"b/x.go"}, tracked: []string{"a/go.mod", "b/go.mod"}, files: with("a/cover.out", "a/go.mod", "b/go.mod")},
		"neither was changed":   {changed: []string{"c/y.go"}, tracked: []string{"a/go.mod", "a/x.go", "b/go.mod", "b/x.go"}, files: with("cover.out", "a/go.mod", "b/go.mod"), figure: "the reports list no changed line"},
	})
}

// A name that leads to no file fails the gate if its report has no other, or if it may mean a changed file that the report does not name.
func TestUnresolvedNamesFail(t *testing.T) {
	t.Parallel()
	const x, y, nothing = "src/x.js", "src/y.js", "The reports name no file of the repository."
	good := lcovOf(y, "0")
	foreign := func(report, name string) string {
		return "The report " + report + ` is about no file of the repository. It names "` + name + `", for example.`
	}
	perhaps := func(report, name, file string) string {
		return "The report " + report + ` names "` + name + `", which is no file of the repository, but may be ` + file + "."
	}
	java := strings.Replace(jacocoOf("org/example", "0", "Foo.kt"), "</package>", `<sourcefile name="Bar.kt"><line nr="2" mi="0" ci="3"/></sourcefile></package>`, 1)
	both := append([]string{"src/main/kotlin/Foo.kt"}, "src/main/kotlin/org/example/Bar.kt")
	mutants := strings.ReplaceAll(pitReport, "</mutations>", `<mutation detected="true"><sourceFile>Foo.kt</sourceFile><mutatedClass>org.example.Foo</mutatedClass><lineNumber>2</lineNumber></mutation></mutations>`)
	testUnclear(t, map[string]unclear{
		"a report beside a good one":       {changed: []string{x, y}, files: []string{"a/lcov.info", lcovOf("/app/x.js", "0"), "b/lcov.info", good}, want: foreign("a/lcov.info", "/app/x.js")},
		"a report of unchanged files":      {changed: []string{y}, files: []string{"a/lcov.info", good, "b/lcov.info", lcovOf("/app/z.js", "0")}, want: foreign("b/lcov.info", "/app/z.js")},
		"a report that names nothing":      {changed: []string{y}, files: []string{"a/lcov.info", good, "b/lcov.info", "TN:\n", "coverage.xml", "<coverage/>"}},
		"only reports that name nothing":   {changed: []string{y}, files: []string{"b/lcov.info", "TN:\n", "coverage.xml", "<coverage/>", "jacoco.xml", "<report/>", "cover.out", "mode: set\n"}, want: nothing},
		"outside of its package's folders": {changed: both, files: []string{"jacoco.xml", java}, want: perhaps("jacoco.xml", "org/example/Foo.kt", both[0])},
		"the other file has no package":    {changed: both[1:], tracked: both[:1], files: []string{"jacoco.xml", java}, figure: "100 %"},
		"in LCOV":                          {changed: []string{x, y}, files: []string{"lcov.info", good + lcovOf("/app/x.js", "1")}, want: perhaps("lcov.info", "/app/x.js", x)},
		"with backslashes":                 {changed: []string{x, y}, files: []string{"lcov.info", good + lcovOf(`C:\app\x.js`, "1")}, want: perhaps("lcov.info", `C:\\app\\x.js`, x)},
		"too long":                         {changed: []string{x, y}, files: []string{"lcov.info", good + lcovOf(strings.Repeat("/app", 2000)+"/x.js", "1")}, want: perhaps("lcov.info", strings.Repeat("/app", 49)+"/…", x)},
		"named in another report":          {changed: []string{x, y}, files: []string{"a/lcov.info", good + lcovOf("/app/x.js", "0"), "b/lcov.info", lcovOf(x, "1")}, want: perhaps("a/lcov.info", "/app/x.js", x)},
		"named, too":                       {changed: []string{y}, files: []string{"lcov.info", lcovOf("/usr/lib/y.js", "0") + good}},
		"another name":                     {changed: []string{y}, files: []string{"lcov.info", lcovOf("/usr/lib/x.js", "0") + good}},
		"in Cobertura":                     {changed: []string{"a/x.py", "a/y.py"}, files: []string{"coverage.xml", coberturaOf([]string{"/app/a"}, "a/y.py", "b/x.py")}, want: perhaps("coverage.xml", "b/x.py", "a/x.py")},
		"in a profile of Go": {changed: []string{"x/a.go", "x/b.go"}, tracked: []string{"go.mod"}, want: perhaps("cover.out", "example.org/other/a.go", "x/a.go"),
			files: []string{"cover.out", "mode: set\nexample.org/calc/x/b.go:2.2,2.20 1 1\nexample.org/other/a.go:2.2,2.20 1 0\n"}},
		"PIT": {gates: gates.Gates{Mutation: 1}, changed: []string{"org/example/calc/Div.java", both[0]}, files: []string{"mutations.xml", mutants}, want: perhaps("mutations.xml", "org/example/Foo.kt", both[0])},
	})
}
