package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/cli/clitest"
)

// completed returns the words that the program offers, without descriptions.
func completed(t *testing.T, args ...string) (words []string) {
	t.Helper()
	code, out, _ := call(t, clitest.Secrets(t), append([]string{"__complete"}, args...)...)
	if code != 0 || !strings.HasSuffix(out, "\n:4\n") && out != ":4\n" {
		t.Errorf("%q: code %d, output %q", args, code, out)
	}
	for _, line := range strings.Split(strings.TrimSuffix(out, ":4\n"), "\n") {
		if word, _, _ := strings.Cut(line, "\t"); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// TestCompletions: arguments are completed by the usage of the command, tasks with those of the running errand.
func TestCompletions(t *testing.T) {
	t.Parallel()
	file := clitest.Config(t, clitest.GoldenServer(t), "")
	open := []string{"acme/shop#2", "acme/shop#3", "acme/web#9", "acme/shop#1", "acme/shop#4", "acme/shop#6", "acme/shop#5"}
	all := append(slices.Clone(open), "acme/shop#7", "acme/shop#8")
	for name, c := range map[string]struct {
		args, want []string
	}{
		"open tasks":        {[]string{"cancel", "-c", file, ""}, open},
		"all tasks":         {[]string{"task", "-c", file, ""}, all},
		"a prefix":          {[]string{"stop", "-c", file, "acme/w"}, []string{"acme/web#9"}},
		"without the given": {[]string{"stop", "-c", file, "acme/shop#2", "acme/shop#3", "acme/shop"}, []string{"acme/shop#1", "acme/shop#4", "acme/shop#6", "acme/shop#5"}},
		"only one":          {[]string{"logs", "-c", file, "acme/shop#2", ""}, nil},
		"no addition":       {[]string{"budget", "-c", file, "acme/shop#2", ""}, nil},
		"whole repository":  {[]string{"retry", "-c", file, "acme/shop#8"}, []string{"acme/shop#8"}},
		"another one":       {[]string{"retry", "-c", file, "acme/none#"}, nil},
		"repositories":      {[]string{"tasks", "-c", file, "--repo", ""}, []string{"acme/shop", "acme/web"}},
		"with =":            {[]string{"tasks", "-c", file, "--repo=acme/w"}, []string{"acme/web"}},
		"levels":            {[]string{"logs", "--level", ""}, []string{"debug", "info", "warn", "error"}},
		"shells":            {[]string{"completion", ""}, []string{"bash", "zsh", "fish"}},
		"no file":           {[]string{"cancel", "-c", "none.yml", ""}, nil},
		"subcommands":       {[]string{"rotate", ""}, []string{"provenance-key", "tether-key", "webhook-secret"}},
		"of a subcommand":   {[]string{"rotate", "tether-key", ""}, nil},
		"no arguments":      {[]string{"serve", ""}, nil},
		"a number":          {[]string{"logs", "--run", ""}, nil},
		"flags":             {[]string{"audit", "--j"}, []string{"--json"}},
		"commands":          {[]string{"ta"}, []string{"task", "tasks"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := completed(t, c.args...); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestCompletionsAreHarmless: what errand answers cannot run anything in a shell, and an errand that does not answer within a second offers
// nothing.
func TestCompletionsAreHarmless(t *testing.T) {
	t.Parallel()
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"tasks": [{"repo": "acme/$(touch x)", "issue": 1}, {"repo": "acme/a b", "issue": 2}, {"repo": "acme/x;y", "issue": 3}, {"repo": "acme/ok", "issue": 4, "phase": "queued"}],
"ended": [{"repo": "--help", "issue": 5}], "unstarted": [{"repo": "acme/` + "`id`" + `", "issue": 6}, {"repo": "acme/ok", "issue": 7}]}`))
	}))
	t.Cleanup(evil.Close)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	file := clitest.Config(t, strings.TrimPrefix(evil.URL, "http://"), "")
	for name, want := range map[string][]string{"task": {"acme/ok#4"}, "adopt": {"acme/ok#7"}, "run": {"acme/ok#7"}} {
		if got := completed(t, name, "-c", file, ""); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	begun := time.Now()
	if got := completed(t, "task", "-c", clitest.Config(t, strings.TrimPrefix(silent.URL, "http://"), ""), ""); got != nil || time.Since(begun) > 20*time.Second {
		t.Errorf("got %q after %s", got, time.Since(begun))
	}
}

// TestEveryUsageIsCompleted: every command completes what its usage line names.
func TestEveryUsageIsCompleted(t *testing.T) {
	t.Parallel()
	file := clitest.Config(t, clitest.GoldenServer(t), "")
	_, help, _ := call(t, nil, "--help")
	n := 0
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`).FindAllStringSubmatch(help, -1) {
		_, usage, _ := call(t, nil, m[1], "--help")
		if !strings.Contains(usage, "errand "+m[1]+" OWNER/REPO#N") && !strings.Contains(usage, "errand "+m[1]+" [OWNER/REPO#N]") || m[1] == "adopt" || m[1] == "run" {
			continue // the golden board has no issue without a task
		}
		if n++; !slices.Contains(completed(t, m[1], "-c", file, ""), "acme/shop#1") {
			t.Errorf("%s does not complete tasks", m[1])
		}
	}
	if n < 8 {
		t.Errorf("only %d commands were checked", n)
	}
}

// inShell runs a script in a shell, or skips the test if there is none.
func inShell(t *testing.T, shell, dir, script string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("skipped: %s is not installed, whose completions are tried", shell)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-c", script, shell}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir}
	for name, value := range clitest.Secrets(t) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v: %s", shell, err, out)
	}
	return string(out)
}

// TestCompletionInShells: real shells read the scripts, and bash, with and without the package bash-completion, completes commands, flags and
// tasks. The scripts contain no secret.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(build(t))
	config, err := os.ReadFile(clitest.Config(t, clitest.GoldenServer(t), ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			code, script, _ := call(t, clitest.Secrets(t), "completion", shell)
			if code != 0 || strings.Contains(script, "-for-tests") {
				t.Errorf("code %d, or the script contains a secret", code)
			}
			file := filepath.Join(dir, "script."+shell)
			if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			inShell(t, shell, dir, map[string]string{"bash": "bash -n ", "zsh": "zsh -n ", "fish": "fish --no-execute "}[shell]+file)
			if shell == "fish" {
				out := inShell(t, shell, dir, "source "+file+`; complete -C "$argv[2]"`, "errand cancel acme/w")
				if word, _, _ := strings.Cut(out, "\t"); word != "acme/web#9" {
					t.Errorf("fish completes %q", out)
				}
			}
		})
	}
	for line, want := range map[string]string{
		"errand ta":                          "task tasks",
		"errand cancel acme/w":               "acme/web#9",
		"errand cancel acme/shop#2 acme/web": "acme/web#9",
		"errand tasks --repo = acme/w":       "acme/web", // as bash splits it
		"errand logs --level w":              "warn",
		"errand tasks --al":                  "--all",
		"errand task $(touch":                "",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			const script = `compopt() { :; } # it works only while readline completes
source <(errand completion bash); read -ra COMP_WORDS <<<"$1"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
__start_errand errand; for word in "${COMPREPLY[@]}"; do echo "${word%% *}"; done`
			if got := strings.Join(strings.Fields(inShell(t, "bash", dir, script, line)), " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
