package work

import (
	"context"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// seedDir is the folder of a base image's copies of repositories, next to the workspace: bare repositories, named
// OWNER/NAME.git in lower case.
const seedDir = ".errand/seed"

// seedRefs is the namespace of a copy's branches in the workspace until the fetch has finished.
const seedRefs = "refs/errand/seed/"

// seed imports the base image's copy of the repository, so that a fetch only transfers newer objects. Objects are
// identified by their content, so a stale or manipulated copy does no harm. It is best effort: without a copy, the
// fetch transfers everything. done removes the imported refs.
func (r *repo) seed(ctx context.Context, source string) (done func(context.Context)) {
	dir := findSeed(filepath.Dir(r.dir), source)
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

// findSeed returns the copy of the repository that the last two parts of a URL's path name, or "".
func findSeed(home, source string) string {
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
