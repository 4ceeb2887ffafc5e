package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/demo"
)

// submodule commits a submodule to the default branch: submodule PATH NAME ADDRESS. NAME is a repository of the same
// owner, whose newest commit it refers to; in the address, {github} stands for GitHub's address.
func submodule(ts *testscript.TestScript, _ bool, args []string) {
	s := of(ts)
	if len(args) != 3 {
		ts.Fatalf("usage: submodule PATH NAME ADDRESS")
	}
	path, address := args[0], strings.ReplaceAll(args[2], "{github}", s.w.GitHub.BaseURL())
	other, err := s.w.GitHub.As("ada").Repo(demo.Owner + "/" + args[1])
	ts.Check(err)
	branch := "refs/heads/" + s.repo().DefaultBranch
	run := func(dir, in string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+filepath.Join(ts.MkAbs("."), "submodule.index"),
			"GIT_AUTHOR_NAME=ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=ada", "GIT_COMMITTER_EMAIL=ada@example.org")
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil {
			ts.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimRight(string(out), "\n")
	}
	dir, head := s.repo().Git.Dir, run(other.Git.Dir, "", "rev-parse", "HEAD")
	run(dir, "", "read-tree", branch)
	old, _ := exec.Command("git", "-C", dir, "show", branch+":.gitmodules").Output() // missing before the first
	text := string(old) + "[submodule \"" + path + "\"]\n\tpath = " + path + "\n\turl = " + address + "\n"
	blob := run(dir, text, "hash-object", "-w", "--stdin")
	run(dir, "", "update-index", "--add", "--cacheinfo", "100644,"+blob+",.gitmodules", "--cacheinfo", "160000,"+head+","+path)
	commit := run(dir, "Add "+path+"\n", "commit-tree", run(dir, "", "write-tree"), "-p", branch)
	run(dir, "", "update-ref", branch, commit)
}
