package simgithub

import (
	"slices"
	"time"
)

// Issue is an issue, or the issue side of a pull request (then Pull is set).
type Issue struct {
	ID          int64
	NodeID      string
	Number      int
	Title       string
	Body        string
	Author      string
	State       string // open or closed
	StateReason string // completed, not_planned, reopened or empty
	Locked      bool
	LockReason  string
	Type        string // issue type, such as Bug; often empty
	Milestone   string
	Labels      []string
	Assignees   []string
	Comments    []*Comment
	Events      []*Event
	Reactions   []*Reaction
	Edits       []Edit // of the body
	BlockedBy   []int64
	SubIssues   []int64
	Parent      int64 // issue id, or zero
	Pull        *Pull
	ViaApp      bool // made with an App's token
	CreatedAt   time.Time
	UpdatedAt   time.Time
	ClosedAt    time.Time // zero while open
	ClosedBy    string

	repo *Repo
}

// Comment is a comment of the conversation of an issue or pull request.
type Comment struct {
	ID              int64
	NodeID          string
	Author          string
	Body            string
	Edits           []Edit
	Reactions       []*Reaction
	Minimized       bool
	MinimizedReason string
	ViaApp          bool
	CreatedAt       time.Time
	UpdatedAt       time.Time

	issue *Issue
}

// Edit is one change of a text. From is the text before it.
type Edit struct {
	At     time.Time
	Editor string
	From   string
}

// Reaction is a user's reaction. A user has at most one of each content on an object.
type Reaction struct {
	ID        int64
	NodeID    string
	User      string
	Content   string // +1, -1, laugh, confused, heart, hooray, rocket or eyes
	CreatedAt time.Time
}

// Event is an entry of an issue's history.
type Event struct {
	ID         int64
	NodeID     string
	Event      string // labeled, assigned, closed, renamed, cross-referenced, …
	Actor      string
	CreatedAt  time.Time
	Label      string
	Assignee   string
	RenameFrom string
	RenameTo   string
	CommitID   string
	LockReason string
	Reviewer   string // of review_requested
	Source     int64  // issue id that referred to this one
	ViaApp     bool
}

// lastEdit is the newest edit; ok is false if there was none.
func lastEdit(edits []Edit) (e Edit, ok bool) {
	if len(edits) == 0 {
		return Edit{}, false
	}
	return edits[len(edits)-1], true
}

func (i *Issue) clone() *Issue {
	c := *i
	c.Labels = slices.Clone(i.Labels)
	c.Assignees = slices.Clone(i.Assignees)
	c.Edits = slices.Clone(i.Edits)
	c.BlockedBy = slices.Clone(i.BlockedBy)
	c.SubIssues = slices.Clone(i.SubIssues)
	c.Events = cloneAll(i.Events)
	c.Reactions = cloneAll(i.Reactions)
	c.Comments = make([]*Comment, len(i.Comments))
	for n, k := range i.Comments {
		c.Comments[n] = k.clone()
	}
	if i.Pull != nil {
		c.Pull = i.Pull.clone()
	}
	return &c
}

func (k *Comment) clone() *Comment {
	c := *k
	c.Edits = slices.Clone(k.Edits)
	c.Reactions = cloneAll(k.Reactions)
	return &c
}
