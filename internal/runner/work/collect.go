package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// CollectSpec is the input of Collect.
type CollectSpec struct {
	// Dir is the workspace.
	Dir string `json:"dir"`
	// Base is the commit that the orchestrator knows.
	Base string `json:"base"`
	// Newer is a commit that people pushed since, if any. It becomes the base if it is in the workspace and is an
	// ancestor of the head.
	Newer string `json:"newer,omitempty"`
	// AllowMerge lists the commits that may be a merge's second parent.
	AllowMerge []string `json:"allow_merge,omitempty"`
	// Message is the message for commits of uncommitted changes and for squashed commits.
	Message string `json:"message,omitempty"`
	// Leave lists the paths that are never committed: files lent to the checkout.
	Leave []string `json:"leave,omitempty"`
}

// maxCommits is the length of the longest chain that is preserved commit by commit.
const maxCommits = 200

// Collect returns the changes in a workspace since Base. It commits uncommitted changes first, so a second call returns
// the same. A history that does not continue Base becomes one commit on it, with a note. Collect fails if Base is
// missing, for paths that are not UTF-8, and above the limits.
func Collect(ctx context.Context, spec CollectSpec) (*changeset.Changeset, error) {
	r, leave, err := enter(ctx, spec.Dir)
	if err != nil {
		return nil, fmt.Errorf("collect changeset: %w", err)
	}
	defer leave()
	c := &collector{repo: r, spec: spec}
	set, err := c.collect(ctx)
	if err != nil {
		return nil, fmt.Errorf("collect changeset: %w", err)
	}
	return set, nil
}

type collector struct {
	repo  *repo
	spec  CollectSpec
	notes []string
}

func (c *collector) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func (c *collector) collect(ctx context.Context) (*changeset.Changeset, error) {
	if !changeset.IsID(c.spec.Base) {
		return nil, fmt.Errorf("base %q is not a commit id", c.spec.Base)
	}
	if _, err := c.repo.commit(ctx, c.spec.Base); err != nil {
		return nil, fmt.Errorf("base %s is not in the workspace: %w", c.spec.Base, err)
	}
	if err := c.commitPending(ctx); err != nil {
		return nil, err
	}
	head, err := c.repo.commit(ctx, "HEAD")
	if err != nil {
		return nil, fmt.Errorf("read HEAD: %w", err)
	}
	if err := c.useNewer(ctx, head); err != nil {
		return nil, err
	}
	chain, err := c.commitChain(ctx, head)
	if err != nil {
		return nil, err
	}
	set := &changeset.Changeset{Base: c.spec.Base, Commits: chain, Blobs: map[string][]byte{}}
	for i := range set.Commits {
		if err := c.changes(ctx, &set.Commits[i]); err != nil {
			return nil, err
		}
	}
	if err := c.blobs(ctx, set); err != nil {
		return nil, err
	}
	if err := c.collectLarge(ctx, set); err != nil {
		return nil, fmt.Errorf("read large files: %w", err)
	}
	set.Notes = c.notes
	if err := set.Validate(changeset.DefaultLimits()); err != nil {
		return nil, err
	}
	return set, nil
}

// useNewer makes Newer the base if it is an ancestor of head.
func (c *collector) useNewer(ctx context.Context, head string) error {
	if c.spec.Newer == "" {
		return nil
	}
	if !changeset.IsID(c.spec.Newer) {
		return fmt.Errorf("newer base %q is not a commit id", c.spec.Newer)
	}
	if _, err := c.repo.commit(ctx, c.spec.Newer); err != nil {
		return nil // it was never fetched
	}
	holds, err := c.repo.check(ctx, "merge-base", "--is-ancestor", c.spec.Newer, head)
	if err != nil {
		return fmt.Errorf("compare with the newer base: %w", err)
	}
	if holds {
		c.spec.Base = c.spec.Newer
	}
	return nil
}

// commitChain returns the commits from base to head without their changes, squashed into one if they do not continue base.
func (c *collector) commitChain(ctx context.Context, head string) ([]changeset.Commit, error) {
	if head == c.spec.Base {
		return nil, nil
	}
	reason, chain, err := c.firstParents(ctx, head)
	if err != nil {
		return nil, err
	}
	if reason == "" {
		return chain, nil
	}
	return c.squash(ctx, head, reason)
}

