package simgithub

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/graph-gophers/graphql-go"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// repositoryR is a repository.
type repositoryR struct {
	x *request
	r *Repo
}

// ID is the node id.
func (r *repositoryR) ID() graphql.ID { return gid(r.r.NodeID) }

// DatabaseId is the numeric id.
func (r *repositoryR) DatabaseId() *int32 { return i32(r.r.ID) } //nolint:revive // named by the schema

// Name is without the owner.
func (r *repositoryR) Name() string { return r.r.Name }

// NameWithOwner is OWNER/NAME.
func (r *repositoryR) NameWithOwner() string { return r.r.FullName() }

// IsPrivate reports whether the repository is private.
func (r *repositoryR) IsPrivate() bool { return r.r.Private }

// MergeCommitAllowed reports whether pull requests can be merged by a merge commit.
func (r *repositoryR) MergeCommitAllowed() bool { return r.r.allows("merge") }

// SquashMergeAllowed reports whether pull requests can be merged as one commit.
func (r *repositoryR) SquashMergeAllowed() bool { return r.r.allows("squash") }

// RebaseMergeAllowed reports whether the commits of pull requests can be rebased onto the base.
func (r *repositoryR) RebaseMergeAllowed() bool { return r.r.allows("rebase") }

// AutoMergeAllowed reports whether auto-merge can be enabled for pull requests.
func (r *repositoryR) AutoMergeAllowed() bool { return r.r.AutoMerge }

// ViewerDefaultMergeMethod is the first way to merge pull requests that is allowed. The simulator does not remember which one the caller used last.
func (r *repositoryR) ViewerDefaultMergeMethod() string { return strings.ToUpper(r.r.defaultMethod()) }

// URL is the page.
func (r *repositoryR) URL() word { return word(r.x.s.json.html("/%s", r.r.FullName())) }

// Owner is the account that owns it.
func (r *repositoryR) Owner() *actorR { return r.x.actor(r.r.Owner) } // a RepositoryOwner is not a bot

// number is the argument of issue and pullRequest.
type number struct{ Number int32 }

// Issue returns an issue, but no pull request.
func (r *repositoryR) Issue(a number) (*issueR, error) {
	i, err := r.x.issue(r.r.FullName(), int(a.Number))
	if err == nil && i.Pull == nil {
		return newIssueR(r.x, i), nil
	}
	if e, ok := err.(*Error); ok && e.Status == http.StatusForbidden {
		return nil, err
	}
	return nil, &Error{Status: http.StatusNotFound,
		Message: fmt.Sprintf("Could not resolve to an Issue with the number of %d.", a.Number)}
}

// PullRequest finds a pull request.
func (r *repositoryR) PullRequest(a number) (*pullR, error) {
	p, err := r.x.pull(r.r.FullName(), int(a.Number))
	if err == nil {
		return newPullR(r.x, p), nil
	}
	if e, ok := err.(*Error); ok && e.Status == http.StatusForbidden {
		return nil, err
	}
	return nil, &Error{Status: http.StatusNotFound,
		Message: fmt.Sprintf("Could not resolve to a PullRequest with the number of %d.", a.Number)}
}

// Ref finds a reference by its full name; a plain name is a branch.
func (r *repositoryR) Ref(a struct{ QualifiedName string }) (*refR, error) {
	if err := r.x.need(r.r, "contents", "read", RoleRead); err != nil {
		return nil, err
	}
	name := a.QualifiedName
	if !strings.HasPrefix(name, "refs/") {
		name = "refs/heads/" + name
	}
	sha := r.r.Git.Object(name)
	if sha == "" {
		return nil, nil
	}
	return &refR{r.x, r.r, name, sha}, nil
}

// DefaultBranchRef is the default branch; null in an empty repository.
func (r *repositoryR) DefaultBranchRef() (*refR, error) {
	return r.Ref(struct{ QualifiedName string }{r.r.DefaultBranch})
}

