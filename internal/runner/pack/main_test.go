package pack_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
)

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// gitEnv is an environment in which git behaves the same everywhere.
func gitEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.org",
		"GIT_AUTHOR_DATE=@1700000000 +0000", "GIT_COMMITTER_DATE=@1700000000 +0000",
	}
}

// sh runs shell commands in a directory and returns their output.
func sh(t testing.TB, dir, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), "sh", "-ec", commands)
	cmd.Dir, cmd.Env = dir, gitEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// vm is a home directory with a checkout in it.
type vm struct{ home, dir string }

// world is a published repository.
type world struct {
	url, base string
}

func newWorld(t testing.TB) world {
	t.Helper()
	dir := t.TempDir()
	sh(t, dir, `git init -q -b main
		mkdir -p dir/deep; echo readme > README; printf 'a\0b\377' > binary; echo '#!/bin/sh' > run.sh; chmod +x run.sh
		ln -s README link; seq 1 50 > dir/deep/numbers; echo other > dir/other; echo gone > gone; echo kept > kept
		printf 'ignored\n*.log\nnode_modules/\n' > .gitignore; echo u > 'ünïcödé'
		git add -A; git commit -qm First; echo more >> README; git commit -qam Second
		git config uploadpack.allowAnySHA1InWant true`)
	return world{url: "file://" + filepath.ToSlash(dir), base: sh(t, dir, "git rev-parse HEAD")}
}

// vm makes a VM with a prepared checkout.
func (w world) vm(t testing.TB) vm {
	t.Helper()
	home := t.TempDir()
	return w.vmAt(t, vm{home: home, dir: filepath.Join(home, "work")})
}

func (w world) vmAt(t testing.TB, v vm) vm {
	t.Helper()
	_, err := work.Prepare(testContext(t), work.PrepareSpec{
		Dir: v.dir, Source: work.Source{URL: w.url, Ref: "refs/heads/main"}, Branch: "errand/1-x", Base: w.base,
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (w world) spec(v vm) pack.Spec { return pack.Spec{Dir: v.dir, Home: v.home, Base: w.base} }

// packed packs a VM and checks the stream.
func packed(t testing.TB, spec pack.Spec) ([]byte, pack.Manifest) {
	t.Helper()
	var out bytes.Buffer
	m, err := pack.Pack(testContext(t), spec, &out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pack.Verify(bytes.NewReader(out.Bytes()), 0); err != nil {
		t.Fatalf("verify what was packed: %v", err)
	}
	return out.Bytes(), m
}

func unpacked(t testing.TB, v vm, keep []string, stream []byte) pack.Manifest {
	t.Helper()
	m, err := pack.Unpack(testContext(t), pack.UnpackSpec{Dir: v.dir, Home: v.home, Keep: keep}, bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// observableState is the observable state of a VM: files with modes and content, and the output of git.
func observableState(t testing.TB, v vm, ignored bool) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(v.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(v.home, path)
		if d.IsDir() {
			if name == "work/.git" || name == ".errand" {
				return filepath.SkipDir
			}
			return nil
		}
		if name == ".work.lock" {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		line := name + " " + info.Mode().String() + " "
		if info.Mode()&fs.ModeSymlink != 0 {
			target, _ := os.Readlink(path)
			line += target
		} else if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += string(data)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	flags := ""
	if ignored {
		flags = "--ignored"
	}
	// The second form of status names the ids and modes of HEAD and the index, and of all sides of a conflict.
	state := sh(t, v.dir, `git status --porcelain=v2 --branch -uall `+flags+`; git for-each-ref refs/heads refs/tags refs/stash; git stash list; git log --format='%H %s' HEAD`)
	return strings.Join(lines, "\n") + "\n" + state
}
