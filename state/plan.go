package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// PlanKind tells apart what people approve.
type PlanKind string

// The kinds of plans.
const (
	PlanPreliminary PlanKind = "preliminary"
	PlanThorough    PlanKind = "thorough"
	// PlanPublish is no plan but what one came to: the diff of a changeset that waits to be published.
	PlanPublish PlanKind = "publish"
)

// Plan is one numbered revision. Its text is what gets executed, whatever the comment on GitHub
// says later.
type Plan struct {
	Kind     PlanKind  `json:"kind"`
	Revision int       `json:"revision"` // from 1, counted per kind
	Hash     string    `json:"hash"`     // PlanHash of what is shown; its first 8 digits where an older version made it
	Salt     int       `json:"salt,omitempty"`
	Text     string    `json:"text"` // Markdown, as the agent wrote it (redacted)
	Summary  string    `json:"summary,omitempty"`
	Changes  string    `json:"changes,omitempty"` // what differs from the last revision, in words
	Run      string    `json:"run"`
	Made     time.Time `json:"made"`
	// Approaches are the numbered ways of a preliminary plan, at most 3. Empty when there is one.
	Approaches []string `json:"approaches,omitempty"`
	Files      []string `json:"files,omitempty"`    // expected to be touched
	Estimate   string   `json:"estimate,omitempty"` // in words, with money
	// BaseSHA and IssueHash are what the plan was based on.
	BaseSHA   string `json:"base_sha"`
	IssueHash string `json:"issue_hash"`

	// Publish is what PlanPublish is about, nil for plans. Text is then its diff, as far as it is shown.
	Publish *Changes `json:"publish,omitempty"`

	// Comment is set once it is posted.
	Comment     int64     `json:"comment,omitempty"`
	CommentNode string    `json:"comment_node,omitempty"`
	CommentURL  string    `json:"comment_url,omitempty"`
	BodyHash    string    `json:"body_hash,omitempty"` // of the comment with every box as "[ ]"
	PostedAt    time.Time `json:"posted_at,omitzero"`  // GitHub's created_at, whole seconds

	// Stale says why this revision can never be approved again; empty while it can.
	Stale string `json:"stale,omitempty"`
	// Superseded is set when a newer revision is being made or was posted.
	Superseded bool `json:"superseded,omitempty"`
}

// Changes is a stored changeset that people are asked about.
type Changes struct {
	Ref    string   `json:"ref"`           // names the stored changeset, and its diff in full
	Digest string   `json:"digest"`        // of all of the changeset
	Tree   string   `json:"tree"`          // that it makes
	Stat   []string `json:"stat"`          // a line per path: what was done to it
	Cut    int      `json:"cut,omitempty"` // lines of the diff that Text leaves out
	// Approved is the approval that counted; it is kept when the changes are published.
	Approved *Approval `json:"approved,omitempty"`
}

// Posted reports whether the revision is on GitHub.
func (p *Plan) Posted() bool { return p.Comment != 0 }

// Open reports whether an approval of this revision could count.
func (p *Plan) Open() bool { return p.Posted() && p.Stale == "" && !p.Superseded }

// shownDigits is how many digits of a revision's hash people see, namedDigits how many they have to write at least.
const (
	shownDigits = 8
)

// ShortHash returns the digits of a revision's hash that people see. They differ from those of every other revision of the task.
func ShortHash(hash string) string { return hash[:min(len(hash), shownDigits)] }

// Short is ShortHash of the revision's.
func (p *Plan) Short() string { return ShortHash(p.Hash) }

// Intact reports whether a revision is what its hash was made of. Of those that older versions made the digits do not tell.
func (p *Plan) Intact() bool { return len(p.Hash) == shownDigits || p.Hash == PlanHash(*p) }

// PlanHash returns the hash to which an approval of a revision is bound: SHA-256 in hexadecimal digits over kind,
// revision, text, approaches, what it was based on, of changes their data, and the salt, if any.
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

