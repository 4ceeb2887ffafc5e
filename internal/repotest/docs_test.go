package repotest_test

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code      = regexp.MustCompile("(?s)```.*?```")
	remark    = regexp.MustCompile(`(?s)<!--.*?-->`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	makeCall  = regexp.MustCompile("(?m)(?:`|^\\s*)make ([a-z-]+)")
	makeRule  = regexp.MustCompile(`(?m)^([a-z-]+):.*## `)
	aTest     = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	aStory    = regexp.MustCompile("story `([a-z-]+)`")
	mentioned = regexp.MustCompile("`((?:cmd|handlers|internal|prompts|state|docs|e2e)/[A-Za-z0-9_./*-]*)`")
)

// documents returns the Markdown files for people, without their comments.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	paths, err := files(".md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if !strings.Contains(path, "/") || strings.HasPrefix(path, "docs/") {
			docs[path] = remark.ReplaceAllString(string(read(t, path)), "")
		}
	}
	for _, path := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/README.md"} {
		if docs[path] == "" {
			t.Errorf("%s is missing", path)
		}
	}
	return docs
}

// Every page below docs is in the index and has at most 300 lines.
func TestDocumentsAreShortAndListed(t *testing.T) {
	t.Parallel()
	const index, maxLines = "docs/README.md", 300
	listed := map[string]bool{}
	docs := documents(t)
	for _, m := range link.FindAllStringSubmatch(docs[index], -1) {
		listed[filepath.ToSlash(filepath.Join("docs", m[1]))] = true
	}
	n := 0
	for path := range docs {
		if !strings.HasPrefix(path, "docs/") || path == index {
			continue
		}
		n++
		if !listed[path] {
			t.Errorf("%s does not list %s", index, path)
		}
		if lines := strings.Count(string(read(t, path)), "\n"); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d: split it by task", path, lines, maxLines)
		}
	}
	if n < 20 {
		t.Errorf("only %d pages were checked", n)
	}
}

// The targets of all links exist, including headings.
func TestLinks(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	for path, text := range docs {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			to, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if to != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(path), to))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, m[1])
			} else if anchor != "" && !slices.Contains(anchors(docs[target]), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", path, m[1], target)
			}
		}
	}
}

// anchors returns the anchors that GitHub gives to the headings of a document.
func anchors(text string) []string {
	var list []string
	for _, m := range heading.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		list = append(list, strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, m[1]))
	}
	return list
}

// Every file and folder that a document names exists.
func TestMentionedPathsExist(t *testing.T) {
	t.Parallel()
	n := 0
	for path, text := range documents(t) {
		for _, m := range mentioned.FindAllStringSubmatch(text, -1) {
			n++
			if found, err := filepath.Glob(filepath.Join(root, m[1])); err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d paths were checked", n)
	}
}

// The messages that docs/troubleshooting.md quotes in italics are in the code.
func TestQuotedMessagesExist(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, suffix := range []string{".go", ".html"} {
		paths, err := files(suffix)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "internal/sim/") && !strings.HasPrefix(path, "internal/repotest/") {
				source.Write(read(t, path))
			}
		}
	}
	page := regexp.MustCompile("`[^`]*`").ReplaceAllString(documents(t)["docs/troubleshooting.md"], "")
	exempt := []string{"long", "API key not valid", "credit balance is too low"} // a mark, and messages of providers
	n := 0
	for _, m := range regexp.MustCompile(`\*([^*|\n]+)\*`).FindAllStringSubmatch(strings.ReplaceAll(page, "**", ""), -1) {
		if slices.Contains(exempt, m[1]) {
			continue
		}
		n++
		for part := range strings.SplitSeq(m[1], "…") { // which stands for what the code inserts
			if part = strings.Trim(part, " .:,(); "); !strings.Contains(source.String(), part) {
				t.Errorf("docs/troubleshooting.md quotes the message %q, of which %q is not in the code", m[1], part)
			}
		}
	}
	if n < 25 {
		t.Errorf("only %d messages were checked", n)
	}
}

