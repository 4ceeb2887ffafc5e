package publish

import (
	"testing"

	"github.com/errand-bot/errand/internal/forge/client"
)

// TestCacheIsPerRepository checks that the tree of a commit is cached only for its repository; another need not have
// that commit.
func TestCacheIsPerRepository(t *testing.T) {
	t.Parallel()
	k := NewCache()
	here, there := client.Repo{ID: 1, Owner: "octo", Name: "app"}, client.Repo{ID: 2, Owner: "initech", Name: "app"}
	k.RememberTree(here, "c1", "t1")
	k.rememberListing(here, "c1", map[string]TreeEntry{"a": {ID: "b1"}})
	if k.tree(here, "c1") != "t1" || k.cachedEntries(here, "c1")["a"].ID != "b1" {
		t.Error("the tree is not cached")
	}
	if k.tree(there, "c1") != "" || k.cachedEntries(there, "c1") != nil {
		t.Error("the tree is cached for another repository")
	}
}
