package house_test

import (
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
	mentioned = regexp.MustCompile("`((?:cmd|handlers|internal|prompts|state|docs|e2e)/[A-Za-z0-9_./-]*)`")
)

// documents reads every Markdown file that people read, without its remarks.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, path := range files(t, ".md") {
		if !strings.Contains(path, "/") || strings.HasPrefix(path, "docs/") {
			docs[path] = remark.ReplaceAllString(string(read(t, path)), "")
		}
	}
	for _, path := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md", "docs/lifecycle.md", "docs/commands.md", "docs/configuration.md", "docs/operations.md", "docs/security.md", "docs/glossary.md", "docs/assumptions.md"} {
		if docs[path] == "" {
			t.Errorf("%s is missing", path)
		}
	}
	return docs
}

// TestLinks: what a document links to is there, down to the heading.
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
				t.Errorf("%s links to %s, which is not there", path, m[1])
			} else if anchor != "" && !slices.Contains(anchors(docs[target]), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", path, m[1], target)
			}
		}
	}
}

// anchors are the names that GitHub gives to a document's headings.
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

// TestMentionedPathsExist: a file or folder that a document names is there.
func TestMentionedPathsExist(t *testing.T) {
	t.Parallel()
	n := 0
	for path, text := range documents(t) {
		for _, m := range mentioned.FindAllStringSubmatch(text, -1) {
			n++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", path, m[1])
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d paths were looked at", n)
	}
}

// TestMakeTargets: the commands that documents name are targets, and every target explains itself.
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
				t.Errorf("%s says `make %s`, which is no target", path, m[1])
			}
		}
	}
	readme := string(read(t, "README.md"))
	for _, want := range []string{"make demo", "make test"} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md does not say `%s`", want)
		}
	}
	ci := string(read(t, ".ci/run"))
	for _, want := range []string{"make test", "make verify", "make race", "make test-full", "go vet ./..."} {
		if !strings.Contains(ci, "step "+want+"\n") {
			t.Errorf(".ci/run does not run %s", want)
		}
	}
	if strings.Contains(ci, "|| true") {
		t.Error(".ci/run looks away with || true")
	}
}

// TestArchitectureShowsTheLayers: the table in the document is the one that is tested.
func TestArchitectureShowsTheLayers(t *testing.T) {
	t.Parallel()
	text := string(read(t, "docs/architecture.md"))
	for pkg, r := range layers() {
		if r.may == "" {
			continue
		}
		line := "| `" + pkg + "` | " + strings.Join(strings.Fields(r.may), ", ") + " |"
		if !strings.Contains(text, line+"\n") {
			t.Errorf("docs/architecture.md needs the line\n%s", line)
		}
	}
}
