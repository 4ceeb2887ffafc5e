package work

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// Source is where commits are fetched from: the tether's git reads.
type Source struct {
	URL string `json:"url"`
	// Token is sent as a bearer token. It never appears in an argument or a file.
	Token string `json:"token,omitempty"`
	// Ref is the remote ref that has the commit, such as refs/heads/main. Without it the commit
	// itself is asked for, which not every server allows.
	Ref string `json:"ref,omitempty"`
	// Depth and Filter make a shallow or partial clone; zero is a full one.
	Depth  int    `json:"depth,omitempty"`
	Filter string `json:"filter,omitempty"`
}

// PrepareSpec is what `workspace prepare` reads.
type PrepareSpec struct {
	Dir string `json:"dir"`
	Source
	// Branch is the agent's branch, and Base the commit at which it begins.
	Branch string `json:"branch"`
	Base   string `json:"base"`
	// UserName and UserEmail are for the agent's commits.
	UserName  string `json:"user_name,omitempty"`
	UserEmail string `json:"user_email,omitempty"`
	// Config is further configuration of the workspace.
	Config map[string]string `json:"config,omitempty"`
}

// Place is where a workspace stands.
type Place struct {
	Head string `json:"head"`
	Tree string `json:"tree"`
	// Created is true if the branch was made by this call.
	Created bool `json:"created,omitempty"`
	// LargeFiles is true if Git LFS keeps files of the checkout. Only Prepare says so.
	LargeFiles bool `json:"large_files,omitempty"`
}

// Prepare makes a workspace with the branch checked out at base. It may be called again after any
// crash: a workspace that has the branch keeps it, with the agent's work, wherever it stands.
func Prepare(ctx context.Context, spec PrepareSpec) (Place, error) {
	place, err := prepare(ctx, spec)
	if err != nil {
		return Place{}, fmt.Errorf("prepare workspace %s: %w", spec.Dir, err)
	}
	return place, nil
}

func prepare(ctx context.Context, spec PrepareSpec) (Place, error) {
	if err := checkNames(spec.Dir, spec.Base, spec.Branch); err != nil {
		return Place{}, err
	}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return Place{}, fmt.Errorf("create directory: %w", err)
	}
	r, leave, err := enter(ctx, spec.Dir)
	if err != nil {
		return Place{}, err
	}
	defer leave()
	if !complete(spec.Dir) {
		if _, err := r.run(ctx, "init", "--quiet", "--template=", "--initial-branch="+spec.Branch, "."); err != nil {
			return Place{}, err
		}
	}
	if err := configure(ctx, r, spec); err != nil {
		return Place{}, err
	}
	if _, err := r.commit(ctx, "refs/heads/"+spec.Branch); err == nil {
		return prepared(ctx, r)
	}
	seeded := r.seed(ctx, spec.URL)
	if err := r.fetch(ctx, spec.Source, spec.Base); err != nil {
		return Place{}, err
	}
	seeded(ctx)
	// Files first, branch last: the branch says that all of this is done.
	if _, err := r.run(ctx, "checkout", "--quiet", "--force", "--detach", spec.Base); err != nil {
		return Place{}, fmt.Errorf("check out: %w", err)
	}
	if _, err := r.run(ctx, "checkout", "--quiet", "-B", spec.Branch, spec.Base); err != nil {
		return Place{}, fmt.Errorf("create branch: %w", err)
	}
	p, err := prepared(ctx, r)
	p.Created = true
	return p, err
}

// prepared is where a workspace stands, and whether it has large files.
func prepared(ctx context.Context, r *repo) (Place, error) {
	p, err := place(ctx, r, "HEAD")
	if err != nil {
		return Place{}, err
	}
	files, err := r.text(ctx, "ls-files", "--", ":(top,attr:filter=lfs)")
	if err != nil {
		return Place{}, fmt.Errorf("look for large files: %w", err)
	}
	p.LargeFiles = files != ""
	return p, nil
}

