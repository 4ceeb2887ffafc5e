// Package pushgate judges a changeset before anything of it is published.
//
// A changeset comes from a VM on which an agent did as it liked, so every rule here assumes that
// it may be hostile. The package is pure: it reads nothing but its arguments, gives the same
// answer every time, and never changes the changeset. What the base branch holds is told to it
// through Policy.
//
// Each rule is one file. A commit message is judged here and, in what is no danger but a nuisance
// (mentions, closing keywords, trailers), made harmless by SafeMessage. Whether a changeset is
// well formed at all is changeset's own affair; Judge only refuses what it cannot judge.
// Start reading at Judge.
package pushgate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/secretscan"
)

// The rules, as people see them in a refusal.
const (
	RuleForm       = "form" // see Unreadable
	RuleMerges     = "merges"
	RulePaths      = "paths"
	RuleModes      = "modes"
	RuleSubmodules = "submodules"
	RuleProtected  = "protected-paths"
	RuleSize       = "size"
	RuleSymlinks   = "symlinks"
	RuleLFS        = "lfs"
	RuleSecrets    = "secrets"
	RuleTestFiles  = "test-files"
	RuleMessages   = "messages"
)

// Refusal is one reason why a changeset is not published. It is shown to people and to the agent,
// and never holds a secret.
type Refusal struct {
	// Rule is one of the Rule constants.
	Rule string
	// Path is the path that the refusal is about, empty when it is about a commit or the whole.
	Path string
	// Detail says what is wrong, as a clause without a full stop.
	Detail string
	// Remedy says what to do about it, likewise.
	Remedy string
}

// Entry is a path's mode and blob in a tree.
type Entry struct {
	Mode changeset.Mode
	Blob string
}

// Tree is a commit's whole tree by path, as the orchestrator read it from GitHub. Only files,
// symlinks and submodules are in it, no directories.
type Tree map[string]Entry

// Policy is what a changeset is judged by. The zero value of each field is its strict default.
type Policy struct {
	// Operator is what the operator has set. DefaultProtected is protected besides.
	Operator Settings
	// Repository is what the repository has set itself, which can only be stricter.
	Repository Settings
	// MaxCommits is the most commits; 0 means DefaultMaxCommits.
	MaxCommits int
	// Scanner finds secrets. Without one everything that adds content is refused.
	Scanner *secretscan.Scanner
	// Lent is the content by path of files that an operator lent to the checkout: neither is published, the
	// content under no path.
	Lent map[string]string
	// Base is the tree at the changeset's Base. Without it everything in a modified file counts as
	// added, and collisions and links are only seen within the changeset.
	Base Tree
	// Content returns a blob that the orchestrator has from the base. It may be nil.
	Content func(blob string) ([]byte, bool)
	// Merge is the commit of the base branch that may be merged in.
	Merge Merge
	// LFSObjects are the large files that GitHub has already.
	LFSObjects map[changeset.Pointer]bool
	// MaxLFSBytes is the most bytes of new large files; 0 means DefaultMaxLFSBytes.
	MaxLFSBytes int64
}

// The defaults of Policy's limits.
const (
	DefaultMaxPaths    = 300
	DefaultMaxBytes    = 20 << 20
	DefaultMaxCommits  = 100
	DefaultMaxLFSBytes = 40 << 20 // as much as the runner hands over
)

// The most that the limits of Settings can be set to: more is not read from a VM.
const (
	CeilingPaths = 20_000
	CeilingBytes = 64 << 20
)

// maxPerRule bounds the refusals of one rule, so that a comment about them stays readable.
const maxPerRule = 20

// Judge returns the reasons not to publish cs, ordered by rule (as in the list of constants), path
// and detail, without repetition, at most 20 per rule and then one that counts the rest. None
// means that it may be published.
func Judge(cs *changeset.Changeset, policy Policy) []Refusal {
	subject := newSubject(cs, policy)
	var all []Refusal
	for _, rule := range rules() {
		found := rule(subject)
		slices.SortFunc(found, func(a, b Refusal) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Detail, b.Detail), cmp.Compare(a.Remedy, b.Remedy))
		})
		for _, refusal := range capped(slices.Compact(found)) {
			all = append(all, blank(policy.Scanner, refusal))
		}
	}
	return all
}

// rules lists the rules in the order of their refusals.
func rules() []func(*subject) []Refusal {
	return []func(*subject) []Refusal{
		judgeMerges, judgePaths, judgeModes, judgeSubmodules, judgeProtected,
		judgeSize, judgeSymlinks, judgeLFS, judgeSecrets, judgeLent, judgeMessages,
	}
}

func capped(found []Refusal) []Refusal {
	if len(found) <= maxPerRule {
		return found
	}
	rest := Refusal{Rule: found[0].Rule, Detail: fmt.Sprintf("and %d more of this rule", len(found)-maxPerRule), Remedy: found[0].Remedy}
	return append(found[:maxPerRule:maxPerRule], rest)
}

func (p Policy) withDefaults() Policy {
	p.Operator.MaxPaths = cmp.Or(p.Operator.MaxPaths, DefaultMaxPaths)
	p.Operator.MaxBytes = cmp.Or(p.Operator.MaxBytes, DefaultMaxBytes)
	p.MaxCommits = cmp.Or(p.MaxCommits, DefaultMaxCommits)
	p.MaxLFSBytes = cmp.Or(p.MaxLFSBytes, DefaultMaxLFSBytes)
	return p
}
