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

// gitTimeout bounds every git command; the repositories of tests are small.
const gitTimeout = 60 * time.Second

// ZeroSHA is the object id by which git means that there is no object.
const ZeroSHA = "0000000000000000000000000000000000000000"

// runner runs git commands, without the configuration and the environment of the calling process.
type runner struct{ home string }

// env returns the complete environment of a git command.
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

// run returns the standard output of a git command, even if it failed, and its exit code.
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

// Output runs a git command in the repository and returns its output without newlines at both ends.
func (r *Repository) Output(args ...string) (string, error) {
	b, _, err := r.git.run(command{dir: r.Dir, args: args})
	return strings.Trim(string(b), "\n"), err
}