// complete reports whether a repository was made to its end. An init that was killed is done again,
// which keeps what there is.
func complete(dir string) bool {
	for _, part := range []string{"HEAD", "config", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, ".git", part)); err != nil {
			return false
		}
	}
	return true
}

// checkNames refuses what git could take for an option or a path out of place.
func checkNames(dir, commit, branch string) error {
	switch {
	case !filepath.IsAbs(dir):
		return fmt.Errorf("directory %q is not absolute", dir)
	case !changeset.IsID(commit):
		return fmt.Errorf("%q is no commit id", commit)
	case branch == "" || strings.HasPrefix(branch, "-") || strings.HasPrefix(branch, "refs/"):
		return fmt.Errorf("%q is no branch name", branch)
	}
	return nil
}

func configure(ctx context.Context, r *repo, spec PrepareSpec) error {
	settings := map[string]string{
		"user.name":         orText(spec.UserName, "errand"),
		"user.email":        orText(spec.UserEmail, "errand@localhost"),
		"remote.origin.url": spec.URL,
		"push.default":      "nothing",
		"gc.auto":           "0",
	}
	maps.Copy(settings, spec.Config)
	present := r.settings(ctx)
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if slices.Equal(present[key], []string{settings[key]}) {
			continue
		}
		if _, err := r.run(ctx, "config", "--local", "--replace-all", key, settings[key]); err != nil {
			return fmt.Errorf("configure %s: %w", key, err)
		}
	}
	return nil
}

// settings reads all values of the repository's own configuration by key; nil if git cannot read it.
func (r *repo) settings(ctx context.Context) map[string][]string {
	out, err := r.run(ctx, "config", "--local", "--no-includes", "--list", "-z")
	if err != nil {
		return nil // whoever sets a value next says why
	}
	all := map[string][]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			all[key] = append(all[key], value)
		}
	}
	return all
}

// fetch makes sure that a commit is there. A named ref is fetched even if the commit is, so that the
// agent sees a remote-tracking branch of it.
func (r *repo) fetch(ctx context.Context, from Source, commit string) error {
	if !changeset.IsID(commit) {
		return fmt.Errorf("fetch: %q is no commit id", commit)
	}
	_, err := r.commit(ctx, commit)
	present := err == nil
	if from.URL == "" {
		if present {
			return nil
		}
		return fmt.Errorf("fetch %s: it is not here, and no URL is given", commit)
	}
	if from.Ref != "" {
		if err := r.fetchSpec(ctx, from, trackingSpec(from.Ref)); err != nil {
			return fmt.Errorf("fetch %s: %w", from.Ref, err)
		}
	} else if present {
		return nil
	}
	if _, err := r.commit(ctx, commit); err == nil {
		return nil
	}
	// The ref has moved on, or has been moved back, since the commit was named.
	if err := r.fetchSpec(ctx, from, commit); err != nil {
		return fmt.Errorf("fetch commit %s: %w", commit, err)
	}
	_, err = r.commit(ctx, commit)
	return err
}

// trackingSpec is the refspec that keeps a remote branch where people expect it.
func trackingSpec(ref string) string {
	if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
		return "+" + ref + ":refs/remotes/origin/" + branch
	}
	return "+" + ref
}

func (r *repo) fetchSpec(ctx context.Context, from Source, refspec string) error {
	authorised := openRepo(r.dir, bearer(from.URL, from.Token)...)
	args := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"}
	if from.Depth > 0 {
		args = append(args, "--depth="+strconv.Itoa(from.Depth))
	}
	if from.Filter != "" {
		args = append(args, "--filter="+from.Filter)
	}
	_, err := authorised.run(ctx, append(args, "--end-of-options", from.URL, refspec)...)
	return err
}

func place(ctx context.Context, r *repo, revision string) (Place, error) {
	head, err := r.commit(ctx, revision)
	if err != nil {
		return Place{}, fmt.Errorf("read head: %w", err)
	}
	tree, err := r.tree(ctx, head)
	if err != nil {
		return Place{}, fmt.Errorf("read tree: %w", err)
	}
	return Place{Head: head, Tree: tree}, nil
}
