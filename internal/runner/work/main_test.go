package work_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/runner/proc"
)

// TestMain lets the test binary play errand-runner for the processes that checks start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proc.InitCommand {
		os.Exit(proc.Init(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "burst" {
		burst()
	}
	if len(os.Args) > 2 && os.Args[1] == "lfs" {
		os.Exit(lfsMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// gitEnv is an environment in which git behaves the same everywhere.
func gitEnv(extra ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.org",
		"GIT_AUTHOR_DATE=@1700000000 +0000", "GIT_COMMITTER_DATE=@1700000000 +0000",
	}, extra...)
}

// run runs a command in a directory and returns its output, without the last line end.
func run(t *testing.T, dir string, env []string, in []byte, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), name, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, env, bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		words := ""
		if exit, ok := err.(*exec.ExitError); ok {
			words = string(exit.Stderr)
		}
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, words)
	}
	return strings.TrimRight(string(out), "\n")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return run(t, dir, gitEnv(), nil, "git", args...)
}

// script runs shell commands as an agent would.
func script(t *testing.T, dir, commands string) {
	t.Helper()
	run(t, dir, gitEnv(), nil, "sh", "-ec", commands)
}

// origin is a repository as it is published, and the commit that both sides know.
type origin struct {
	url, head string
}

// newOrigin makes a repository with something of everything.
func newOrigin(t *testing.T) origin {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	script(t, dir, `
		mkdir -p dir/deep
		echo readme > README; printf 'a\0b\377' > binary; echo '#!/bin/sh' > run.sh; chmod +x run.sh
		ln -s README link; seq 1 50 > dir/deep/numbers; echo other > dir/other
		printf 'ignored\n*.log\n' > .gitignore; echo space > 'a name with spaces'; echo u > 'ünïcödé'
		git add -A; git commit -qm 'First'; echo more >> README; git commit -qam 'Second'`)
	git(t, dir, "config", "uploadpack.allowAnySHA1InWant", "true")
	return origin{url: "file://" + filepath.ToSlash(dir), head: git(t, dir, "rev-parse", "HEAD")}
}

func (o origin) dir() string { return strings.TrimPrefix(o.url, "file://") }

// write makes a file.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
