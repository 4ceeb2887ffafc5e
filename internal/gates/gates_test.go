package gates_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/errand-bot/errand/internal/gates"
)

// root is the absolute path of the checkout in reports.
const root = "/home/agent/checks/check-1/tree"

// The reports below say the same in each format about a file with the changed lines 2 to 6: 2, 3 and 5 ran, 6 did not, 4 has no code.
const (
	lcovReport = "TN:\nSF:src/div.js\nFN:2,div\nFNDA:1,div\nDA:1,1\nDA:2,1\nDA:3,7\nDA:5,1,checksum\nDA:6,0\nLF:5\nLH:4\nBRDA:3,0,0,-\nend_of_record\n"

	coberturaReport = `<?xml version="1.0" ?>
<!DOCTYPE coverage SYSTEM 'http://cobertura.sourceforge.net/xml/coverage-04.dtd'>
<coverage version="7.4" timestamp="1700000000000" lines-valid="5" lines-covered="4" line-rate="0.8">
 <sources><source>` + root + `/src</source></sources>
 <packages><package name="." line-rate="0.8"><classes>
  <class name="div.py" filename="div.py" complexity="0" line-rate="0.8"><methods><method name="div" signature=""><lines><line number="2" hits="1"/></lines></method></methods>
   <lines><line number="1" hits="1"/><line number="2" hits="1"/><line number="3" hits="7"/><line number="5" hits="1" branch="true" condition-coverage="50% (1/2)"/><line number="6" hits="0"/></lines>
  </class>
 </classes></package></packages>
</coverage>`

	jacocoReport = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><!DOCTYPE report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "report.dtd">
<report name="calc"><sessioninfo id="vm-1" start="1" dump="2"/><package name="org/example/calc"><class name="org/example/calc/Div" sourcefilename="Div.java">
<method name="div" desc="(II)I" line="2"><counter type="LINE" missed="1" covered="4"/></method></class>
<sourcefile name="Div.java"><line nr="1" mi="0" ci="3" mb="0" cb="0"/><line nr="2" mi="0" ci="2" mb="0" cb="0"/><line nr="3" mi="0" ci="2" mb="0" cb="0"/>
<line nr="5" mi="2" ci="1" mb="1" cb="1"/><line nr="6" mi="4" ci="0" mb="0" cb="0"/><counter type="LINE" missed="1" covered="4"/></sourcefile></package></report>`

	goReport = "mode: set\nexample.org/calc/div/div.go:1.30,3.12 2 1\nexample.org/calc/div/div.go:4.2,5.10 1 1\nexample.org/calc/div/div.go:6.2,6.20 1 0\n"

	pitReport = `<?xml version="1.0" encoding="UTF-8"?>
<mutations partial="true">
<mutation detected='true' status='KILLED' numberOfTestsRun='1'><sourceFile>Div.java</sourceFile><mutatedClass>org.example.calc.Div</mutatedClass><mutatedMethod>div</mutatedMethod><methodDescription>(II)I</methodDescription><lineNumber>3</lineNumber><mutator>org.pitest.mutationtest.engine.gregor.mutators.MathMutator</mutator><indexes><index>5</index></indexes><blocks><block>0</block></blocks><killingTest>DivTest</killingTest><description>Replaced integer division with multiplication</description></mutation>
<mutation detected='true' status='TIMED_OUT' numberOfTestsRun='1'><sourceFile>Div.java</sourceFile><mutatedClass>org.example.calc.Div</mutatedClass><lineNumber>5</lineNumber><mutator>org.pitest.M</mutator><description>a loop</description></mutation>
<mutation detected='true' status='KILLED' numberOfTestsRun='1'><sourceFile>Div.java</sourceFile><mutatedClass>org.example.calc.Div$Inner</mutatedClass><lineNumber>5</lineNumber><mutator>org.pitest.M</mutator><description>another</description></mutation>
<mutation detected='false' status='NO_COVERAGE' numberOfTestsRun='0'><sourceFile>Div.java</sourceFile><mutatedClass>org.example.calc.Div</mutatedClass><lineNumber>6</lineNumber><mutator>org.pitest.NegateConditionalsMutator</mutator><description>negated conditional</description></mutation>
<mutation detected='false' status='SURVIVED' numberOfTestsRun='2'><sourceFile>Div.java</sourceFile><mutatedClass>org.example.calc.Div</mutatedClass><lineNumber>60</lineNumber><mutator>org.pitest.M</mutator><description>not changed</description></mutation>
</mutations>`
)

// changed returns the lines 2 to 6 of files, of which 4 has no statement.
func changed(files ...string) gates.Changes {
	out := gates.Changes{}
	for _, file := range files {
		out[file] = &gates.Lines{}
		for n := 2; n <= 6; n++ {
			text := "x := 1"
			if n == 4 {
				text = "\t{"
			}
			out[file].Add(n, text)
		}
	}
	return out
}

// tree returns a checkout with reports, by their paths.
func tree(pairs ...string) fstest.MapFS {
	out := fstest.MapFS{"go.mod": {Data: []byte("module example.org/calc\n\ngo 1.26\n")}}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

// judged evaluates one gate.
func judged(t *testing.T, in gates.Input) gates.Result {
	t.Helper()
	in.Roots = append(in.Roots, root)
	got := gates.Evaluate(t.Context(), in)
	if len(got) != 1 || in.Gates.Count() != 1 {
		t.Fatalf("%d results of %d gates", len(got), in.Gates.Count())
	}
	return got[0]
}

func TestFormats(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ file, path, report string }{
		"LCOV":                      {"src/div.js", "coverage/lcov.info", lcovReport},
		"LCOV with Windows' ends":   {"src/div.js", "coverage/lcov.info", strings.ReplaceAll(lcovReport, "\n", "\r\n")},
		"LCOV, absolute":            {"src/div.js", "lcov.info", strings.Replace(lcovReport, "src/", root+"/src/", 1)},
		"LCOV of a module":          {"web/src/div.js", "web/coverage/lcov.info", lcovReport},
		"Cobertura":                 {"src/div.py", "coverage.xml", coberturaReport},
		"Cobertura, relative":       {"src/div.py", "out/coverage.xml", strings.Replace(coberturaReport, root+"/src", "src", 1)},
		"Cobertura with a mark":     {"src/div.py", "cobertura.xml", "\ufeff" + coberturaReport},
		"JaCoCo":                    {"calc/src/main/java/org/example/calc/Div.java", "calc/target/site/jacoco/jacoco.xml", jacocoReport},
		"JaCoCo in the root":        {"org/example/calc/Div.java", "build/reports/jacoco/test/jacocoTestReport.xml", jacocoReport},
		"Go":                        {"div/div.go", "coverage.out", goReport},
		"Go, the same code twice":   {"div/div.go", "cover.out", goReport + "example.org/calc/div/div.go:6.2,6.20 1 0\n"},
		"Go, by a path of the disk": {"div/div.go", "cover.out", strings.ReplaceAll(goReport, "example.org/calc", root)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := gates.Input{Changed: changed(tt.file, "README.md"), Tracked: []string{"README.md", "go.mod", tt.file}, Tree: tree(tt.path, tt.report)}
			in.Gates.Coverage = 75
			if diff := cmp.Diff(gates.Result{Name: "coverage of changed lines: 75 % (gate 75 %)"}, judged(t, in)); diff != "" {
				t.Errorf("at the gate (-want +got):\n%s", diff)
			}
			in.Gates.Coverage = 76
			want := gates.Result{Name: "coverage of changed lines: 75 % (gate 76 %)", Failed: true,
				Text: "Tests cover 3 of the 4 changed lines with code; at least 76 % are required. Add tests for these lines:\n" + tt.file + ": 6"}
			if diff := cmp.Diff(want, judged(t, in)); diff != "" {
				t.Errorf("below the gate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMutants(t *testing.T) {
	t.Parallel()
	const file = "src/main/java/org/example/calc/Div.java"
	in := gates.Input{Changed: changed(file), Tracked: []string{file}, Tree: tree("target/pit-reports/mutations.xml", pitReport)}
	in.Gates.Mutation = 75
	if diff := cmp.Diff(gates.Result{Name: "detected mutants on changed lines: 75 % (gate 75 %)"}, judged(t, in)); diff != "" {
		t.Errorf("at the gate (-want +got):\n%s", diff)
	}
	in.Gates.Mutation = 76
	want := gates.Result{Name: "detected mutants on changed lines: 75 % (gate 76 %)", Failed: true,
		Text: "Tests detect 3 of the 4 mutants on changed lines; at least 76 % are required. Add tests that fail with these mutants:\n" + file + ":6: no coverage: negated conditional"}
	if diff := cmp.Diff(want, judged(t, in)); diff != "" {
		t.Errorf("below the gate (-want +got):\n%s", diff)
	}
	in.Gates.Coverage = 50
	if got := gates.Evaluate(t.Context(), in); len(got) != 2 || !got[0].Failed || !strings.HasPrefix(got[0].Text, "No command of check wrote a report about coverage") {
		t.Errorf("the report about mutants served for coverage: %+v", got)
	}
}

// A gate passes by a report about the commit's own lines, and never by the lack of one.
func TestNothingPassesByAbsence(t *testing.T) {
	t.Parallel()
	const file = "src/div.js"
	link := tree()
	link["lcov.info"] = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
	many := tree()
	for i := range 101 {
		many[fmt.Sprintf("m%d/lcov.info", i)] = &fstest.MapFile{Data: []byte(lcovReport)}
	}
	tests := map[string]struct {
		tree    fstest.MapFS
		tracked []string
		reports []string
		unrun   bool
		want    string // the beginning of the text
	}{
		"no report":           {tree: tree(), want: "No command of check wrote a report about coverage (LCOV, Cobertura, JaCoCo or a Go cover profile); searched for **/lcov.info, "},
		"in another place":    {tree: tree("lcov.info", lcovReport), reports: []string{"build/*.info"}, want: "No command of check wrote a report about coverage (LCOV, Cobertura, JaCoCo or a Go cover profile); searched for build/*.info."},
		"in node_modules":     {tree: tree("node_modules/a/lcov.info", lcovReport), want: "No command of check wrote"},
		"part of the commit":  {tree: tree("lcov.info", lcovReport), tracked: []string{"lcov.info"}, reports: []string{"*.info"}, want: "No command of check wrote a report about coverage (LCOV, Cobertura, JaCoCo or a Go cover profile); searched for *.info. lcov.info does not count: it is part of the commit"},
		"committed and unrun": {tree: tree("lcov.info", lcovReport), tracked: []string{"lcov.info"}, unrun: true, want: "No command of check wrote"},
		"a link":              {tree: link, reports: []string{"*.info"}, want: "No command of check wrote a report about coverage (LCOV, Cobertura, JaCoCo or a Go cover profile); searched for *.info. lcov.info does not count: it is not a regular file."},
		"of other files":      {tree: tree("lcov.info", strings.Replace(lcovReport, "src/div.js", "/app/src/div.js", 1)), want: "The report lcov.info is about no file of the repository. It names \"/app/src/div.js\", for example."},
		"empty":               {tree: tree("lcov.info", ""), want: "The report lcov.info cannot be used: it is empty."},
		"of another format":   {tree: tree("lcov.info", "{}"), want: "The report lcov.info cannot be used: its format is none of LCOV"},
		"too many":            {tree: many, want: "More than 100 files match **/lcov.info"},
		"one of two broken":   {tree: tree("a/lcov.info", lcovReport, "b/lcov.info", "TN:\nSF:x"), want: "The report b/lcov.info cannot be used: it ends within a record."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judged(t, gates.Input{Gates: gates.Gates{Coverage: 1, Reports: tt.reports}, Changed: changed(file), Tracked: append(tt.tracked, file), Tree: tt.tree, Unrun: tt.unrun})
			if got.Name != "coverage of changed lines: unknown (gate 1 %)" || !got.Failed || !strings.HasPrefix(got.Text, tt.want) {
				t.Errorf("got %+v, want %q", got, tt.want)
			}
		})
	}
}

func TestOtherResults(t *testing.T) {
	t.Parallel()
	in := gates.Input{Gates: gates.Gates{Coverage: 85}, Changed: changed("README.md"), Tracked: []string{"README.md", "src/div.js"}, Tree: tree("lcov.info", lcovReport)}
	if diff := cmp.Diff(gates.Result{Name: "coverage of changed lines: the reports list no changed line (gate 85 %)"}, judged(t, in)); diff != "" {
		t.Errorf("no changed line has code (-want +got):\n%s", diff)
	}
	in.Tree, in.Unrun = tree(), true
	want := gates.Result{Name: "coverage of changed lines (gate 85 %)", Skipped: "there is no report, because commands had nothing to run on"}
	if diff := cmp.Diff(want, judged(t, in)); diff != "" {
		t.Errorf("the command had nothing to run on (-want +got):\n%s", diff)
	}
	both := gates.Gates{Coverage: 85, Mutation: 70}
	ignored := cmpopts.IgnoreFields(gates.Result{}, "Name")
	if diff := cmp.Diff([]gates.Result{{Skipped: "why"}, {Skipped: "why"}}, gates.Skip(both, "why"), ignored); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]gates.Result{{Failed: true, Text: "why"}, {Failed: true, Text: "why"}}, gates.Fail(both, "why"), ignored); diff != "" {
		t.Error(diff)
	}
}

// Several reports are about one commit: what one of them calls covered is covered.
func TestReportsAreCombined(t *testing.T) {
	t.Parallel()
	const file = "src/div.js"
	in := gates.Input{Gates: gates.Gates{Coverage: 100}, Changed: changed(file), Tracked: []string{file},
		Tree: tree("unit/lcov.info", lcovReport, "browser/lcov.info", "SF:src/div.js\nDA:6,1\nDA:2,0\nend_of_record\n")}
	if got := judged(t, in); got.Failed {
		t.Errorf("got %+v", got)
	}
}

// Names in reports lead to one file of the repository or to none.
func TestNames(t *testing.T) {
	t.Parallel()
	const java = "/src/main/java/org/example/calc/Div.java"
	tests := map[string]struct {
		tracked []string
		path    string
		report  string
		want    string // the file with the line
	}{
		"the module of the report":          {[]string{"a" + java, "b" + java}, "b/target/jacoco.xml", jacocoReport, "b" + java},
		"the end of a word is not a folder": {[]string{"a/xorg/example/calc/Div.java"}, "jacoco.xml", jacocoReport, ""},
		"nearest to the report":             {[]string{"src/div.js", "web/src/div.js"}, "web/coverage/lcov.info", lcovReport, "web/src/div.js"},
		"out of the checkout":               {[]string{"src/div.js"}, "lcov.info", "SF:../../src/div.js\nDA:6,0\nend_of_record\n", ""},
		"back into the checkout":            {[]string{"src/div.js"}, "out/lcov.info", "SF:../src/div.js\nDA:6,0\nend_of_record\n", "src/div.js"},
		"backslashes":                       {[]string{"src/div.js"}, "lcov.info", "SF:src\\div.js\nDA:6,0\nend_of_record\n", "src/div.js"},
		"another checkout":                  {[]string{"src/div.js"}, "lcov.info", "SF:" + root + "2/src/div.js\nDA:6,0\nend_of_record\n", ""},
		"a nested module of Go":             {[]string{"go.mod", "div/go.mod", "div/div.go"}, "cover.out", "mode: set\nexample.org/calc/div/div.go:6.2,6.20 1 0\n", "div/div.go"},
		"a module of Go by its own name":    {[]string{"go.mod", "tool/go.mod", "tool/x/div.go"}, "cover.out", "mode: set\nexample.org/tool/x/div.go:6.2,6.20 1 0\n", "tool/x/div.go"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := tree(tt.path, tt.report, "tool/go.mod", "module example.org/tool\n", "div/go.mod", "module example.org/calc/div\n")
			got := judged(t, gates.Input{Gates: gates.Gates{Coverage: 100}, Changed: changed(tt.tracked...), Tracked: tt.tracked, Tree: files})
			if tt.want == "" {
				if !strings.Contains(got.Text, " is about no file of the repository. It names ") {
					t.Errorf("got %+v", got)
				}
			} else if !strings.HasSuffix(got.Text, "\n"+tt.want+": 6") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Reports by hostile or broken programs end as a sentence.
func TestHostileReports(t *testing.T) {
	t.Parallel()
	bomb := `<?xml version="1.0"?><!DOCTYPE coverage [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]><coverage><sources><source>`
	tests := map[string]struct{ report, want string }{
		"an entity":              {bomb + "&b;</source></sources></coverage>", "it is not complete, valid XML: "},
		"a file as an entity":    {bomb + "&f;</source></sources></coverage>", "it is not complete, valid XML: "},
		"deep":                   {"<coverage>" + strings.Repeat("<a>", 200_000), "its elements are nested too deep"},
		"a long attribute":       {`<coverage><class filename="` + strings.Repeat("a", 2<<20) + `"/></coverage>`, "it has an element that is longer than 1024 KiB"},
		"a long text":            {"<coverage><source>" + strings.Repeat("a", 2<<20), "it has an element that is longer than 1024 KiB"},
		"cut":                    {coberturaReport[:len(coberturaReport)-20], "it is not complete, valid XML: "},
		"another encoding":       {`<?xml version="1.0" encoding="UTF-16"?><coverage/>`, "its encoding is \"UTF-16\" instead of UTF-8"},
		"another XML":            {"<html><body/></html>", "its first element is \"html\", so it is none of Cobertura, JaCoCo and PIT"},
		"no element":             {"<!-- nothing -->", "it has no XML element"},
		"Clover":                 {`<coverage generated="1"><project><file name="a"><line num="1" count="1"/></file></project></coverage>`, "line 1: a line belongs to no class"},
		"no number":              {`<coverage><class filename="a"><line number="x" hits="1"/></class></coverage>`, `line 1: "x" is not the number of a line`},
		"no hits":                {`<report><package name="p"><sourcefile name="a"><line nr="1"/></sourcefile></package></report>`, `line 1: "" is not a number of runs`},
		"a line without a file":  {"TN:\nDA:1,1\n", "line 2 belongs to no file"},
		"a file within a file":   {"SF:a\nSF:b\n", "line 2 begins a file before the last one ended"},
		"a line without runs":    {"SF:a\nDA:1\n", "line 2 has no number of runs"},
		"a long line":            {"TN:\nSF:" + strings.Repeat("a", 2<<20), "line 2 is longer than 1024 KiB"},
		"a bad block":            {"mode: set\nnonsense\n", "line "},
		"a long line of Go":      {"mode: set\n" + strings.Repeat("a", 70<<10), "it has a line that is too long"},
		"too large":              {"TN:\n" + strings.Repeat("#\n", 17<<20), "it is larger than 32 MiB"},
		"an unfinished mutation": {"<mutations><mutation detected='maybe'><lineNumber>1</lineNumber></mutation></mutations>", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := gates.Input{Changed: changed("a"), Tracked: []string{"a"}, Tree: tree("out/r\n`x`", tt.report)}
			in.Gates = gates.Gates{Coverage: 1, Mutation: 1, Reports: []string{"out/*"}}
			got := gates.Evaluate(t.Context(), in)
			if tt.want == "" {
				if text := got[1].Text; text != "The report \"out/r\\n`x`\" cannot be used: line 1: a mutation does not say whether it was detected." {
					t.Errorf("got %q", text)
				}
				return
			}
			if text := got[0].Text; !strings.HasPrefix(text, "The report \"out/r\\n`x`\" cannot be used: "+tt.want) || strings.Contains(text, "\n") || len(text) > 1000 {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// A block of a hostile profile has more lines than anybody can count, and many blocks cover the same lines.
func TestEndlessBlocks(t *testing.T) {
	t.Parallel()
	report := "mode: count\n" + strings.Repeat("a.go:1.1,4611686018427387904.1 1 4611686018427387904\n", 1000)
	in := gates.Input{Gates: gates.Gates{Coverage: 100}, Changed: changed("a.go"), Tracked: []string{"a.go"}, Tree: tree("cover.out", report)}
	if got := judged(t, in); !strings.HasPrefix(got.Name, "coverage of changed lines: ") {
		t.Errorf("got %+v", got)
	}
}

// The text fits into a comment and a prompt, with the files that lack most first.
func TestTextIsBounded(t *testing.T) {
	t.Parallel()
	in := gates.Input{Gates: gates.Gates{Coverage: 100, Mutation: 100}, Changed: gates.Changes{}}
	var lcov, pit strings.Builder
	pit.WriteString("<mutations>")
	for i := range 300 {
		file := fmt.Sprintf("src/%03d.js", i)
		in.Tracked = append(in.Tracked, file)
		in.Changed[file] = &gates.Lines{}
		fmt.Fprintf(&lcov, "SF:%s\n", file)
		for n := 1; n <= 300; n++ {
			in.Changed[file].Add(n*2, "x")
			if i == 7 || n < 10 {
				fmt.Fprintf(&lcov, "DA:%d,0\n", n*2)
			}
		}
		lcov.WriteString("end_of_record\n")
		fmt.Fprintf(&pit, "<mutation detected='false' status='SURVIVED'><mutatedClass>X</mutatedClass><sourceFile>%s</sourceFile><lineNumber>2</lineNumber><description>%s</description></mutation>",
			file, strings.Repeat("long\n```", 1000))
	}
	pit.WriteString("</mutations>")
	in.Tree = tree("lcov.info", lcov.String(), "mutations.xml", pit.String())
	got := gates.Evaluate(t.Context(), in)
	for _, r := range got {
		if len(r.Text) > 6000 || !r.Failed {
			t.Errorf("%d bytes, %+v", len(r.Text), r)
		}
	}
	if text := got[0].Text; !strings.Contains(text, "these lines:\nsrc/007.js: 2, 4, ") || !strings.Contains(text, "\nsrc/000.js: 2, 4, 6, 8, 10, 12, 14, 16, 18\n") || !strings.HasSuffix(text, " more lines") {
		t.Errorf("got %s", text)
	}
	if text := got[1].Text; !strings.HasSuffix(text, " more mutants") || strings.Contains(text, "\n```") {
		t.Errorf("got %s", text)
	}
}
