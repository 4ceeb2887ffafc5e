// Package changeset represents the commits of a run as data. A VM has no push access: its commits leave it as a
// changeset.
//
// A changeset is the chain of commits between the head that the orchestrator knows (Base) and the head of the agent's
// branch, each with its parents, its message and the paths that differ from its first parent. A receiver must treat it
// as untrusted, because the agent may have written it. [Changeset.Validate] checks its form; internal/pushgate judges
// its content; internal/forge publishes it.
//
// The package runs no git command and depends on neither GitHub nor VMs. Start here: [Changeset], and [Decode] for one
// that comes from a VM.
package changeset

// Mode is a git file mode in its octal text form.
type Mode string

// The modes that git stores in a tree.
const (
	ModeFile       Mode = "100644"
	ModeExecutable Mode = "100755"
	ModeSymlink    Mode = "120000"
	ModeSubmodule  Mode = "160000"
)

// Changeset is the work of one run. An empty Commits list means that nothing changed.
type Changeset struct {
	// Base is the commit that both sides know: the published head, or the base branch's commit.
	Base string `json:"base"`
	// Commits are in order, parents first. The last one is the head of the agent's branch.
	Commits []Commit `json:"commits"`
	// Blobs holds the content of every path that was added or modified, keyed by git blob id.
	// encoding/json writes it as base64.
	Blobs map[string][]byte `json:"blobs"`
	// LFS holds the content of large files that LFS pointers among the blobs refer to, keyed by SHA-256 in hexadecimal.
	// An object is missing if it was not on the VM or was too large; pushgate then refuses its pointer unless GitHub
	// has the object.
	LFS map[string][]byte `json:"lfs,omitempty"`
	// Notes are remarks of the collector, such as "a rewritten history became one commit". They are shown to people.
	Notes []string `json:"notes,omitempty"`
}

// Commit is one commit of the chain.
type Commit struct {
	// ID is the commit's id on the VM. The published id differs; see forge.
	ID string `json:"id"`
	// Parents are commit ids: the first is the previous commit of the chain (or Base); a second
	// one, if any, is a commit that the orchestrator itself read from the base branch.
	Parents []string `json:"parents"`
	// Tree is the id of the commit's whole tree as the VM computed it. The publisher compares it
	// with the tree that GitHub built from the data.
	Tree string `json:"tree"`
	// Message is the full commit message.
	Message string `json:"message"`
	// Changes are the paths that differ from the first parent, sorted by path.
	Changes []Change `json:"changes"`
}

// Change is one path that a commit added, modified or deleted. A rename is a deletion and an addition.
type Change struct {
	// Path is slash-separated and relative to the repository's root.
	Path string `json:"path"`
	// Mode is the path's new mode, empty for a deletion.
	Mode Mode `json:"mode,omitempty"`
	// Blob is the id of the new content, empty for a deletion. For a submodule it is the commit id.
	Blob string `json:"blob,omitempty"`
	// OldMode is the mode at the first parent, empty for an addition.
	OldMode Mode `json:"old_mode,omitempty"`
}

// Deleted reports whether the change removes its path.
func (c Change) Deleted() bool { return c.Mode == "" }

// Head returns the id of the last commit, or Base when there is none.
func (c *Changeset) Head() string {
	if len(c.Commits) == 0 {
		return c.Base
	}
	return c.Commits[len(c.Commits)-1].ID
}
