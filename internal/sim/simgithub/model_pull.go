package simgithub

import (
	"slices"
	"time"
)

// Pull has the fields of a pull request that an issue does not have. Its branches are in the same repository: forks are
// not simulated.
type Pull struct {
	ID                 int64
	NodeID             string
	Base               string // branch
	Head               string // branch
	BaseSHA            string // follows the base branch while open, stays when closed
	HeadSHA            string // follows the branch while open, stays when closed
	Draft              bool
	Merged             bool
	MergedAt           time.Time
	MergedBy           string
	MergeCommit        string
	RequestedReviewers []string
	Reviews            []*Review
	Threads            []*Thread
	AutoMerge          *AutoMerge  // nil: not enabled
	Queued             *QueueEntry // nil: not in the merge queue of its base

	issue  *Issue
	judged string // the two commits for which mergeability was requested
}

// Review states, as REST writes them.
const (
	ReviewApproved         = "APPROVED"
	ReviewChangesRequested = "CHANGES_REQUESTED"
	ReviewCommented        = "COMMENTED"
	ReviewDismissed        = "DISMISSED"
	ReviewPending          = "PENDING"
)

// Review is a submitted (or pending) review.
type Review struct {
	ID          int64
	NodeID      string
	Author      string
	Body        string
	State       string
	CommitID    string
	ViaApp      bool
	SubmittedAt time.Time

	pull *Pull
}

// Thread is a conversation at a line of the diff.
type Thread struct {
	ID               int64
	NodeID           string
	Path             string
	Side             string // RIGHT or LEFT
	Line             int    // in the present head; 0 when outdated, or for a thread about a whole file
	StartLine        int    // of a range, else 0
	OriginalLine     int
	OriginalCommitID string
	DiffHunk         string
	Resolved         bool
	ResolvedBy       string
	Outdated         bool
	Comments         []*ReviewComment

	pull *Pull
}

// ReviewComment is a comment of a thread. The first one is the root, to which all others reply.
type ReviewComment struct {
	ID        int64
	NodeID    string
	ReviewID  int64
	Author    string
	Body      string
	CommitID  string
	InReplyTo int64 // id of the root, 0 for the root itself
	Minimized bool
	Edits     []Edit
	Reactions []*Reaction
	ViaApp    bool
	CreatedAt time.Time
	UpdatedAt time.Time

	thread *Thread
}

func (p *Pull) clone() *Pull {
	c := *p
	c.RequestedReviewers = slices.Clone(p.RequestedReviewers)
	if p.AutoMerge != nil {
		a := *p.AutoMerge
		c.AutoMerge = &a
	}
	if p.Queued != nil {
		e := *p.Queued
		c.Queued = &e
	}
	c.Reviews = cloneAll(p.Reviews)
	c.Threads = make([]*Thread, len(p.Threads))
	for i, t := range p.Threads {
		c.Threads[i] = t.clone()
	}
	return &c
}

func (t *Thread) clone() *Thread {
	c := *t
	c.Comments = make([]*ReviewComment, len(t.Comments))
	for i, k := range t.Comments {
		v := *k
		v.Edits = slices.Clone(k.Edits)
		v.Reactions = cloneAll(k.Reactions)
		c.Comments[i] = &v
	}
	return &c
}
