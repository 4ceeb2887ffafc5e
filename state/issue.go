package state

import "time"

// Issue is an issue as a webhook or a sweep shows it.
type Issue struct {
	Node      string   `json:"node"`
	Title     string   `json:"title"`
	Body      string   `json:"body"`
	Author    Person   `json:"author"`
	Labels    []string `json:"labels,omitempty"`
	Type      string   `json:"type,omitempty"`
	Milestone string   `json:"milestone,omitempty"`
	Closed    bool     `json:"closed,omitempty"`
	// Unvouched is set if title or body may have changed after the action of Event.By, so that this person has not
	// necessarily seen the present text.
	Unvouched bool `json:"unvouched,omitempty"`
}

// Comment is a comment as a webhook or a sweep shows it.
type Comment struct {
	ID   int64     `json:"id"`
	Node string    `json:"node,omitempty"`
	Body string    `json:"body"`
	At   time.Time `json:"at"`
	OnPR bool      `json:"on_pr,omitempty"`
	// Thread is the top-level review comment that this one answers, or is; 0 for a conversation comment.
	Thread int64 `json:"thread,omitempty"`
	// InIssue is set for the issue's own text, which is read for mentions like a comment. ID and Node are empty then.
	InIssue bool `json:"in_issue,omitempty"`
	// Mention is set when it addresses the bot at the start of a line.
	Mention bool `json:"mention,omitempty"`
	// Withdrawn is set by the job vet if the comment has no effect because it was deleted, hidden or edited before it was
	// read: RejectedCommentDeleted or RejectedCommentEdited.
	Withdrawn string `json:"withdrawn,omitempty"`
	// Quoted is set when commands are inside quotes or code only: no command was given. Words is set with it if there is plain
	// text besides.
	Quoted bool `json:"quoted,omitempty"`
	Words  bool `json:"words,omitempty"`
	// Remark is the kind of a comment that requests nothing from the agent; empty for a message to it.
	Remark Remark `json:"remark,omitempty"`
}

// ReviewState is the verdict of a review.
type ReviewState string

// The verdicts of reviews.
const (
	ReviewApproved         ReviewState = "approved"
	ReviewChangesRequested ReviewState = "changes_requested"
	ReviewCommented        ReviewState = "commented"
	ReviewDismissed        ReviewState = "dismissed" // it was one of the others, which does not count any more
)

// Remark is a kind of comment that is no request to the agent.
type Remark string

// The kinds of remarks.
const (
	RemarkThanks    Remark = "thanks"    // only thanks, perhaps with praise
	RemarkReaction  Remark = "reaction"  // only praise, an emoji, or +1
	RemarkApproving Remark = "approving" // only "LGTM", "ok, go ahead" and the like, which is no approval
	RemarkToOthers  Remark = "to_others" // it begins by addressing somebody else
)

// Review is a submitted review.
type Review struct {
	ID    int64       `json:"id"`
	State ReviewState `json:"state"`
	Body  string      `json:"body"`
	At    time.Time   `json:"at"`
	Head  string      `json:"head"`
	// Remark is the kind of a body that requests nothing from the agent; empty for a message to it.
	Remark Remark `json:"remark,omitempty"`
	// Machine is set if the account to which people assign issues for errand wrote it. Its approval is nobody's.
	Machine bool `json:"machine,omitempty"`
}
