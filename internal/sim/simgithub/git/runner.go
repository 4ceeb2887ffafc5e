package git

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

const ZeroSHA = "0000000000000000000000000000000000000000"

// runner runs the git command with nothing of the caller's configuration or environment.
type runner struct{ home string }

// env is the whole environment of a git command.
func (g runner) env(extra ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "TZ=UTC",
	}, extra...)
}

// command is one command to run in a bare repository.
type command struct {
	dir   string
	env   []string
	stdin []byte
	args  []string
}

// run returns what a git command wrote to its standard output, whatever its exit code; code is 0 on success.
func (g runner) run(c command) (out []byte, code int, err error) {
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

// Output runs a git command in a repository and returns its output without newlines at the ends.
func (r *Repository) Output(args ...string) (string, error) {
	b, _, err := r.git.run(command{dir: r.Dir, args: args})
	return strings.Trim(string(b), "\n"), err
}
