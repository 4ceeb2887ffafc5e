// Package provenance states what errand did for a pull request, and verifies such statements with what GitHub shows.
//
// A statement is an in-toto statement in a DSSE envelope, signed with a key of the deployment. It lists the chain from the issue's text over
// the approved plan to the published commits. Verification names the link of the chain that does not hold. What an agent or a VM reported,
// and errand could not observe, is marked. docs/provenance.md describes every field, and what a valid statement proves.
//
// Everything that verification reads may be hostile: sizes are bounded, and only comments of the account that opened the pull request count.
// The package calls neither GitHub nor the store. Start with [Build] and [Verify].
package provenance

import (
	"slices"
	"time"
)

// PredicateType identifies the form of [Predicate].
const PredicateType = "https://github.com/errand-bot/errand/provenance/v1"

// Predicate is the content of a statement. Its JSON names never change; a later version may add fields.
type Predicate struct {
	Deployment  Deployment  `json:"deployment"`
	PullRequest PullRequest `json:"pullRequest"`
	Task        Task        `json:"task"`
	Issue       Issue       `json:"issue"`
	// Plan and Approval are missing if the repository's settings require neither.
	Plan     *Revision `json:"plan,omitempty"`
	Approval *Approval `json:"approval,omitempty"`
	// EarlierPlans are the approved revisions that Plan replaced, oldest first: preliminary plans, and plans of earlier publications.
	EarlierPlans []EarlierPlan `json:"earlierPlans,omitempty"`
	Conditions   []Condition   `json:"conditions,omitempty"`
	Changes      []Changes     `json:"changes,omitempty"`
	Runs         []Run         `json:"runs"`
	Publications []Publication `json:"publications"`
	// Shortened names the lists that are incomplete, because a comment has a maximum length.
	Shortened []Shortened `json:"shortened,omitempty"`
}

// Deployment is the errand that signed the statement.
type Deployment struct {
	Version string `json:"version"`
	KeyID   string `json:"keyId"`
	// PublicKey is the key in PKIX form, in base64. It proves nothing by itself: see docs/provenance.md.
	PublicKey string `json:"publicKey"`
	// Keys is the address of all public keys of the deployment, if it has a public address.
	Keys string `json:"keys,omitempty"`
}

// PullRequest is the pull request that the statement is about.
type PullRequest struct {
	Repository   string `json:"repository"` // OWNER/REPO when it was signed
	RepositoryID int64  `json:"repositoryId"`
	Number       int    `json:"number"`
	Branch       string `json:"branch"`
	Base         string `json:"base"`
}

// Account is an account on GitHub. The ID stays the same when it is renamed.
type Account struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
}

// Task is the request that the pull request answers.
type Task struct {
	Life        int       `json:"life"`
	RequestedBy Account   `json:"requestedBy"`
	Via         string    `json:"via"`
	At          time.Time `json:"at"`
}

// Issue is the issue's text as it was frozen.
type Issue struct {
	Number     int       `json:"number"`
	TextSHA256 string    `json:"textSha256"`
	FrozenAt   time.Time `json:"frozenAt"`
	VouchedBy  Account   `json:"vouchedBy"`
	Files      []string  `json:"filesSha256,omitempty"` // of the attachments in it
}

// Revision is a numbered revision of a plan or of changes, as its comment shows it.
type Revision struct {
	Kind      string    `json:"kind"`
	Number    int       `json:"revision"`
	Hash      string    `json:"hash"`
	Comment   int64     `json:"commentId"`
	BodyHash  string    `json:"commentSha256"` // with every approval box empty
	PostedAt  time.Time `json:"postedAt"`
	Base      string    `json:"baseCommit"`
	IssueHash string    `json:"issueTextSha256,omitempty"`
}

// Approval is a person's approval of a revision, as errand checked it with GitHub.
type Approval struct {
	Hash       string    `json:"hash"`
	By         Account   `json:"by"`
	Permission string    `json:"permission"`
	Via        string    `json:"via"`
	GivenAt    time.Time `json:"givenAt"`
	CheckedAt  time.Time `json:"checkedAt"`
	Choice     int       `json:"choice,omitempty"`
	// Comment is the comment with the command; 0 for other ways.
	Comment     int64  `json:"commentId,omitempty"`
	CommentHash string `json:"commentSha256,omitempty"`
}

// EarlierPlan is an approved revision of a plan that a later one replaced.
type EarlierPlan struct {
	Revision
	Approval Approval `json:"approval"`
}

