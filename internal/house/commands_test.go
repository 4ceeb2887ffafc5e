package house_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	ownCall  = regexp.MustCompile("(?:`|bin/)(?:bin/)?errand ([a-z][a-z-]*)")
	ownUse   = regexp.MustCompile(`Use:\s+"([a-z-]+)`)
	goCall   = regexp.MustCompile("`(?:[A-Z_]+=\\S+ )?go (test|run) (\\./[a-z0-9/._-]+)(?: -run ([A-Za-z]+))?")
	target   = regexp.MustCompile(`\]\(\.\./([^)#]+)\)`)
	codeWord = regexp.MustCompile("`(?:[A-Za-z]+\\.)?([A-Za-z_]+)`")
	stepMark = regexp.MustCompile(`(?m)^\d+\. `)
)

// TestCommandsExist: what documents say to type at errand or at Go is there to be called.
func TestCommandsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	sources, err := filepath.Glob(filepath.Join(root, "cmd/errand/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range sources {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ownUse.FindAllStringSubmatch(string(src), -1) {
			known[m[1]] = true
		}
	}
	docs := documents(t)
	docs["e2e/README.md"] = string(read(t, "e2e/README.md"))
	calls := 0
	for path, text := range docs {
		for _, m := range ownCall.FindAllStringSubmatch(text, -1) {
			if calls++; !known[m[1]] {
				t.Errorf("%s says errand %s, which is no command; there are %v", path, m[1], known)
			}
		}
		for _, m := range goCall.FindAllStringSubmatch(text, -1) {
			calls++
			checkGoCall(t, path, m)
		}
	}
	if calls < 8 {
		t.Errorf("only %d calls were looked at", calls)
	}
}

// checkGoCall looks for the package of a call of Go, and for the test that it names.
func checkGoCall(t *testing.T, path string, m []string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(m[2], "/..."), "*.go"))
	if err != nil || len(list) == 0 {
		t.Errorf("%s says go %s %s, which is no package", path, m[1], m[2])
	}
	for _, file := range list {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`func (?:Test|Fuzz|Benchmark)?\w*` + m[3]).Match(src) {
			return
		}
	}
	t.Errorf("%s says go %s %s -run %s, which runs nothing", path, m[1], m[2], m[3])
}

// TestArchitectureCanBeFollowed: each of the ten steps through the code has a link, and what it names
// stands in one of the files that it links to.
func TestArchitectureCanBeFollowed(t *testing.T) {
	t.Parallel()
	_, text, _ := strings.Cut(string(read(t, "docs/architecture.md")), "## One webhook")
	text, _, _ = strings.Cut(text, "\n## ")
	steps := stepMark.Split(text, -1)[1:]
	if len(steps) != 10 {
		t.Fatalf("there are %d steps, not 10", len(steps))
	}
	names := 0
	for i, step := range steps {
		var sources strings.Builder
		for _, m := range target.FindAllStringSubmatch(step, -1) {
			sources.Write(read(t, m[1]))
		}
		if sources.Len() == 0 {
			t.Errorf("step %d links to no file", i+1)
		}
		for _, m := range codeWord.FindAllStringSubmatch(step, -1) {
			names++
			if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(sources.String()) {
				t.Errorf("step %d names %s, which is in none of its files", i+1, m[0])
			}
		}
	}
	if names < 10 {
		t.Errorf("only %d names were looked for", names)
	}
}