// Every test and story that a document names exists.
func TestMentionedTestsExist(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.isTest() {
				declared[fn.Name.Name] = true
			}
		}
	}
	n := 0
	for path, text := range documents(t) {
		for _, m := range aTest.FindAllStringSubmatch(text, -1) {
			n++
			if !declared[m[1]] {
				t.Errorf("%s names the test %s, which does not exist", path, m[1])
			}
		}
		for _, m := range aStory.FindAllStringSubmatch(text, -1) {
			n++
			if _, err := os.Stat(filepath.Join(root, "e2e/testdata/stories", m[1]+".txtar")); err != nil {
				t.Errorf("%s names the story %s, which does not exist", path, m[1])
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d tests were checked", n)
	}
}

// app.yml subscribes to exactly the events that errand handles, except those of the installation itself, which are sent to
// every App. The simulator, the metrics and the fuzz target know these events, too.
func TestAppManifest(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(string(read(t, "app.yml")), "default_events:")
	asked := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  - ([a-z_]+)$`).FindAllStringSubmatch(list, -1) {
		asked[m[1]] = true
	}
	known := regexp.MustCompile(`(?m)^\t\t"([a-z_]+)": +\{("|$)`).FindAllStringSubmatch(before(t, string(read(t, "handlers/events.go")), "func unsubscribed"), -1)
	if len(known) < 10 {
		t.Fatalf("only %d events were found in events.go", len(known))
	}
	for _, m := range known {
		if always := m[1] == "ping" || strings.HasPrefix(m[1], "installation"); asked[m[1]] == always {
			t.Errorf("app.yml subscribes to %s: %v", m[1], asked[m[1]])
		}
		delete(asked, m[1])
	}
	for event := range asked {
		t.Errorf("app.yml subscribes to %s, which handlers do not handle", event)
	}
	checkEventLists(t, known)
}

// checkEventLists checks that the simulator, the metrics and the fuzz target of the mappings list the events of events.go.
func checkEventLists(t *testing.T, known [][]string) {
	t.Helper()
	mapped := regexp.MustCompile(`"([a-z_]+)": +\(\*Mapper\)`).FindAllStringSubmatch(string(read(t, "handlers/handlers.go")), -1)
	subscribed := slices.DeleteFunc(slices.Clone(known), func(m []string) bool { return m[1] == "ping" || strings.HasPrefix(m[1], "installation") })
	for path, list := range map[string]struct {
		begin, end string
		want       [][]string
	}{
		"internal/sim/simgithub/sim.go": {"cfg.Events = []string{", "}", subscribed},
		"internal/admin/metrics.go":     {"func eventLabel(", "return event", known},
		"handlers/fuzz_test.go":         {"var knownEvents = []string{", "}", mapped},
	} {
		_, text, _ := strings.Cut(string(read(t, path)), list.begin)
		if len(list.want) < 10 {
			t.Errorf("%s: only %d events were found to check", path, len(list.want))
		}
		for _, m := range list.want {
			if !strings.Contains(before(t, text, list.end), `"`+m[1]+`"`) {
				t.Errorf("%s does not list the event %s after %q", path, m[1], list.begin)
			}
		}
	}
}

// before returns a text up to some words, which it must contain.
func before(t *testing.T, text, words string) string {
	t.Helper()
	head, _, found := strings.Cut(text, words)
	if !found {
		t.Errorf("%q was not found", words)
	}
	return head
}

// The make commands that documents name are targets, and every target has an explanation.
func TestMakeTargets(t *testing.T) {
	t.Parallel()
	makefile := string(read(t, "Makefile"))
	targets := map[string]bool{}
	for _, m := range makeRule.FindAllStringSubmatch(makefile, -1) {
		targets[m[1]] = true
	}
	phony := regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindStringSubmatch(makefile)
	if phony == nil {
		t.Fatal("the Makefile has no .PHONY")
	}
	if want, got := slices.Sorted(slices.Values(strings.Fields(phony[1]))), slices.Sorted(maps.Keys(targets)); !slices.Equal(want, got) {
		t.Errorf("targets with an explanation: %v; phony: %v", got, want)
	}
	for path, text := range documents(t) {
		for _, m := range makeCall.FindAllStringSubmatch(text, -1) {
			if !targets[m[1]] {
				t.Errorf("%s names `make %s`, which is not a target", path, m[1])
			}
		}
	}
	readme := string(read(t, "README.md"))
	for _, want := range []string{"make demo", "make test"} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md does not name `%s`", want)
		}
	}
}
