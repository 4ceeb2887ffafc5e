package repotest_test

import (
	"fmt"
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
	stepMark = regexp.MustCompile(`(?m)^\d+\. `)
)

// Every errand command and every call of go that a document names exists.
func TestCommandsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, dir := range []string{"cmd/errand", "internal/operator"} {
		sources, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
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
	}
	docs := documents(t)
	docs["e2e/README.md"] = string(read(t, "e2e/README.md"))
	calls := 0
	for path, text := range docs {
		for _, m := range ownCall.FindAllStringSubmatch(text, -1) {
			if calls++; !known[m[1]] {
				t.Errorf("%s names errand %s, which is not a command; the commands are %v", path, m[1], known)
			}
		}
		for _, m := range goCall.FindAllStringSubmatch(text, -1) {
			calls++
			checkGoCall(t, path, m)
		}
	}
	if calls < 8 {
		t.Errorf("only %d calls were checked", calls)
	}
}

// checkGoCall checks that the package of a call of go exists, and the test that it names.
func checkGoCall(t *testing.T, path string, m []string) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(m[2], "/..."), "*.go"))
	if err != nil || len(list) == 0 {
		t.Errorf("%s names go %s %s, which is not a package", path, m[1], m[2])
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
	t.Errorf("%s names go %s %s -run %s, which matches no test", path, m[1], m[2], m[3])
}

// Each step of the walks through the code links to a file, and the names in it are in one of the files that it links to.
func TestArchitectureCanBeFollowed(t *testing.T) {
	t.Parallel()
	for heading, want := range map[string]struct{ steps, names int }{
		"## One webhook, ten steps":                                         {10, 20},
		"## One model call, from the agent to the bill":                     {9, 15},
		"## One changeset, from the VM to the pull request":                 {8, 10},
		"## How a VM comes and goes":                                        {5, 7},
		"## How an approval is checked":                                     {6, 10},
		"## Where a VM's suspension is decided and where it is carried out": {9, 15},
	} {
		_, text, _ := strings.Cut(string(read(t, "docs/architecture.md")), heading+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		steps := stepMark.Split(text, -1)[1:]
		if len(steps) != want.steps {
			t.Errorf("%s has %d steps, not %d", heading, len(steps), want.steps)
		}
		names := 0
		for i, step := range steps {
			names += checkNames(t, fmt.Sprintf("%s, step %d", heading, i+1), step)
		}
		if names < want.names {
			t.Errorf("%s: only %d names were checked", heading, names)
		}
	}
}