// firstParents walks from head to base along first parents. reason explains why the chain cannot be published commit by
// commit, and is empty if it can.
func (c *collector) firstParents(ctx context.Context, head string) (reason string, chain []changeset.Commit, err error) {
	descends, err := c.repo.check(ctx, "merge-base", "--is-ancestor", c.spec.Base, head)
	if err != nil {
		return "", nil, fmt.Errorf("compare with base: %w", err)
	}
	if !descends {
		return "the history was rewritten", nil, nil
	}
	out, err := c.repo.text(ctx, "rev-list", "--reverse", "--first-parent",
		fmt.Sprintf("--max-count=%d", maxCommits+1), head, "^"+c.spec.Base)
	if err != nil {
		return "", nil, fmt.Errorf("list commits: %w", err)
	}
	ids := strings.Fields(out)
	if len(ids) > maxCommits {
		return fmt.Sprintf("there are more than %d commits", maxCommits), nil, nil
	}
	previous := c.spec.Base
	for _, id := range ids {
		commit, err := c.read(ctx, id)
		if err != nil {
			return "", nil, err
		}
		if reason := c.checkFollows(commit, previous); reason != "" {
			return reason, nil, nil
		}
		chain = append(chain, commit)
		previous = id
	}
	return "", chain, nil
}

// checkFollows returns why a commit cannot follow the previous one, or "".
func (c *collector) checkFollows(commit changeset.Commit, previous string) string {
	switch {
	case len(commit.Parents) == 0 || commit.Parents[0] != previous:
		return "the history was rewritten"
	case len(commit.Parents) > 2:
		return "a merge has more than two parents"
	case len(commit.Parents) == 2 && !slices.Contains(c.spec.AllowMerge, commit.Parents[1]):
		return "it merged commits from elsewhere"
	default:
		return ""
	}
}

// read parses one commit object.
func (c *collector) read(ctx context.Context, id string) (changeset.Commit, error) {
	raw, err := c.repo.run(ctx, "cat-file", "commit", id)
	if err != nil {
		return changeset.Commit{}, fmt.Errorf("read commit %s: %w", id, err)
	}
	commit := changeset.Commit{ID: id}
	header, message, _ := strings.Cut(string(raw), "\n\n")
	for line := range strings.SplitSeq(header, "\n") {
		switch key, value, _ := strings.Cut(line, " "); key {
		case "tree":
			commit.Tree = value
		case "parent":
			commit.Parents = append(commit.Parents, value)
		}
	}
	commit.Message = cleanMessage(message)
	return commit, nil
}

// cleanMessage makes a message valid for a changeset: UTF-8 without NUL, within the limit.
func cleanMessage(message string) string {
	message = strings.ReplaceAll(strings.ToValidUTF8(message, "\uFFFD"), "\x00", "")
	if limit := changeset.DefaultLimits().Message; len(message) > limit {
		message = strings.ToValidUTF8(message[:limit-4], "") + "…"
	}
	return message
}

// squash creates one commit of all changes between base and head: head's tree on base. The same head yields the same
// commit, so repeated collection returns the same changeset.
func (c *collector) squash(ctx context.Context, head, reason string) ([]changeset.Commit, error) {
	tree, err := c.repo.tree(ctx, head)
	if err != nil {
		return nil, fmt.Errorf("squash: %w", err)
	}
	baseTree, err := c.repo.tree(ctx, c.spec.Base)
	if err != nil {
		return nil, fmt.Errorf("squash: %w", err)
	}
	if tree == baseTree {
		c.note("No file differs from the known head, but %s; its commits are dropped.", reason)
		return nil, nil
	}
	message, err := c.squashMessage(ctx, head)
	if err != nil {
		return nil, err
	}
	date, err := c.repo.text(ctx, "show", "-s", "--format=%ct +0000", head)
	if err != nil {
		return nil, fmt.Errorf("squash: %w", err)
	}
	dated := openRepo(c.spec.Dir, committerEnv(ctx, c.repo, "@"+date)...)
	id, err := dated.pipe(ctx, strings.NewReader(message), "commit-tree", tree, "-p", c.spec.Base, "-F", "-")
	if err != nil {
		return nil, fmt.Errorf("squash: %w", err)
	}
	commit, err := c.read(ctx, strings.TrimSpace(string(id)))
	if err != nil {
		return nil, err
	}
	c.note("All changes became one commit, because %s.", reason)
	return []changeset.Commit{commit}, nil
}

// maxSubjects bounds the subjects of squashed commits in the message.
const maxSubjects = 50

// squashMessage returns the message of a single commit, or a list of the subjects.
func (c *collector) squashMessage(ctx context.Context, head string) (string, error) {
	out, err := c.repo.text(ctx, "log", "--reverse", "--first-parent", "--format=%s",
		fmt.Sprintf("--max-count=%d", maxSubjects), head, "^"+c.spec.Base)
	if err != nil {
		return "", fmt.Errorf("squash: %w", err)
	}
	last, err := c.read(ctx, head)
	if err != nil {
		return "", err
	}
	subjects := strings.Split(out, "\n")
	if c.spec.Message == "" || len(subjects) == 1 {
		return orText(last.Message, c.spec.Message), nil
	}
	return cleanMessage(strings.TrimSpace(c.spec.Message) + "\n\n- " + strings.Join(subjects, "\n- ") + "\n"), nil
}

func orText(texts ...string) string {
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			return text
		}
	}
	return "Change files\n"
}

// errNotUTF8 means that a path cannot be published.
var errNotUTF8 = errors.New("its name is not UTF-8; rename it")
