package scan_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/errand-bot/errand/internal/scan"
)

var update = flag.Bool("update", false, "write the golden files")

// treeOf reads a small tree; the contents of files that Scan does not ask for are left out.
func treeOf(a *txtar.Archive) scan.Tree {
	t := scan.Tree{Files: map[string]string{}}
	for _, f := range a.Files {
		t.Paths = append(t.Paths, f.Name)
	}
	wanted := scan.Wanted(t.Paths)
	for _, f := range a.Files {
		if slices.Contains(wanted, f.Name) {
			t.Files[f.Name] = string(f.Data)
		}
	}
	return t
}

// summary is what a report says apart from the file.
func summary(r scan.Report) string {
	var b strings.Builder
	for _, l := range r.Languages {
		fmt.Fprintf(&b, "language: %s, %d files\n", l.Name, l.Files)
	}
	for _, m := range r.Modules {
		fmt.Fprintf(&b, "module: %s in %s (%s)\n", m.Kind, m.Dir, m.Origin)
	}
	for _, v := range r.Versions {
		fmt.Fprintf(&b, "version: %s %s (%s)\n", v.Tool, v.Version, v.Origin)
	}
	for _, list := range [][]scan.Fact{r.Layout, r.CI, r.Rules} {
		for _, f := range list {
			fmt.Fprintf(&b, "found: %s (%s)\n", f.Name, f.Origin)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

// TestTrees compares what is found in each tree, and the proposed file, with golden files.
func TestTrees(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/trees/*.txtar")
	if err != nil || len(files) < 12 {
		t.Fatalf("got %d trees and %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := scan.Scan(treeOf(a))
			checkReport(t, r)
			got := summary(r) + "---\n" + string(scan.Draft{Report: r, Commit: strings.Repeat("a", 40)}.File())
			golden := filepath.Join("testdata", "files", name+".yml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("differs (-want +got), -update rewrites it:\n%s", diff)
			}
		})
	}
}

// settings are the keys that the proposed file may set.
type settings struct {
	Setup   []string `yaml:"setup"`
	Check   []string `yaml:"check"`
	SignOff bool     `yaml:"signoff"`
}

func runs(list []scan.Command) (out []string) {
	for _, c := range list {
		if c.Outcome == nil || c.Outcome.Status != scan.Failed {
			out = append(out, c.Run)
		}
	}
	return out
}

// checkReport checks what holds for every report: the file is YAML with exactly the commands of the report, and every text is
// one visible line.
func checkReport(t *testing.T, r scan.Report) {
	t.Helper()
	for name, d := range map[string]scan.Draft{"untried": {Report: r}, "tried": tried(r)} {
		file := d.File()
		var got settings
		if err := yaml.UnmarshalWithOptions(file, &got, yaml.Strict()); err != nil {
			t.Fatalf("%s: the file is no YAML: %v\n%s", name, err, file)
		}
		want := settings{runs(d.Setup), runs(d.Check), r.SignOff}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: the file has other commands (-want +got):\n%s\n%s", name, diff, file)
		}
		if i := strings.IndexFunc(string(file), func(c rune) bool { return c != '\n' && (c < ' ' || c >= 0x7f && c <= 0x9f || c == 0x202e) }); i >= 0 {
			t.Fatalf("%s: the file has a control character at %d: %q", name, i, file)
		}
		if len(file) > 64<<10 {
			t.Fatalf("%s: the file has %d bytes", name, len(file))
		}
		if missing, ok := d.Missing(string(file)); !ok || len(missing) > 0 {
			t.Fatalf("%s: the file lacks %q of itself (%v)", name, missing, ok)
		}
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(encoded), "\x1b\x00\x9b\n") || strings.Contains(string(encoded), `\u001b`) || strings.Contains(string(encoded), `\n`) {
		t.Fatalf("the report has control characters: %s", encoded)
	}
}

// tried returns a draft whose commands ended in every way.
func tried(r scan.Report) scan.Draft {
	d := scan.Draft{Report: r, Tried: "in a sandbox", Commit: "abc"}
	mark := func(list []scan.Command) []scan.Command {
		list = slices.Clone(list)
		for i := range list {
			list[i].Outcome = &[]scan.Outcome{
				{Status: scan.Failed, Reason: "exit code 1\n: x # \x1b[31m"}, {Status: scan.Succeeded}, {Status: scan.Untried, Reason: "npm is missing"},
			}[i%3]
		}
		return list
	}
	d.Setup, d.Check = mark(r.Setup), mark(r.Check)
	return d
}

// TestMissing lists what the proposed file adds to the present one.
func TestMissing(t *testing.T) {
	t.Parallel()
	d := scan.Draft{Report: scan.Report{
		SignOff: true, Setup: []scan.Command{{Run: "npm ci"}},
		Check: []scan.Command{{Run: "npm test"}, {Run: "npm run lint"}, {Run: "npm run build", Outcome: &scan.Outcome{Status: scan.Failed}}},
	}}
	for name, row := range map[string]struct {
		present string
		want    []string
		broken  bool
	}{
		"nothing":           {present: "", want: []string{"setup: npm ci", "check: npm test", "check: npm run lint", "signoff: true"}},
		"comments only":     {present: "# later\n", want: []string{"setup: npm ci", "check: npm test", "check: npm run lint", "signoff: true"}},
		"plain and mapping": {present: "setup: [npm ci]\ncheck:\n- {name: tests, run: npm test}\n- npm run lint\nsignoff: false\n"},
		"one command less":  {present: "setup: [npm ci]\ncheck: [npm test]\nsignoff: true\n", want: []string{"check: npm run lint"}},
		"no YAML":           {present: "setup: [", broken: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := d.Missing(row.present)
			if diff := cmp.Diff(row.want, got); diff != "" || ok == row.broken {
				t.Errorf("ok %v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

// TestLargeTree: a tree of 100,000 files, one of them of a megabyte, is examined quickly, and its size limits what is read and
// proposed.
func TestLargeTree(t *testing.T) {
	t.Parallel()
	tree := scan.Tree{Files: map[string]string{"package.json": `{"scripts": {"test": "x"}, "a": "` + strings.Repeat("x", 1<<20) + `"}`}}
	for i := range 100_000 {
		tree.Paths = append(tree.Paths, fmt.Sprintf("packages/p%05d/%s", i, []string{"go.mod", "pom.xml", "Gemfile"}[i%3]))
	}
	tree.Paths = append(tree.Paths, "package.json")
	if n := len(scan.Wanted(tree.Paths)); n > 80 {
		t.Errorf("wants %d files", n)
	}
	r := scan.Scan(tree)
	checkReport(t, r)
	if len(r.Modules) > 40 || !slices.Contains(r.Notes, "package.json is too large and was not examined.") {
		t.Errorf("got %d modules and the notes %q", len(r.Modules), r.Notes)
	}
}

// TestTool: the program that a command needs is the one that a shell would miss.
func TestTool(t *testing.T) {
	t.Parallel()
	r := scan.Scan(scan.Tree{Paths: []string{"go.mod", "tools/go.mod", "web/package.json", "web/package-lock.json", "CMakeLists.txt"}, Files: map[string]string{
		"web/package.json": `{"scripts": {"test": "x"}}`, "CMakeLists.txt": "enable_testing()",
	}})
	var got []string
	for _, c := range r.Check {
		got = append(got, c.Tool)
	}
	if diff := cmp.Diff([]string{"npm", "go", "go", "npm", "cmake"}, got); diff != "" {
		t.Error(diff)
	}
	if trial := r.Check[1].OnTrial(); !strings.HasPrefix(trial, "for m in . tools; do ") {
		t.Errorf("is tried as %q", trial)
	}
}

// TestCommandsAreQuoted: every command is the same text when the file is read.
func TestCommandsAreQuoted(t *testing.T) {
	t.Parallel()
	var r scan.Report
	for _, run := range []string{
		`a: b`, `- a`, `a # b`, `"a`, `'a' "b"`, `{affected_modules}`, `[a]`, `*a`, `&a`, `!a`, `@a`, "`a`", `%a`, `~`, `true`, `12`, `null`, `a \ b`, `? a`, `| a`,
	} {
		r.Check = append(r.Check, scan.Command{Run: run, Origin: "a: b # c"})
	}
	checkReport(t, r)
}

// TestManyWorkflows: of many workflows, those that are likely to be checks are read, and a note says that others were not.
func TestManyWorkflows(t *testing.T) {
	t.Parallel()
	tree := scan.Tree{Paths: []string{"go.mod"}, Files: map[string]string{}}
	for i := range 20 {
		tree.Paths = append(tree.Paths, fmt.Sprintf(".github/workflows/bot-%02d.yml", i), fmt.Sprintf(".github/workflows/release-test-%02d.yml", i))
	}
	const last = ".github/workflows/unit-tests.yml"
	tree.Paths = append(tree.Paths, last)
	for _, p := range scan.Wanted(tree.Paths) {
		tree.Files[p] = "on: push\njobs: {all: {steps: [{run: echo}]}}\n"
	}
	tree.Files[last] = "on: push\njobs: {all: {steps: [{run: go test -short ./...}]}}\n"
	r := scan.Scan(tree)
	checkReport(t, r)
	if got := runs(r.Check); !slices.Contains(got, "go test -short ./...") || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "Of the workflows, 26 were not read") }) {
		t.Errorf("got %q and the notes %q", got, r.Notes)
	}
	for p := range tree.Files {
		if strings.Contains(p, "release") {
			t.Errorf("reads %s instead of another", p)
		}
	}
}

// TestHabits: what nearly all of the newest commits have counts as a rule.
func TestHabits(t *testing.T) {
	t.Parallel()
	messages := func(n int, text string) []string { return slices.Repeat([]string{text}, n) }
	const signed, conventional = "x: Add y\n\nSigned-off-by: Ada <ada@example.org>\n", "fix(api)!: add y\n"
	for name, row := range map[string]struct {
		messages []string
		want     string // of sign-off and Conventional Commits, where they were found
	}{
		"none":           {messages(30, "Add y"), " | "},
		"all signed off": {messages(30, signed), "30 of the newest 30 commits | "},
		"nearly all":     {append(messages(18, signed), messages(2, "Bump z")...), "18 of the newest 20 commits | "},
		"some":           {append(messages(17, signed), messages(3, "Add y")...), " | "},
		"few":            {messages(9, signed), " | "},
		"in a sentence":  {messages(30, "Explain Signed-off-by: a <b>"), " | "},
		"conventional":   {messages(30, conventional), " | 30 of the newest 30 commits"},
		"a plain colon":  {messages(30, "net/http: add y"), " | "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := scan.Scan(scan.Tree{Messages: row.messages})
			checkReport(t, r)
			where := map[string]string{}
			for _, f := range r.Rules {
				where[f.Name] = f.Origin
			}
			dco := where["commits need a Signed-off-by line (DCO)"]
			if got := dco + " | " + where["Conventional Commits"]; got != row.want || r.SignOff != (dco != "") {
				t.Errorf("got %q, sign-off %v, want %q", got, r.SignOff, row.want)
			}
		})
	}
}
