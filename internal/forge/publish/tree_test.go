package publish_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
)

// treeRequests records the paths of each request that creates a tree.
type treeRequests struct {
	mu    sync.Mutex
	paths [][]string
}

func (r *treeRequests) watch(c *forge.Config) {
	next := c.Transport
	c.Transport = forgetest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/git/trees") {
			return next.RoundTrip(req)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		var sent struct {
			Tree []struct {
				Path string `json:"path"`
			} `json:"tree"`
		}
		if err := json.Unmarshal(body, &sent); err != nil {
			return nil, err
		}
		var paths []string
		for _, e := range sent.Tree {
			paths = append(paths, e.Path)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.paths = append(r.paths, paths)
		return next.RoundTrip(req)
	})
}

// TestPublishFilesReplacedByDirectories checks that no request that creates a tree has a path both as a file and as a
// directory, whatever else the commit changes.
func TestPublishFilesReplacedByDirectories(t *testing.T) {
	t.Parallel()
	replace := func(c *checkout, path, by string) {
		c.git("rm", "--quiet", "-r", path)
		c.write(path+by, "instead\n")
	}
	link := func(c *checkout, path string) {
		if err := os.Symlink("README.md", filepath.Join(c.dir, path)); err != nil {
			c.t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		commits  []func(c *checkout)
		requests int
	}{
		"directory to file":  {[]func(c *checkout){func(c *checkout) { replace(c, "dir", "") }}, 2},
		"file to directory":  {[]func(c *checkout){func(c *checkout) { replace(c, "old.txt", "/deep/now") }}, 2},
		"directory to link":  {[]func(c *checkout){func(c *checkout) { c.git("rm", "--quiet", "-r", "dir"); link(c, "dir") }}, 2},
		"link to directory":  {[]func(c *checkout){func(c *checkout) { link(c, "a") }, func(c *checkout) { replace(c, "a", "/b") }}, 3},
		"link to file":       {[]func(c *checkout){func(c *checkout) { link(c, "a") }, func(c *checkout) { replace(c, "a", "") }}, 2},
		"nested directories": {[]func(c *checkout){func(c *checkout) { c.write("x/y/z/1", "1"); c.write("x/2", "2") }, func(c *checkout) { replace(c, "x", "") }}, 3},
		"case of letters":    {[]func(c *checkout){func(c *checkout) { c.git("mv", "old.txt", "OLD.txt"); c.git("mv", "dir", "Dir") }}, 1},
		"common prefix":      {[]func(c *checkout){func(c *checkout) { c.git("rm", "--quiet", "-r", "dir"); c.write("dir-a", "a"); c.write("dir.b/c", "b") }}, 1},
		"both directions": {[]func(c *checkout){func(c *checkout) {
			replace(c, "dir", "")
			replace(c, "old.txt", "/now")
			c.git("mv", "README.md", "READ.md")
		}}, 2},
		"submodule to directory": {[]func(c *checkout){
			func(c *checkout) {
				c.git("update-index", "--add", "--cacheinfo", "160000,"+c.base+",sub")
				if err := os.Mkdir(filepath.Join(c.dir, "sub"), 0o755); err != nil {
					c.t.Fatal(err)
				}
				c.git("commit", "--quiet", "-m", "Add")
			},
			func(c *checkout) { c.git("rm", "--quiet", "--cached", "sub"); c.write("sub/file", "x\n") },
		}, 3},
		"all files": {[]func(c *checkout){func(c *checkout) { c.git("rm", "--quiet", "-r", "."); c.write("dir", "x\n") }}, 2},
		"many files": {[]func(c *checkout){
			func(c *checkout) {
				for i := range 130 {
					c.write(fmt.Sprintf("many/%03d", i), strings.Repeat("x", i))
				}
			},
			func(c *checkout) {
				replace(c, "many", "")
				for i := range 120 {
					c.write(fmt.Sprintf("other/%03d", i), "y\n")
				}
				c.write("large.txt", strings.Repeat("0123456789abcde\n", 60_000))
				c.write("large2.txt", strings.Repeat("0123456789abcde\n", 60_000))
			},
		}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &treeRequests{}
			w := forgetest.NewWorld(t, seen.watch)
			c := clone(t, w)
			for _, work := range tc.commits {
				work(c)
				c.commit("Do the work")
			}
			before := forgetest.Must(w.Forge.CreateCommits(t.Context(), w.Repo, c.changeset(), c.base, nil))(t)
			if before.Tree != c.git("rev-parse", "HEAD^{tree}") {
				t.Errorf("got %+v", before)
			}
			for _, paths := range seen.paths {
				for _, p := range paths {
					if i := slices.IndexFunc(paths, func(o string) bool { return strings.HasPrefix(o, p+"/") }); i >= 0 {
						t.Errorf("one request contains %s and %s", p, paths[i])
					}
				}
				if len(paths) > 100 {
					t.Errorf("a request has %d entries", len(paths))
				}
			}
			if len(seen.paths) != tc.requests {
				t.Errorf("%d requests, want %d: %q", len(seen.paths), tc.requests, seen.paths)
			}
		})
	}
}
