// Package work is the git side of the runner: it prepares workspaces, collects the result of a run as a changeset, and
// runs a repository's own checks in a fresh worktree.
//
// A workspace belongs to the agent and is untrusted, so git runs without system and user configuration, hooks, replaced
// objects and prompts. A repository's configuration may still name clean and smudge filters. Therefore everything runs
// as the agent's own user, and each git in a PID namespace, so that processes of a filter end with their git.
//
// Start here: [Prepare], [Collect] and [Check].
package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// Timeouts of git commands: those that use the network, and all others.
const (
	networkTimeout = 15 * time.Minute
	localTimeout   = 5 * time.Minute
)

// overrides is configuration that takes precedence over the workspace's own.
var overrides = [...]string{
	"core.hooksPath=/dev/null",
	"core.fsmonitor=false",
	"core.attributesFile=/dev/null",
	"core.excludesFile=/dev/null",
	"core.quotePath=false",
	"core.pager=cat",
	"core.editor=true",
	"core.sshCommand=false",
	"core.askPass=",
	"credential.helper=",
	"protocol.ext.allow=never",
	"submodule.recurse=false",
	"fetch.recurseSubmodules=false",
	"diff.noprefix=false",
	"commit.gpgSign=false",
	"tag.gpgSign=false",
	"gpg.program=false",
	"gc.auto=0",
	"maintenance.auto=false",
	"advice.detachedHead=false",
	"safe.directory=*",
	"rerere.enabled=false",
	"rebase.autoStash=false",
	"merge.autoStash=false",
	"log.showSignature=false",
}

// repo runs git in one directory.
type repo struct {
	dir  string
	env  []string
	lock *os.File // held while git runs; may be nil
}

// openRepo returns a repo for a directory. The extra variables take precedence.
func openRepo(dir string, extra ...string) *repo {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + os.Getenv("HOME"),
		"TMPDIR=" + os.TempDir(),
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_GRAFT_FILE=/dev/null",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=true",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_EDITOR=true",
		"GIT_SEQUENCE_EDITOR=true",
		"GIT_MERGE_AUTOEDIT=no",
		"GIT_LITERAL_PATHSPECS=0",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir), // a workspace without .git must not use its parent's
		"NO_PROXY=127.0.0.1,localhost",
	}
	return &repo{dir: dir, env: append(env, extra...)}
}

// gitError is a failed git command.
type gitError struct {
	command string
	stderr  string
	err     error
}

func (e *gitError) Error() string {
	text := "git " + e.command + ": " + e.err.Error()
	if e.stderr != "" {
		text += ": " + e.stderr
	}
	return text
}

func (e *gitError) Unwrap() error { return e.err }

// stderrKept bounds the part of git's standard error in an error message, in bytes.
const stderrKept = 2000

// run runs one git command and returns its output.
func (r *repo) run(ctx context.Context, args ...string) ([]byte, error) {
	return r.pipe(ctx, nil, args...)
}

// text runs one git command and returns its output without trailing newlines.
func (r *repo) text(ctx context.Context, args ...string) (string, error) {
	out, err := r.run(ctx, args...)
	return strings.TrimRight(string(out), "\n"), err
}

// pipe runs one git command with the given input.
func (r *repo) pipe(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	timeout := localTimeout
	if args[0] == "fetch" {
		timeout = networkTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out, stderr bytes.Buffer
	err := proc.RunAlone(func() *exec.Cmd {
		cmd := r.command(ctx, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &stderr
		return cmd
	})
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		words := strings.TrimSpace(stderr.String())
		if len(words) > stderrKept {
			words = strings.ToValidUTF8(words[len(words)-stderrKept:], "")
		}
		return out.Bytes(), &gitError{command: args[0], stderr: words, err: err}
	}
	return out.Bytes(), nil
}

func (r *repo) command(ctx context.Context, args ...string) *exec.Cmd {
	all := make([]string, 0, 2*len(overrides)+len(args)+2)
	for _, setting := range overrides {
		all = append(all, "-c", setting)
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Dir, cmd.Env = r.dir, r.env
	if r.lock != nil {
		cmd.ExtraFiles = []*os.File{r.lock}
	}
	// git's own helper processes end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// exitCode returns the exit code of a git command; ok reports whether it ran.
func exitCode(err error) (int, bool) {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), true
	}
	return 0, err == nil
}

// check runs a git command whose exit code is the answer: 0 for yes, 1 for no.
func (r *repo) check(ctx context.Context, args ...string) (bool, error) {
	_, err := r.run(ctx, args...)
	switch code, ran := exitCode(err); {
	case ran && code == 0:
		return true, nil
	case ran && code == 1:
		return false, nil
	default:
		return false, err
	}
}

// commit resolves a revision to a commit id.
func (r *repo) commit(ctx context.Context, revision string) (string, error) {
	return r.text(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
}

// resolve resolves several revisions to the ids of existing objects, with one git.
func (r *repo) resolve(ctx context.Context, revisions ...string) ([]string, error) {
	in := strings.NewReader(strings.Join(revisions, "\n") + "\n")
	out, err := r.pipe(ctx, in, "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, err
	}
	ids := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	for i, revision := range revisions {
		if i >= len(ids) || !changeset.IsID(ids[i]) {
			return nil, fmt.Errorf("%s does not exist", revision)
		}
	}
	return ids, nil
}

// tree returns the tree id of a commit.
func (r *repo) tree(ctx context.Context, commit string) (string, error) {
	return r.text(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", commit+"^{tree}")
}

// bearer returns the variables that pass a bearer token to git without exposing it in an argument. Git sends it to this
// URL only, even if the workspace's configuration redirects a fetch.
func bearer(url, token string) []string {
	settings := [][2]string{{"http.followRedirects", "false"}}
	if token != "" {
		settings = append(settings, [2]string{"http." + url + ".extraHeader", "Authorization: Bearer " + token})
	}
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}
