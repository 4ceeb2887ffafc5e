package repotest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CI runs all checks, as an ordinary user except for the tests that need root.
func TestCIRunsEverything(t *testing.T) {
	t.Parallel()
	steps := regexp.MustCompile(`(?m)^step \S+ (.*)$`)
	for path, want := range map[string][]string{
		".ci/checks": {"make demo", "make test", "make verify", "make race", "make test-full", "go vet ./..."},
		".ci/run":    {"make demo", "make test-root"},
	} {
		text := string(read(t, path))
		var commands []string
		for _, m := range steps.FindAllStringSubmatch(text, -1) {
			commands = append(commands, m[1])
		}
		for _, command := range want {
			if !slices.Contains(commands, command) {
				t.Errorf("%s does not run %s", path, command)
			}
		}
	}
	if run := string(read(t, ".ci/run")); !regexp.MustCompile(`(?m)^runuser -u "\$user" .*bash \.ci/checks' \|\| checks=\$\?$`).MatchString(run) {
		t.Error(".ci/run does not run .ci/checks as the ordinary user")
	}
	for _, path := range []string{".ci/run", ".ci/checks", ".ci/steps"} {
		if strings.Contains(string(read(t, path)), "|| true") {
			t.Errorf("%s ignores failures with || true", path)
		}
	}
}

// After a failed step, CI runs the others, fails, and prints the failures last; without a step that the others need it stops.
func TestCIFailsAtTheEnd(t *testing.T) {
	t.Parallel()
	steps, err := filepath.Abs(filepath.Join(root, ".ci/steps"))
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		`step one sh -c 'echo broken; exit 3'; step two echo '7 passed, 0 failed, 0 skipped'; summary`: `(?s)two: 7 passed.*all: 7 passed.*\n== step one failed\nbroken\n$`,
		`need one false; step two echo 'two runs'; summary`:                                            `(?s)^[^w]*\n== step one failed\n$`,
	} {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail; . "+steps+"; "+script)
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "CI_LOGS=", "CI_BEGAN=")
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: got %v, want status 1", script, err)
		}
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("%s: got\n%s\nwant %s", script, out, want)
		}
	}
}
