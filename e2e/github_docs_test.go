package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// storyName matches the name of a story in the documents: a word in code with hyphens.
var storyName = regexp.MustCompile("`([a-z]+(?:-[a-z]+)+)`")

// TestStoriesOfTheDocs: every story in docs/github-failures.md exists and is marked long if only the full test run
// plays it, and the document has every story about GitHub.
func TestStoriesOfTheDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/github-failures.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## When GitHub fails\n")
	if !ok {
		t.Fatal("docs/github-failures.md has no section about failures")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	named := map[string]bool{}
	for row := range strings.Lines(section) {
		cells := strings.Split(row, "|")
		if len(cells) < 5 {
			continue
		}
		last := cells[len(cells)-2]
		for _, m := range storyName.FindAllStringSubmatch(last, -1) {
			named[m[1]] = true
			story, err := os.ReadFile(filepath.Join("testdata", "stories", m[1]+".txtar"))
			if err != nil {
				t.Errorf("the docs name a story that does not exist: %v", err)
			}
			heavy, said := strings.Contains(string(story), "[!full] skip"), strings.Contains(last, "`"+m[1]+"` (*long*)")
			if heavy != said {
				t.Errorf("story %s is long: %t, but the docs say %t", m[1], heavy, said)
			}
		}
	}
	if len(named) < 40 {
		t.Errorf("found only %d stories in the tables; the parser misses some", len(named))
	}
	files, err := filepath.Glob("testdata/stories/github-*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".txtar"); !named[name] {
			t.Errorf("the docs do not name story %s", name)
		}
	}
}