// Object finds a git object by id or by an expression such as "main:README.md".
func (r *repositoryR) Object(a struct {
	Oid        *word
	Expression *string
}) (*objectR, error) {
	if err := r.x.need(r.r, "contents", "read", RoleRead); err != nil {
		return nil, err
	}
	rev := ""
	switch {
	case a.Oid != nil:
		rev = string(*a.Oid)
	case a.Expression != nil:
		rev = *a.Expression
	}
	return r.x.object(r.r, rev), nil
}

// refR is a reference.
type refR struct {
	x    *request
	r    *Repo
	name string
	sha  string
}

// ID is opaque.
func (f *refR) ID() graphql.ID { return gid(nodeID("REF", f.r.ID) + f.name) }

// Name is without the prefix.
func (f *refR) Name() string { return strings.TrimPrefix(f.name, f.Prefix()) }

// Prefix is refs/heads/, refs/tags/ or another.
func (f *refR) Prefix() string {
	parts := strings.SplitN(f.name, "/", 3)
	return strings.Join(parts[:2], "/") + "/"
}

// Target is the object that it points to.
func (f *refR) Target() *objectR { return f.x.object(f.r, f.sha) }

// objectR is a git object.
type objectR struct {
	x    *request
	r    *Repo
	sha  string
	kind string
}

// object finds a git object; nil if there is none.
func (r *request) object(repo *Repo, rev string) *objectR {
	if rev == "" || strings.HasPrefix(rev, "-") {
		return nil
	}
	sha := repo.Git.Object(rev)
	if sha == "" {
		return nil
	}
	kind, err := repo.Git.Kind(sha)
	if err != nil {
		return nil
	}
	return &objectR{r, repo, sha, kind}
}

// ID is opaque.
func (o *objectR) ID() graphql.ID { return gid(nodeID("OBJ", o.r.ID) + o.sha) }

// Oid is the object's id.
func (o *objectR) Oid() word { return word(o.sha) }

// ToCommit narrows an object.
func (o *objectR) ToCommit() (*commitR, bool) {
	if o.kind != "commit" {
		return nil, false
	}
	c := o.x.commit(o.r, o.sha)
	return c, c != nil
}

// ToTree narrows an object.
func (o *objectR) ToTree() (*objectR, bool) { return o, o.kind == "tree" }

// ToBlob narrows an object.
func (o *objectR) ToBlob() (*blobR, bool) {
	if o.kind != "blob" {
		return nil, false
	}
	content, err := o.r.Git.Blob(o.sha)
	return &blobR{*o, content}, err == nil
}

// blobR is a file's content.
type blobR struct {
	objectR
	content []byte
}

// ByteSize is the length.
func (b *blobR) ByteSize() int32 { return int32(len(b.content)) }

// IsBinary reports whether the content has a zero byte.
func (b *blobR) IsBinary() *bool {
	binary := bytes.IndexByte(b.content, 0) >= 0
	return &binary
}

// IsTruncated is always false: the text is complete.
func (*blobR) IsTruncated() bool { return false }

// Text is null for binary content.
func (b *blobR) Text() *string {
	if *b.IsBinary() {
		return nil
	}
	text := string(b.content)
	return &text
}

// commitR is a commit.
type commitR struct {
	x *request
	r *Repo
	c *git.Commit
}

// commit finds a commit; nil if there is none.
func (r *request) commit(repo *Repo, sha string) *commitR {
	c := repo.Git.Commit(sha)
	if c == nil {
		return nil
	}
	return &commitR{r, repo, c}
}

// ID is opaque.
func (c *commitR) ID() graphql.ID { return gid(nodeID("C", c.r.ID) + c.c.SHA) }

// Oid is the commit's id.
func (c *commitR) Oid() word { return word(c.c.SHA) }

// Message is the whole message.
func (c *commitR) Message() string { return c.c.Message }

// CommittedDate is the committer's time.
func (c *commitR) CommittedDate() dateTime { return dateTime{c.c.Committer.At} }

// URL is the page.
func (c *commitR) URL() word { return word(c.x.s.json.html("/%s/commit/%s", c.r.FullName(), c.c.SHA)) }

// Tree is the commit's tree.
func (c *commitR) Tree() *objectR { return &objectR{c.x, c.r, c.c.Tree, "tree"} }
