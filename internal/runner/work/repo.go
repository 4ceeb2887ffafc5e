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
	"time"

	"github.com/errand-bot/errand/internal/runner/proc"
)

// Repo runs git in one workspace with the safeguards of this package, for other packages that transfer an agent's work.
// It accesses only this workspace, whatever its configuration says, and runs no filter.
type Repo struct {
	repo *repo
	dir  string
}

// ErrNoRepository means that a workspace has no repository of its own.
var ErrNoRepository = errors.New("the workspace has no repository of its own")

// maxFilterKeys bounds the filter settings in a configuration.
const maxFilterKeys = 1000

// Enter locks a workspace for one command, until leave is called. Filters in its configuration are disabled, so no git
// command starts a program of the workspace. Missing objects are not fetched for a partial clone.
func Enter(ctx context.Context, dir string) (r *Repo, leave func(), err error) {
	if !filepath.IsAbs(dir) {
		return nil, nil, fmt.Errorf("directory %q is not absolute", dir)
	}
	gitDir := filepath.Join(dir, ".git")
	if info, err := os.Lstat(gitDir); err != nil || !info.IsDir() || !isComplete(dir) {
		return nil, nil, fmt.Errorf("%s: %w", dir, ErrNoRepository)
	}
	inner, leave, err := enter(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	inner.env = append(inner.env, "GIT_DIR="+gitDir, "GIT_WORK_TREE="+dir, "GIT_NO_LAZY_FETCH=1",
		"GIT_COMMITTER_NAME=errand", "GIT_COMMITTER_EMAIL=errand@localhost")
	off, err := inner.withoutFilters(ctx)
	if err != nil {
		leave()
		return nil, nil, err
	}
	inner.env = append(inner.env, off...)
	return &Repo{repo: inner, dir: dir}, leave, nil
}

// withoutFilters returns the variables that disable every configured filter.
func (r *repo) withoutFilters(ctx context.Context) ([]string, error) {
	out, err := r.run(ctx, "config", "--null", "--name-only", "--get-regexp", `^filter\.`)
	if code, ran := exitCode(err); ran && code == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read filters: %w", err)
	}
	keys := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	if len(keys) > maxFilterKeys {
		return nil, fmt.Errorf("the workspace's configuration has %d filter settings", len(keys))
	}
	env := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(keys))}
	for i, key := range keys {
		value := ""
		if strings.HasSuffix(key, ".required") {
			value = "false"
		}
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return env, nil
}

// Run runs one git command with the input in, which may be nil, and returns its output.
func (r *Repo) Run(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	return r.repo.pipe(ctx, in, args...)
}

// Holds runs a git command whose exit code is the answer: 0 for yes, 1 for no.
func (r *Repo) Holds(ctx context.Context, args ...string) (bool, error) {
	return r.repo.check(ctx, args...)
}

// Commit resolves a revision to a commit id.
func (r *Repo) Commit(ctx context.Context, revision string) (string, error) {
	return r.repo.commit(ctx, revision)
}

// Fetch ensures that a commit exists in the workspace, and fetches it if it is missing.
func (r *Repo) Fetch(ctx context.Context, from Source, commit string) error {
	if _, err := r.repo.commit(ctx, commit); err == nil {
		return nil
	}
	return r.repo.fetch(ctx, from, commit)
}

// Stream runs one git command, for at most the given time, and writes its output to out as it arrives.
func (r *Repo) Stream(ctx context.Context, most time.Duration, in io.Reader, out io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var stderr bytes.Buffer
	err := proc.RunAlone(func() *exec.Cmd {
		cmd := r.repo.command(ctx, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &stderr
		return cmd
	})
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		words := strings.TrimSpace(stderr.String())
		return &gitError{command: args[0], stderr: strings.ToValidUTF8(words[max(0, len(words)-stderrKept):], ""), err: err}
	}
	return nil
}

// InProgressFiles returns the names in the git directory that represent an unfinished git operation.
func InProgressFiles() []string {
	names := []string{"MERGE_MSG", "MERGE_MODE", "ORIG_HEAD", "AUTO_MERGE", "sequencer"}
	for _, op := range operations {
		names = append(names, op.marks...)
	}
	return names
}