// Condition is a text by a person that every further prompt contains: that of `approve with`, or a message while the plan was implemented.
type Condition struct {
	By     Account   `json:"by"`
	At     time.Time `json:"at"`
	Text   string    `json:"text,omitempty"` // only the first characters if it is long
	SHA256 string    `json:"sha256"`
}

// Changes is a revision of changes that was approved before they were published.
type Changes struct {
	Revision
	Digest   string   `json:"changesetSha256"`
	Tree     string   `json:"tree"`
	Approval Approval `json:"approval"`
}

// Run is one run of an agent, or of the repository's commands.
type Run struct {
	Number       int       `json:"number"`
	Kind         string    `json:"kind"`
	Adapter      string    `json:"adapter,omitempty"`
	Model        string    `json:"model,omitempty"` // the one that errand requested; empty leaves it to the agent's program
	PromptSHA256 string    `json:"promptSha256,omitempty"`
	Plan         string    `json:"plan,omitempty"`
	StartedAt    time.Time `json:"startedAt,omitzero"`
	EndedAt      time.Time `json:"endedAt,omitzero"`
	Status       string    `json:"status,omitempty"`
}

// Source is where a value comes from, if errand did not observe it itself.
type Source string

// FromVM: a program on the VM reported it, after all of the agent's processes had ended.
const FromVM Source = "vm"

// Publication is a changeset that errand published on the branch.
type Publication struct {
	At time.Time `json:"at"`
	// Unconfirmed: errand made these commits, but does not know whether it published them. They may be missing.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Gap: errand may have published others between the publication before and this one, and does not know them.
	Gap bool `json:"gapBefore,omitempty"`
	// Update is set if GitHub made these commits when errand asked it to update the branch. Then Base is the commit of the base branch, there are no
	// run, digest, commits and checks, and Head and Tree are empty if errand does not know the result.
	Update  *Update  `json:"update,omitempty"`
	Run     int      `json:"run,omitempty"`
	Round   int      `json:"round,omitempty"`
	Plan    string   `json:"plan,omitempty"`
	Changes string   `json:"changes,omitempty"`
	Base    string   `json:"baseCommit,omitempty"`
	Digest  string   `json:"changesetSha256,omitempty"`
	Head    string   `json:"headCommit,omitempty"`
	Tree    string   `json:"tree,omitempty"`
	Commits []Commit `json:"commits,omitempty"`
	Checks  []Check  `json:"checks,omitempty"`
	// Reported is what only the agent said about the changes.
	Reported Reported `json:"reportedByAgent,omitzero"`
}

// Update is a request by errand that GitHub add the newest commits of the base to the branch.
type Update struct {
	Method string   `json:"method"`                // merge or rebase
	By     *Account `json:"requestedBy,omitempty"` // by a command; nil if nobody did
	Before string   `json:"headBefore"`
}

// listed returns the commits that the statement names, with the head, whose commit may have been left out.
func (p *Publication) listed() []Commit {
	if p.Head == "" {
		return p.Commits
	}
	if slices.ContainsFunc(p.Commits, func(c Commit) bool { return c.ID == p.Head }) {
		return p.Commits
	}
	return append(slices.Clone(p.Commits), Commit{ID: p.Head, Tree: p.Tree})
}

// Commit is a published commit and its tree.
type Commit struct {
	ID   string `json:"commit"`
	Tree string `json:"tree"`
}

// Check is the result of one of the repository's commands on the tree of the changeset.
type Check struct {
	Name     string `json:"name"`
	Outcome  string `json:"outcome"`
	ExitCode int    `json:"exitCode,omitempty"`
	From     Source `json:"from"`
}

// Reported is the agent's description of its work.
type Reported struct {
	Title         string `json:"title,omitempty"`
	SummarySHA256 string `json:"summarySha256,omitempty"`
}

// Shortened is a list that the statement contains only in part.
type Shortened struct {
	List   string `json:"list"`
	Total  int    `json:"total,omitempty"`  // 0 if it is not known
	SHA256 string `json:"sha256,omitempty"` // of the complete list as compact JSON; empty if errand no longer had all of it
}

// head returns the newest publication that errand knows to have happened, nil if there is none.
func (p *Predicate) head() *Publication {
	for i := len(p.Publications) - 1; i >= 0; i-- {
		if q := &p.Publications[i]; !q.Unconfirmed {
			return q
		}
	}
	return nil
}
