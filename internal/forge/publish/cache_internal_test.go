package publish

import (
	"testing"

	"github.com/errand-bot/errand/internal/forge/client"
)

// TestCommitsAreKnownByTheirRepository: what GitHub said of a commit of one repository tells nothing of another, which need not have
// that commit.
func TestCommitsAreKnownByTheirRepository(t *testing.T) {
	t.Parallel()
	k := NewCache()
	here, there := client.Repo{ID: 1, Owner: "octo", Name: "app"}, client.Repo{ID: 2, Owner: "initech", Name: "app"}
	k.RememberTree(here, "c1", "t1")
	k.rememberListing(here, "c1", map[string]TreeEntry{"a": {ID: "b1"}})
	if k.tree(here, "c1") != "t1" || k.listing(here, "c1")["a"].ID != "b1" {
		t.Error("what was said is not known")
	}
	if k.tree(there, "c1") != "" || k.listing(there, "c1") != nil {
		t.Error("what was said of one repository is taken for another's")
	}
}
