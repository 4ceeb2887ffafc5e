package e2e

import (
	"os/exec"
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

var lfsOID = regexp.MustCompile(`(?m)^oid sha256:([0-9a-f]{64})$`)

// large is about Git LFS at GitHub: large add PATH FILE commits a pointer to the default branch and keeps the file's
// content outside the repository; large show REV:PATH prints the content of a pointer, which must exist; with ! it must
// not.
func large(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	switch {
	case len(args) == 3 && args[0] == "add":
		pointer, err := s.w.GitHub.AddLFS(s.full, []byte(ts.ReadFile(args[2])))
		ts.Check(err)
		_, err = s.w.GitHub.As("ada").PushCommit(s.full, simgithub.Commit{
			Branch: s.repo().DefaultBranch, Message: "Add " + args[1], Files: map[string]string{args[1]: pointer},
		})
		ts.Check(err)
	case len(args) == 2 && args[0] == "show":
		out, err := exec.Command("git", "-C", s.repo().Git.Dir, "show", s.named(args[1])).Output()
		ts.Check(err)
		oid := lfsOID.FindStringSubmatch(string(out))
		if oid == nil {
			ts.Fatalf("%s is not a pointer: %.200q", args[1], out)
		}
		content, err := s.w.GitHub.LFS(s.full, oid[1])
		if neg == (err == nil) {
			ts.Fatalf("large file %s of %s: %v", oid[1], args[1], err)
		}
		_, err = ts.Stdout().Write(content)
		ts.Check(err)
	default:
		ts.Fatalf("usage: large add PATH FILE | large show REV:PATH")
	}
}
