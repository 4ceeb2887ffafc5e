package simgithub

import (
	"strconv"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// Entries lists the entries of a tree, without those of its folders.
func (o *objectR) Entries() (*[]*treeEntryR, error) {
	list, err := o.r.Git.List(o.sha, false)
	if err != nil {
		return nil, err
	}
	out := make([]*treeEntryR, 0, len(list))
	for _, l := range list {
		out = append(out, &treeEntryR{o, l})
	}
	return &out, nil
}

// treeEntryR is an entry of a tree.
type treeEntryR struct {
	in *objectR
	l  git.Entry
}

// Name is without the folders above.
func (e *treeEntryR) Name() string { return e.l.Path }

// Type is blob, tree or commit.
func (e *treeEntryR) Type() string { return e.l.Kind }

// Mode is git's mode as a number.
func (e *treeEntryR) Mode() int32 {
	n, err := strconv.ParseInt(e.l.Mode, 8, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// Oid is the object's id.
func (e *treeEntryR) Oid() word { return word(e.l.SHA) }

// Object is the entry's object.
func (e *treeEntryR) Object() *objectR { return e.in.x.object(e.in.r, e.l.SHA) }
