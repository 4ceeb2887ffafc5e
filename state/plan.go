package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PlanKind is the kind of a revision that people approve.
type PlanKind string

// The kinds of plans.
const (
	PlanPreliminary PlanKind = "preliminary"
	PlanThorough    PlanKind = "thorough"
	// PlanPublish is the diff of a changeset that waits to be published.
	PlanPublish PlanKind = "publish"
)

// Plan is one numbered revision. The agent executes the text stored here, even if the comment on GitHub is edited
// later.
type Plan struct {
	Kind     PlanKind  `json:"kind"`
	Revision int       `json:"revision"` // from 1, counted per kind
	Hash     string    `json:"hash"`     // see PlanHash; older versions stored only its first 8 digits
	Salt     int       `json:"salt,omitempty"`
	Text     string    `json:"text"` // Markdown, as the agent wrote it (redacted)
	Summary  string    `json:"summary,omitempty"`
	Changes  string    `json:"changes,omitempty"` // the differences from the previous revision, in words
	Run      string    `json:"run"`
	Made     time.Time `json:"made"`
	// Approaches are the titles of a preliminary plan's approaches, at most 3; empty if there is only one.
	Approaches []string `json:"approaches,omitempty"`
	Files      []string `json:"files,omitempty"`    // expected to change
	Estimate   string   `json:"estimate,omitempty"` // in words, with money
	// BaseSHA is the commit, and IssueHash the FreezeHash, on which the plan is based.
	BaseSHA   string `json:"base_sha"`
	IssueHash string `json:"issue_hash"`

	// Publish is the changeset of a PlanPublish, nil for plans. Text is then its diff, as far as the comment shows it.
	Publish *Changes `json:"publish,omitempty"`

	// Comment is the id of the comment on GitHub, 0 until the revision is posted.
	Comment     int64     `json:"comment,omitempty"`
	CommentNode string    `json:"comment_node,omitempty"`
	CommentURL  string    `json:"comment_url,omitempty"`
	BodyHash    string    `json:"body_hash,omitempty"` // of the comment with every box as "[ ]"
	PostedAt    time.Time `json:"posted_at,omitzero"`  // GitHub's created_at, whole seconds

	// Stale is the reason why this revision can never be approved again, one of the Stale… constants; empty while it can.
	Stale string `json:"stale,omitempty"`
	// Reminded is set when people were reminded of this revision, which happens once.
	Reminded bool `json:"reminded,omitempty"`
	// Superseded is set when a newer revision is being made or was posted.
	Superseded bool `json:"superseded,omitempty"`
}

// Changes is a stored changeset that waits for approval.
type Changes struct {
	Ref    string   `json:"ref"`           // the name of the stored changeset and of its complete diff
	Digest string   `json:"digest"`        // of the whole changeset
	Tree   string   `json:"tree"`          // the resulting tree
	Stat   []string `json:"stat"`          // one line per path with its change
	Cut    int      `json:"cut,omitempty"` // lines of the diff that Text leaves out
	// Approved is the valid approval; it is kept when the changes are published.
	Approved *Approval `json:"approved,omitempty"`
}

// Posted reports whether the revision is on GitHub.
func (p *Plan) Posted() bool { return p.Comment != 0 }

// Open reports whether this revision can be approved.
func (p *Plan) Open() bool { return p.Posted() && p.Stale == "" && !p.Superseded }

// shownDigits is the number of digits of a revision's hash in comments.
const shownDigits = 8

// ShortHash returns the digits of a revision's hash that comments show. They are unique within the task.
func ShortHash(hash string) string { return hash[:min(len(hash), shownDigits)] }

// Short returns the ShortHash of the revision.
func (p *Plan) Short() string { return ShortHash(p.Hash) }

// Intact reports whether a revision still matches its hash. It cannot detect changes of revisions of older versions, which
// stored only the first digits.
func (p *Plan) Intact() bool { return len(p.Hash) == shownDigits || p.Hash == PlanHash(*p) }

