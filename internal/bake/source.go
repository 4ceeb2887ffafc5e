package bake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// cloneTime limits the git commands for one repository.
const cloneTime = 30 * time.Minute

// Git is a [Source] that clones repositories on this host, so that no credential reaches a VM.
type Git struct {
	// Dir holds copies until they have been sent.
	Dir string
	// Remote returns the clone URL of a repository OWNER/NAME and the value of its Authorization header, which may be
	// empty.
	Remote func(ctx context.Context, repo string) (url, authorization string, err error)
}

var _ Source = Git{}

// errEmpty is returned for a repository without branches.
var errEmpty = errors.New("the repository has no branch")

// Bundle clones all branches of a repository into a bundle. Closing the bundle deletes it.
func (g Git) Bundle(ctx context.Context, repo string) (_ Bundle, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cloneTime, fmt.Errorf("cloning took longer than %s", cloneTime))
	defer cancel()
	url, auth, err := g.Remote(ctx, repo)
	if err != nil {
		return Bundle{}, err
	}
	if err := os.MkdirAll(g.Dir, 0o700); err != nil {
		return Bundle{}, fmt.Errorf("create the folder for copies: %w", err)
	}
	dir, err := os.MkdirTemp(g.Dir, "bake-")
	if err != nil {
		return Bundle{}, fmt.Errorf("create a folder for a copy: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	bare, file := filepath.Join(dir, "repo.git"), filepath.Join(dir, "bundle")
	env := append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	if auth != "" { // in the environment, where other users of this host cannot read it
		env = append(env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: "+auth)
	}
	if _, err := git(ctx, env, "clone", "--quiet", "--bare", "--no-tags", "--", url, bare); err != nil {
		return Bundle{}, err
	}
	some, err := git(ctx, env, "-C", bare, "for-each-ref", "--count=1", "refs/heads")
	if err == nil && some == "" {
		err = errEmpty
	}
	if err == nil {
		_, err = git(ctx, env, "-C", bare, "bundle", "create", "--quiet", file, "--branches", "HEAD")
	}
	if err != nil {
		return Bundle{}, err
	}
	head, err := git(ctx, env, "-C", bare, "symbolic-ref", "--short", "HEAD")
	if err != nil {
		return Bundle{}, err
	}
	return openBundle(dir, file, head)
}

// git runs git and returns its output.
func git(ctx context.Context, env []string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Env, c.WaitDelay = env, 5*time.Second
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// bundleFile is a file that is deleted with its folder.
type bundleFile struct {
	*os.File
	dir string
}

func openBundle(dir, path, head string) (Bundle, error) {
	f, err := os.Open(path)
	if err != nil {
		return Bundle{}, fmt.Errorf("open the bundle: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return Bundle{}, errors.Join(fmt.Errorf("stat the bundle: %w", err), f.Close())
	}
	return Bundle{ReadCloser: &bundleFile{f, dir}, Size: info.Size(), Head: head}, nil
}

// Close closes the bundle and deletes it.
func (b *bundleFile) Close() error { return errors.Join(b.File.Close(), os.RemoveAll(b.dir)) }
