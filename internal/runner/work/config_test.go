package work_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/runner/work"
)

// TestPrepareWritesEverySetting: git reads each setting as it was given, whether Prepare writes it or git does.
func TestPrepareWritesEverySetting(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	settings := map[string]string{
		"errand.plain": "a value", "errand.empty": "", "errand.spaces": "  both sides\t ", "errand.quotes": `"a" 'b'`,
		"errand.backslash": `C:\x\n\"`, "errand.last-backslash": `a\`, "errand.comment": "a # b ; c", "errand.lines": "one\ntwo\n[core]\n\tbare = true",
		"errand.carriage": "a\rb\r\n", "errand.backspace": "a\bb", "errand.unicode": "ü\u202e\xff", "errand.long": strings.Repeat("x", 10000),
		"errand.part.name": "1", "errand.a.b.c.name": "2", `errand.with "quotes" and \.name`: "3", "errand.https://host/x.name": "4",
		"errand..name": "5", "errand.]\x01#.name": "6", "errand.camelCase": "7",
	}
	dir := t.TempDir()
	spec := work.PrepareSpec{Dir: dir, Source: work.Source{URL: o.url}, Branch: "b", Base: o.head, UserName: `Eve "E" \`, UserEmail: "e@x", Config: maps.Clone(settings)}
	if _, err := work.Prepare(testContext(t), spec); err != nil {
		t.Fatal(err)
	}
	settings["user.name"], settings["remote.origin.url"] = spec.UserName, o.url
	for key, want := range settings {
		cmd := exec.Command("git", "-C", dir, "config", "--local", "--null", "--get-all", key)
		cmd.Env = gitEnv()
		got, err := cmd.Output()
		if err != nil || string(got) != want+"\x00" {
			t.Errorf("%q is %q (%v), want %q", key, got, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, ".git", "config.lock")); !os.IsNotExist(err) {
		t.Errorf("the lock is left: %v", err)
	}
}

func TestPrepareRefusesSettings(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for _, key := range []string{"", "name", ".name", "errand.", "errand.a b", "errand.1a", "er_rand.a", "errand.a\nb.name", "errand.x\n[core]\nbare"} {
		_, err := work.Prepare(testContext(t), work.PrepareSpec{
			Dir: t.TempDir(), Source: work.Source{URL: o.url}, Branch: "b", Base: o.head, Config: map[string]string{key: "x"},
		})
		if err == nil || !strings.Contains(err.Error(), "configure "+key) {
			t.Errorf("%q: got %v", key, err)
		}
	}
}

// TestProcessesOfAWorkspace: each git costs milliseconds on the VM, for every run of every task.
func TestProcessesOfAWorkspace(t *testing.T) {
	o := newOrigin(t)
	log := countGit(t)
	dir := t.TempDir()
	source := work.Source{URL: o.url, Ref: "refs/heads/main"}
	spec := work.PrepareSpec{Dir: dir, Source: source, Branch: "b", Base: o.head, Config: work.LFSConfig("/opt/errand-runner", "https://host/x")}
	prepare := func() {
		if _, err := work.Prepare(testContext(t), spec); err != nil {
			t.Fatal(err)
		}
	}
	prepare()
	log("to prepare a workspace", 9)
	prepare()
	log("to find it prepared", 4)
	if _, err := work.Reset(testContext(t), work.ResetSpec{Dir: dir, Source: source, Branch: "b", Head: o.head}); err != nil {
		t.Fatal(err)
	}
	log("to reset it", 5)
}

// countGit puts a git that records its commands first in PATH. The returned function compares their number since its
// last call.
func countGit(t *testing.T) func(what string, most int) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin, list := t.TempDir(), filepath.Join(t.TempDir(), "list")
	// A git that another git starts is not counted.
	text := "#!/bin/sh\n[ -n \"$COUNTED\" ] || echo \"$@\" >>" + list + "\nCOUNTED=1 exec " + program + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return func(what string, most int) {
		t.Helper()
		commands, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(commands), "\n"); n > most {
			t.Errorf("%s took %d times git, want at most %d:\n%s", what, n, most, commands)
		}
		if err := os.Truncate(list, 0); err != nil {
			t.Fatal(err)
		}
	}
}
