package provenance

// Verdict is the result of checking one link of the chain.
type Verdict string

// The verdicts.
const (
	Holds   Verdict = "holds"
	Altered Verdict = "altered"
	// Stated: the statement says it, and GitHub shows nothing to compare it with. It does not affect the result.
	Stated Verdict = "only stated"
	// Gone: GitHub no longer shows what errand saw, such as a 👍 that was removed. That is no proof of an alteration.
	Gone    Verdict = "no longer visible"
	Unknown Verdict = "unknown"
	// Others: a commit that errand did not publish, and whose account GitHub shows. It does not affect the result.
	Others Verdict = "by others"
)

// Link is one checked link of the chain.
type Link struct {
	Name    string  `json:"link"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail"`
}

// The names of the links.
const (
	LinkStatement   = "statement"
	LinkSignature   = "signature"
	LinkPullRequest = "pull request"
	LinkIssue       = "issue"
	LinkPlan        = "plan"
	LinkApproval    = "approval"
	LinkChanges     = "changes"
	LinkCommits     = "commits"
	LinkCommit      = "commit"
	LinkUpdate      = "update"
	LinkMerge       = "merge"
)

// Result is the result of all links together.
type Result string

// The results.
const (
	ChainHolds Result = "holds"
	// ChainUnpinned: everything fits, but nobody has said that the key is that of errand. It confirms nothing against people who can push.
	ChainUnpinned Result = "holds, with a key that only the statement names"
	ChainBroken   Result = "does not hold"
	ChainUnknown  Result = "could not be confirmed"
)

// Report is the result of a verification. Its JSON names never change.
type Report struct {
	PullRequest string `json:"pullRequest"`
	Result      Result `json:"result"`
	// App is the account that opened the pull request and wrote the statement.
	App   *Person `json:"app,omitempty"`
	KeyID string  `json:"keyId,omitempty"`
	// Pinned is set if the key was given to the verification, instead of being named by the statement.
	Pinned bool   `json:"keyPinned"`
	Merged bool   `json:"merged"`
	Links  []Link `json:"links"`
	// Statement is the statement's predicate if its signature is valid.
	Statement *Predicate `json:"statement,omitempty"`
}

// Others returns the number of commits that errand did not publish, and about which it states nothing.
func (r *Report) Others() (n int) {
	for _, l := range r.Links {
		if l.Verdict == Others {
			n++
		}
	}
	return n
}

// Unproven returns the number of links that do not affect the result, although GitHub does not prove them: what is only stated, or by others.
func (r *Report) Unproven() (n int) {
	for _, l := range r.Links {
		if l.Verdict == Others || l.Verdict == Stated {
			n++
		}
	}
	return n
}

func (r *Report) add(name string, v Verdict, detail string) {
	r.Links = append(r.Links, Link{name, v, detail})
	switch {
	case v == Altered:
		r.Result = ChainBroken
	case (v == Gone || v == Unknown) && r.Result == ChainHolds:
		r.Result = ChainUnknown
	}
}
