package simgithub

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// gitTimeout bounds every git command; all repositories here are small.
const gitTimeout = 60 * time.Second

const zeroSHA = "0000000000000000000000000000000000000000"

// gitRunner runs the git command with nothing of the caller's configuration or environment.
type gitRunner struct {
	home    string
	backend string // path of git http-backend
}

// env is the whole environment of a git command.
func (g gitRunner) env(extra ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "TZ=UTC",
	}, extra...)
}

// gitCmd is one command to run in a bare repository.
type gitCmd struct {
	dir   string
	env   []string
	stdin []byte
	args  []string
}

// run returns what a git command wrote to its standard output, whatever its exit code; code is 0 on success.
func (g gitRunner) run(c gitCmd) (out []byte, code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", c.dir}, c.args...)...)
	cmd.Env = g.env(c.env...)
	cmd.Stdin = bytes.NewReader(c.stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), cmd.ProcessState.ExitCode(),
			fmt.Errorf("git %s: %w: %s", strings.Join(c.args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), 0, nil
}

// out runs a git command in a repository and returns its output without newlines at the ends.
func (g gitRunner) out(r *Repo, args ...string) (string, error) {
	b, _, err := g.run(gitCmd{dir: r.Dir, args: args})
	return strings.Trim(string(b), "\n"), err
}

// resolve gives the commit that a revision names, or "" if there is none.
func (g gitRunner) resolve(r *Repo, rev string) string {
	if rev == "" || strings.HasPrefix(rev, "-") {
		return ""
	}
	if sha, known := r.looseResolve(rev); known {
		return sha
	}
	sha, err := g.out(r, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if err != nil {
		return ""
	}
	return sha
}

// branch gives the head of a branch, or "" if it does not exist.
func (g gitRunner) branch(r *Repo, name string) string { return g.resolve(r, "refs/heads/"+name) }

// ref gives the object that a full reference or another revision names, or "".
func (g gitRunner) ref(r *Repo, name string) string {
	if sha, known := r.looseNamed(name); known {
		return sha
	}
	sha, err := g.out(r, "rev-parse", "--verify", "--quiet", name)
	if err != nil {
		return ""
	}
	return sha
}

// refs lists full reference names with their objects, below a prefix, sorted by name.
func (g gitRunner) refs(r *Repo, prefix string) ([]gitRef, error) {
	if list, known := r.looseRefs(prefix); known {
		return list, nil
	}
	out, err := g.out(r, "for-each-ref", "--format=%(refname) %(objectname) %(objecttype)", prefix)
	if err != nil {
		return nil, err
	}
	var list []gitRef
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 3 {
			list = append(list, gitRef{Name: f[0], SHA: f[1], Type: f[2]})
		}
	}
	return list, nil
}

// gitRef is a reference and what it points to.
type gitRef struct{ Name, SHA, Type string }

// isAncestor tells whether old is reachable from new.
func (g gitRunner) isAncestor(r *Repo, old, new string) bool {
	if is, known := r.isLooseAncestor(old, new); known {
		return is
	}
	_, code, _ := g.run(gitCmd{dir: r.Dir, args: []string{"merge-base", "--is-ancestor", old, new}})
	return code == 0
}

// mergeBase is the best common ancestor, or "" if histories are unrelated.
func (g gitRunner) mergeBase(r *Repo, a, b string) string {
	if is, known := r.isLooseAncestor(a, b); is && known {
		return a
	}
	if is, known := r.isLooseAncestor(b, a); is && known {
		return b
	}
	sha, err := g.out(r, "merge-base", a, b)
	if err != nil {
		return ""
	}
	return sha
}
