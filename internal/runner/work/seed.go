package work

import (
	"context"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// seedDir is where a base image has copies of repositories, beside the workspace: bare, as OWNER/NAME.git in
// lower case.
const seedDir = ".errand/seed"

// seedRefs are what a copy's branches are called in the workspace until the fetch is over.
const seedRefs = "refs/errand/seed/"

// seed takes what the base image has of the repository behind a URL, so that a fetch only has to bring what is newer.
// What is taken is found by its content, so that it does not matter whether the copy is old or was tampered with.
// It is best effort: without it the fetch brings everything. done takes the names away again.
func (r *repo) seed(ctx context.Context, source string) (done func(context.Context)) {
	dir := seedOf(filepath.Dir(r.dir), source)
	if dir == "" {
		return func(context.Context) {}
	}
	args := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--end-of-options"}
	_, _ = r.run(ctx, append(args, dir, "+refs/heads/*:"+seedRefs+"*")...)
	return func(ctx context.Context) {
		names, err := r.run(ctx, "for-each-ref", "--format=delete %(refname)", seedRefs)
		if err == nil && len(names) > 0 {
			_, _ = r.pipe(ctx, strings.NewReader(string(names)), "update-ref", "--stdin")
		}
	}
}

// seedOf finds the copy of the repository that the last two parts of a URL's path name, empty if there is none.
func seedOf(home, source string) string {
	u, err := url.Parse(source)
	if err != nil {
		return ""
	}
	owner, name := path.Split(strings.TrimSuffix(strings.ToLower(path.Clean(u.Path)), ".git"))
	owner = path.Base(owner)
	if name == "" || strings.Trim(owner, "./") == "" || strings.Trim(name, "./") == "" {
		return ""
	}
	dir := filepath.Join(home, filepath.FromSlash(seedDir), owner, name+".git")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}