// PlanHash returns the hash to which an approval of a revision is bound: the SHA-256, in hexadecimal digits, of its kind,
// number, text, approaches, base commit, issue text, changeset (if any), and salt (if any).
func PlanHash(p Plan) string {
	h := sha256.New()
	for _, s := range []string{string(p.Kind), strconv.Itoa(p.Revision), p.Text, p.BaseSHA, p.IssueHash, strings.Join(p.Approaches, "\x00")} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	if c := p.Publish; c != nil {
		fmt.Fprintf(h, "%s %s", c.Digest, c.Tree)
	}
	if p.Salt != 0 {
		fmt.Fprintf(h, "\x00%d", p.Salt)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// CommentHash returns the hash of a comment's text with normalized line ends.
func CommentHash(body string) string { return FreezeHash("", body) }

// ApprovalVia is how an approval was given.
type ApprovalVia string

// The ways to approve.
const (
	ViaReaction ApprovalVia = "reaction" // a 👍, read by the poll
	ViaBox      ApprovalVia = "box"      // the ticked box in the plan comment
	ViaCommand  ApprovalVia = "command"  // `approve` in a comment
	ViaSettings ApprovalVia = "settings" // the repository's settings require no approval
)

// Approval is a person's approval of one revision, checked against GitHub at At.
type Approval struct {
	Kind       PlanKind    `json:"kind"`
	Hash       string      `json:"hash"`
	By         Person      `json:"by"`
	Permission Permission  `json:"permission"`
	Via        ApprovalVia `json:"via"`
	Given      time.Time   `json:"given"` // when the person gave it, by GitHub's clock
	At         time.Time   `json:"at"`    // when errand checked it
	Delivery   string      `json:"delivery,omitempty"`
	// With is the condition of `approve with: …`, which the implementing agent gets.
	With string `json:"with,omitempty"`
	// Choice is the number of the chosen approach, 0 for none.
	Choice int `json:"choice,omitempty"`
	// CommentID and Node are the ids of the comment with the command in GitHub's two APIs, and CommentHash is the hash of its
	// text when it was read. They are empty for other ways to approve, and in approvals stored by older versions.
	CommentID   int64  `json:"comment_id,omitempty"`
	Node        string `json:"node,omitempty"`
	CommentHash string `json:"said,omitempty"`
	// Before is the approval that this one replaced: it is valid again if this one is withdrawn.
	Before *Approval `json:"before,omitempty"`
}

// ConditionID returns the feedback ID of the approval's condition.
func (a Approval) ConditionID() string { return "with:" + a.Hash }

// ConditionComment returns the id of the comment that contains a condition of an approval, or 0 for other feedback and for
// approvals stored by older versions.
func (t *Task) ConditionComment(f Feedback) int64 {
	for a := t.Approval; a != nil && f.Kind == FeedbackCondition; a = a.Before {
		if a.ConditionID() == f.ID {
			return a.CommentID
		}
	}
	return 0
}

// Candidate is an approval that has not been checked yet.
type Candidate struct {
	Approval
	Comment int64 `json:"comment"` // of the plan (reaction, box) or of the command
	// Named is the hash that the person wrote, or that of the box; empty for `approve` alone and for a 👍.
	Named string `json:"named,omitempty"`
	Reply int64  `json:"reply,omitempty"` // the comment to answer
	// Waited counts how often the check was repeated because earlier comments of others were still being vetted.
	Waited int `json:"waited,omitempty"`
}

// Question is a question to people, by the agent or by errand itself.
type Question struct {
	Text    string    `json:"text"`
	Kind    string    `json:"kind"` // agent, existing, key, refused, conflict
	AskedAt time.Time `json:"asked"`
	Comment int64     `json:"comment,omitempty"`
	// Options are answers that the agent proposes.
	Options []string `json:"options,omitempty"`
}

// FeedbackKind is the origin of feedback.
type FeedbackKind string

// The kinds of feedback.
const (
	FeedbackComment   FeedbackKind = "comment"
	FeedbackAnswer    FeedbackKind = "answer"    // to a question
	FeedbackEdit      FeedbackKind = "edit"      // of the issue
	FeedbackCondition FeedbackKind = "condition" // of an approval, or a message while its plan is implemented; in every prompt
	FeedbackReview    FeedbackKind = "review"
	FeedbackThread    FeedbackKind = "thread"   // a review thread
	FeedbackChecks    FeedbackKind = "checks"   // failed commands of the repository
	FeedbackCI        FeedbackKind = "ci"       // a failing check of the pull request
	FeedbackRefusal   FeedbackKind = "refusal"  // of the push gate
	FeedbackConflict  FeedbackKind = "conflict" // of a rebase, or with the base
)

// Feedback is something that the next run has to answer.
type Feedback struct {
	ID     string       `json:"id"` // id of the comment or thread on GitHub, such as comment:123 or thread:PRRT_x
	Kind   FeedbackKind `json:"kind"`
	By     Person       `json:"by"`
	At     time.Time    `json:"at"`
	Body   string       `json:"body"`
	Path   string       `json:"path,omitempty"`
	Line   int          `json:"line,omitempty"`
	Hunk   string       `json:"hunk,omitempty"`
	Thread int64        `json:"thread,omitempty"` // top-level review comment to reply to
	Items  []string     `json:"items,omitempty"`  // paths of a conflict
	Base   string       `json:"base,omitempty"`   // of a conflict with the base: its commit, which the run may merge
	Head   string       `json:"head,omitempty"`   // of a failing check or a conflict: the branch's commit that has it
	OnPR   bool         `json:"on_pr,omitempty"`
	URL    string       `json:"url,omitempty"` // of a failing check
	// Mention is set if the comment addresses errand, and Node is its GraphQL id; both only of comments that are gathered.
	Mention bool   `json:"mention,omitempty"`
	Node    string `json:"node,omitempty"`
	// Steers is set for a message to a working agent: it interrupts the run during which it was written. While a plan is
	// implemented, its Kind is FeedbackCondition. Until it is delivered, TakenBy is empty.
	Steers bool `json:"steers,omitempty"`
	// After is set for a message that no run receives before the present one has ended by itself.
	After bool `json:"after,omitempty"`
	// TakenBy is the id of the run whose prompt contains it; the entry is dropped when the result of that run is published.
	TakenBy string `json:"taken,omitempty"`
}

// PendingFeedback returns the feedback that no run has received yet, except conditions of an approval, which are in every
// prompt with the plan.
func (t *Task) PendingFeedback() []Feedback {
	var list []Feedback
	for _, f := range t.Feedback {
		if f.TakenBy == "" && f.Kind != FeedbackCondition {
			list = append(list, f)
		}
	}
	return list
}

// Outcome is the conclusion of an agent.
type Outcome string

// The outcomes. OutcomeReport, OutcomeAlreadyFixed and OutcomeNotReproducible end the task with the answer as a comment.
const (
	OutcomeBuild           Outcome = "build"
	OutcomeReport          Outcome = "report"
	OutcomeAlreadyFixed    Outcome = "already_fixed"
	OutcomeNotReproducible Outcome = "not_reproducible"
	OutcomeQuestion        Outcome = "question" // a person must answer first
	OutcomeBlocked         Outcome = "blocked"  // the agent cannot continue without a person
	OutcomeDone            Outcome = "done"     // the work is done

	// The conclusions of a run that considers comments on a plan or on an open question. The last two leave it as it is.
	OutcomeRevised   Outcome = "revised"   // like OutcomeBuild: the text is the next revision
	OutcomeAnswered  Outcome = "answered"  // the text answers the comments
	OutcomeUnchanged Outcome = "unchanged" // nothing has to be said or changed
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeBuild, OutcomeReport, OutcomeAlreadyFixed, OutcomeNotReproducible, OutcomeQuestion, OutcomeBlocked, OutcomeDone,
		OutcomeRevised, OutcomeAnswered, OutcomeUnchanged,
	}
}

// PlanByHash returns the revision with a complete hash, nil if there is none. If older versions gave several revisions the
// same hash, it returns the newest.
func (t *Task) PlanByHash(hash string) *Plan {
	for i := len(t.Plans) - 1; i >= 0; i-- {
		if t.Plans[i].Hash == hash {
			return &t.Plans[i]
		}
	}
	return nil
}

// Gathering is the time in which comments on a waiting plan or changes, or on an open question, are gathered for one run.
type Gathering struct {
	Since time.Time `json:"since"` // the first of them
	Until time.Time `json:"until"` // moves with each of them, up to a limit
}

// Steering is the delivery of messages to a working agent.
type Steering struct {
	Since time.Time `json:"since"` // the first message
	Until time.Time `json:"until"` // when the messages are read again; moves with each of them, up to a limit
	// Ready is set once they have been read again: the run is interrupted as soon as its agent executes no tool.
	Ready bool `json:"ready,omitempty"`
}

// Undelivered returns the messages to a working agent that no run has received yet, oldest first.
func (t *Task) Undelivered() (list []Feedback) {
	for _, f := range t.Feedback {
		if f.Steers && f.TakenBy == "" {
			list = append(list, f)
		}
	}
	return list
}

// ConsideredPlan returns the newest revision if the agent considers comments on it: it stays open until the agent makes
// another one. It returns nil in every other case.
func (t *Task) ConsideredPlan() *Plan {
	p := t.NewestPlan()
	if p == nil || p.Superseded || p.Kind == PlanPublish || t.Phase != p.Kind.PlanningPhase() {
		return nil
	}
	return p
}

// PlanningPhase returns the phase in which plans of a kind are made.
func (k PlanKind) PlanningPhase() Phase {
	if k == PlanThorough {
		return PhasePlanning
	}
	return PhasePreliminaryPlanning
}

// Approved reports whether a revision of changes was approved. The approval of a plan is in Task.Approval.
func (p *Plan) Approved() bool { return p.Publish != nil && p.Publish.Approved != nil }
