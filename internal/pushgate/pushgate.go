// Package pushgate decides whether a changeset may be published.
//
// A changeset comes from a VM on which an agent had full control, so every rule assumes that it may be hostile. The
// package is pure: it reads only its arguments, is deterministic, and never modifies the changeset. The state of the
// base branch is passed in [Policy].
//
// Each rule has its own file. Commit messages are judged here; text that is a nuisance rather than a danger (mentions,
// closing keywords, trailers) is neutralized by [SafeMessage]. The form of a changeset is checked by package changeset;
// Judge refuses only what it cannot judge.
//
// Start here: [Judge].
package pushgate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/secretscan"
)

// The rules, by the names that refusals show to people.
const (
	RuleForm       = "form" // not in rules: Unreadable refuses a changeset that could not be read
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

// Refusal is one reason why a changeset is not published. It is shown to people and to the agent, and never contains a
// secret.
type Refusal struct {
	// Rule is one of the Rule constants.
	Rule string
	// Path is the affected path, empty if the refusal concerns a commit or the whole changeset.
	Path string
	// Detail describes the problem, as a clause without a full stop.
	Detail string
	// Remedy describes how to solve it, in the same form.
	Remedy string
}

// Entry is the mode and blob of a path in a tree.
type Entry struct {
	Mode changeset.Mode
	Blob string
}

// Tree is a commit's whole tree by path, as the orchestrator read it from GitHub. It contains files, symlinks and
// submodules, but no directories.
type Tree map[string]Entry

// Policy contains the settings and the state of the base that a changeset is judged against. The zero value of each
// field is its strictest default.
type Policy struct {
	// Operator holds the operator's settings. [DefaultProtected] applies in addition.
	Operator Settings
	// Repository holds the repository's own settings, which can only be stricter.
	Repository Settings
	// MaxCommits is the maximum number of commits; 0 means [DefaultMaxCommits].
	MaxCommits int
	// Scanner finds secrets. Without one, every changeset with commits is refused.
	Scanner *secretscan.Scanner
	// LentFiles holds the content, by path, of files that an operator lent to the checkout. Neither their paths nor
	// their content may be published, the content under any path.
	LentFiles map[string]string
	// Base is the tree at the changeset's Base. Without it, everything in a modified file counts as added, and
	// collisions and links are detected only within the changeset.
	Base Tree
	// Content returns a blob of the base that the orchestrator has. It may be nil.
	Content func(blob string) ([]byte, bool)
	// Merge is the commit of the base branch that may be merged.
	Merge Merge
	// LFSObjects are the large files that GitHub already has.
	LFSObjects map[changeset.Pointer]bool
	// MaxLFSBytes is the maximum total size of new large files in bytes; 0 means [DefaultMaxLFSBytes].
	MaxLFSBytes int64
}

// The defaults of Policy's limits.
const (
	DefaultMaxPaths    = 300
	DefaultMaxBytes    = 20 << 20
	DefaultMaxCommits  = 100
	DefaultMaxLFSBytes = 40 << 20 // the maximum that the runner transfers
)

// The upper bounds for the limits in [Settings]: more cannot be read from a VM.
const (
	CeilingPaths = 20_000
	CeilingBytes = 64 << 20
)

// maxPerRule bounds the refusals of one rule, to keep comments readable.
const maxPerRule = 20

// Judge returns the reasons not to publish cs, or nil if it may be published. They are ordered by rule (as in the list
// of constants), path and detail, without duplicates. Each rule has at most 20, followed by one with the number of the
// others.
func Judge(cs *changeset.Changeset, policy Policy) []Refusal {
	subject := newSubject(cs, policy)
	var all []Refusal
	for _, rule := range rules() {
		found := rule(subject)
		slices.SortFunc(found, func(a, b Refusal) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Detail, b.Detail), cmp.Compare(a.Remedy, b.Remedy))
		})
		for _, refusal := range capRefusals(slices.Compact(found)) {
			all = append(all, redactRefusal(policy.Scanner, refusal))
		}
	}
	return all
}

// rules returns the rules in the order of their refusals.
func rules() []func(*subject) []Refusal {
	return []func(*subject) []Refusal{
		checkMerges, checkPaths, checkModes, checkSubmodules, checkProtected,
		checkSize, checkSymlinks, checkLFS, checkSecrets, checkLentFiles, checkMessages,
	}
}

func capRefusals(found []Refusal) []Refusal {
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
