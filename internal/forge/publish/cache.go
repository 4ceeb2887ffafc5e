package publish

import (
	"maps"
	"slices"
	"sync"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge/client"
)

// Limits of the cache.
const (
	maxTreeIDs  = 1000
	maxListings = 8
	maxListed   = 20_000 // entries; larger trees are not cached
)

// commitKey is a commit of one repository.
type commitKey struct {
	repo   int64
	commit string
}

// Cache holds data from GitHub that never changes: the tree of a commit, its contents, and the GraphQL IDs of
// repositories. Everything in it was read from GitHub or follows from tree IDs that GitHub confirmed. It is safe for
// concurrent use.
type Cache struct {
	mu       sync.Mutex
	trees    map[commitKey]string
	treeAges []commitKey // oldest first
	listings map[commitKey]map[string]TreeEntry
	listAges []commitKey
	nodes    map[int64]string // GraphQL IDs of repositories, by database ID
}

// NewCache makes an empty Cache.
func NewCache() *Cache {
	return &Cache{nodes: map[int64]string{}, trees: map[commitKey]string{}, listings: map[commitKey]map[string]TreeEntry{}}
}

func (c *Cache) tree(r client.Repo, commit string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trees[commitKey{r.ID, commit}]
}

// RememberTree stores the ID of a commit's tree.
func (c *Cache) RememberTree(r client.Repo, commit, tree string) {
	if commit == "" || tree == "" || r.ID == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := commitKey{r.ID, commit}
	if c.trees[key] == "" {
		c.treeAges = append(c.treeAges, key)
	}
	c.trees[key] = tree
	if len(c.treeAges) > maxTreeIDs {
		delete(c.trees, c.treeAges[0])
		c.treeAges = c.treeAges[1:]
	}
}

// cachedEntries returns a copy of the contents of a commit's tree, nil if they are not cached.
func (c *Cache) cachedEntries(r client.Repo, commit string) map[string]TreeEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.listings[commitKey{r.ID, commit}])
}

// rememberListing stores the contents of a commit's tree.
func (c *Cache) rememberListing(r client.Repo, commit string, tree map[string]TreeEntry) {
	if r.ID == 0 || len(tree) > maxListed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := commitKey{r.ID, commit}
	c.listAges = append(slices.DeleteFunc(c.listAges, func(o commitKey) bool { return o == key }), key)
	c.listings[key] = maps.Clone(tree)
	if len(c.listAges) > maxListings {
		delete(c.listings, c.listAges[0])
		c.listAges = c.listAges[1:]
	}
}

// rememberPublished stores the tree of a changeset's head. GitHub has confirmed the tree of each commit, of which the
// first was created on top of onto.
func (c *Cache) rememberPublished(r client.Repo, cs *changeset.Changeset, onto string, p Published) {
	c.RememberTree(r, p.Head, p.Tree)
	tree := c.cachedEntries(r, onto)
	if tree == nil {
		return
	}
	for i := range cs.Commits {
		for _, ch := range cs.Commits[i].Changes {
			if ch.Deleted() {
				delete(tree, ch.Path)
			}
		}
		for _, ch := range cs.Commits[i].Changes {
			if !ch.Deleted() {
				tree[ch.Path] = TreeEntry{Mode: string(ch.Mode), ID: ch.Blob}
			}
		}
	}
	c.rememberListing(r, p.Head, tree)
}

// repository returns the GraphQL ID of a repository, empty if it is not cached.
func (c *Cache) repository(r client.Repo) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[r.ID]
}

// RememberRepository stores the GraphQL ID of a repository.
func (c *Cache) RememberRepository(r client.Repo, node string) {
	if r.ID == 0 || node == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[r.ID] = node
}
