package forge

import (
	"maps"
	"slices"
	"sync"

	"github.com/errand-bot/errand/internal/changeset"
)

// How much is remembered of what GitHub said about commits.
const (
	maxTreeIDs  = 1000
	maxListings = 8
	maxListed   = 20_000 // entries; larger trees are read each time
)

// commitKey names a commit of one repository.
type commitKey struct {
	repo   int64
	commit string
}

// known remembers what cannot change, because it is named by its content: which tree a commit has, and
// what is in it. All of it was said by GitHub, or follows from tree ids that GitHub confirmed.
type known struct {
	mu       sync.Mutex
	trees    map[commitKey]string
	treeAges []commitKey // oldest first
	listings map[commitKey]map[string]TreeEntry
	listAges []commitKey
}

func newKnown() *known {
	return &known{trees: map[commitKey]string{}, listings: map[commitKey]map[string]TreeEntry{}}
}

func (k *known) tree(r Repo, commit string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.trees[commitKey{r.ID, commit}]
}

// noteTree remembers a commit's tree.
func (k *known) noteTree(r Repo, commit, tree string) {
	if commit == "" || tree == "" || r.ID == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := commitKey{r.ID, commit}
	if k.trees[key] == "" {
		k.treeAges = append(k.treeAges, key)
	}
	k.trees[key] = tree
	if len(k.treeAges) > maxTreeIDs {
		delete(k.trees, k.treeAges[0])
		k.treeAges = k.treeAges[1:]
	}
}

// listing returns a copy of what is in a commit's tree, nil if that is not known.
func (k *known) listing(r Repo, commit string) map[string]TreeEntry {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.listings[commitKey{r.ID, commit}])
}

// noteListing remembers what is in a commit's tree.
func (k *known) noteListing(r Repo, commit string, tree map[string]TreeEntry) {
	if r.ID == 0 || len(tree) > maxListed {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := commitKey{r.ID, commit}
	k.listAges = append(slices.DeleteFunc(k.listAges, func(o commitKey) bool { return o == key }), key)
	k.listings[key] = maps.Clone(tree)
	if len(k.listAges) > maxListings {
		delete(k.listings, k.listAges[0])
		k.listAges = k.listAges[1:]
	}
}

// published remembers the head of a changeset that was put on top of onto, and whose every tree GitHub
// confirmed.
func (k *known) published(r Repo, cs *changeset.Changeset, onto string, p Published) {
	k.noteTree(r, p.Head, p.Tree)
	tree := k.listing(r, onto)
	if tree == nil {
		return
	}
	for _, c := range cs.Commits {
		for _, ch := range c.Changes {
			if ch.Deleted() {
				delete(tree, ch.Path)
			}
		}
		for _, ch := range c.Changes {
			if !ch.Deleted() {
				tree[ch.Path] = TreeEntry{Mode: string(ch.Mode), ID: ch.Blob}
			}
		}
	}
	k.noteListing(r, p.Head, tree)
}