// FreezeHash returns the hash of an issue's title and body with line ends made alike.
func FreezeHash(title, body string) string {
	norm := func(s string) string { return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n ") }
	sum := sha256.Sum256([]byte(norm(title) + "\x00" + norm(body)))
	return hex.EncodeToString(sum[:])
}

// SaidHash returns the hash of a comment's text, with line ends made alike.
func SaidHash(body string) string { return FreezeHash("", body) }

// ApprovalVia is how an approval was given.
type ApprovalVia string

// The ways to approve.
const (
	ViaReaction ApprovalVia = "reaction" // a 👍, read by the poll
	ViaBox      ApprovalVia = "box"      // the ticked box in the plan comment
	ViaCommand  ApprovalVia = "command"  // `approve` in a comment
	ViaSettings ApprovalVia = "settings" // the repository's settings ask for no approval
)

// Approval is a person's yes to one revision, checked against GitHub at At.
type Approval struct {
	Kind       PlanKind    `json:"kind"`
	Hash       string      `json:"hash"`
	By         Person      `json:"by"`
	Permission Permission  `json:"permission"`
	Via        ApprovalVia `json:"via"`
	Given      time.Time   `json:"given"` // when the person did it, as GitHub says
	At         time.Time   `json:"at"`    // when we checked it
	Delivery   string      `json:"delivery,omitempty"`
	// With holds conditions ("approve with: …"); they reach the implementer.
	With string `json:"with,omitempty"`
	// Choice is the number of the chosen approach, 0 for none.
	Choice int `json:"choice,omitempty"`
	// Node is the GraphQL id of the comment with the command, and Said the SaidHash of its text when it was read. Both are
	// empty for other ways to approve, and in approvals stored by older versions.
	Node string `json:"node,omitempty"`
	Said string `json:"said,omitempty"`
	// Before is the approval in whose place this one came: it holds again if this one is taken back.
	Before *Approval `json:"before,omitempty"`
}

// Candidate is an approval that has not been checked yet.
type Candidate struct {
	Approval
	Comment int64 `json:"comment"` // of the plan (reaction, box) or of the command
	// Named is the hash that the person wrote, or that of the box; empty for a bare approve and a 👍.
	Named string `json:"named,omitempty"`
	Reply int64  `json:"reply,omitempty"` // the comment to answer
	// Waited counts how often it was checked and then waited for what others had said before.
	Waited int `json:"waited,omitempty"`
}

// Question is what the agent or errand itself asks people.
type Question struct {
	Text    string    `json:"text"`
	Kind    string    `json:"kind"` // agent, existing, key, refused, conflict
	Asked   time.Time `json:"asked"`
	Comment int64     `json:"comment,omitempty"`
	// Options are answers that the agent proposes.
	Options []string `json:"options,omitempty"`
}

// Feedback is something that the next run has to answer.
type Feedback struct {
	ID     string    `json:"id"`   // outside id, such as comment:123 or thread:PRRT_x
	Kind   string    `json:"kind"` // comment, review, thread, checks, refusal, conflict, answer, condition
	By     Person    `json:"by"`
	At     time.Time `json:"at"`
	Body   string    `json:"body"`
	Path   string    `json:"path,omitempty"`
	Line   int       `json:"line,omitempty"`
	Hunk   string    `json:"hunk,omitempty"`
	Thread int64     `json:"thread,omitempty"` // top-level review comment to reply to
	Items  []string  `json:"items,omitempty"`  // paths of a conflict
	OnPR   bool      `json:"on_pr,omitempty"`
	// Taken is the run that got it; an entry is dropped when that run was published.
	Taken string `json:"taken,omitempty"`
}

// Outcome is what a plan concluded.
type Outcome string

// The outcomes. All but OutcomeBuild end the task with the answer as a comment.
const (
	OutcomeBuild           Outcome = "build"
	OutcomeReport          Outcome = "report"
	OutcomeAlreadyFixed    Outcome = "already_fixed"
	OutcomeNotReproducible Outcome = "not_reproducible"
)

// PlanByHash returns the revision that a hash names in full, nil if there is none. Where an older version gave several the same, it is
// the newest.
func (t *Task) PlanByHash(hash string) *Plan {
	for i := len(t.Plans) - 1; i >= 0; i-- {
		if t.Plans[i].Hash == hash {
			return &t.Plans[i]
		}
	}
	return nil
}

// Approved reports whether a revision of changes was approved; of plans Task.Approval says so.
func (p *Plan) Approved() bool { return p.Publish != nil && p.Publish.Approved != nil }
