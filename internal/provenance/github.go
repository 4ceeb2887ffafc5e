package provenance

import (
	"context"
	"errors"
	"time"
)

// Errors of [GitHub].
var (
	ErrGone     = errors.New("GitHub has it no longer")
	ErrTooLarge = errors.New("the file is too large") // to be compared
)

// GitHub reads what verification compares a statement with, of one repository. internal/forge/evidence implements it.
type GitHub interface {
	Pull(ctx context.Context, number int) (Pull, error)
	// Comments returns the comments of a pull request's conversation by an account, oldest first, and whether these are all.
	Comments(ctx context.Context, number int, by int64) (list []Text, complete bool, err error)
	// Issue and Comment return nil if there is none any more.
	Issue(ctx context.Context, number int) (*Text, error)
	Comment(ctx context.Context, id int64) (*Text, error)
	// Commits returns the commits of a pull request, oldest first, and whether these are all.
	Commits(ctx context.Context, number int) (list []CommitInfo, complete bool, err error)
	// Commit, MergeBase, Between and Files return ErrGone if GitHub has no such commit or branch any more.
	Commit(ctx context.Context, id string) (CommitInfo, error)
	MergeBase(ctx context.Context, a, b string) (string, error)
	// Between returns the commits that only head has, oldest first, and whether these are all.
	Between(ctx context.Context, base, head string) (list []CommitInfo, complete bool, err error)
	// Files returns the files of a tree by path, and whether these are all.
	Files(ctx context.Context, tree string) (files map[string]File, complete bool, err error)
	Blob(ctx context.Context, id string) ([]byte, error)
}

// Person is an account as GitHub shows it. The ID of a deleted account is 0.
type Person struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Bot   bool   `json:"bot,omitempty"`
}

// Pull is a pull request.
type Pull struct {
	RepositoryID int64
	Repository   string // OWNER/REPO
	Number       int
	By           Person
	Head         string
	Branch, Base string // their names
	Merged       bool
	MergeCommit  string
}

// Text is an issue or a comment.
type Text struct {
	ID        int64
	Title     string // of an issue
	Body      string
	By        Person
	CreatedAt time.Time
	// Editor is who edited it last, nil if nobody did. Edits are the last edits.
	Editor   *Person
	EditedAt time.Time
	Edits    []Action
	ThumbsUp []Action
}

// Action is an edit or a 👍.
type Action struct {
	By Person
	At time.Time
}

// changedAt returns when the text became as it is.
func (t *Text) changedAt() time.Time {
	if t.EditedAt.After(t.CreatedAt) {
		return t.EditedAt
	}
	return t.CreatedAt
}

// CommitInfo is a commit on GitHub.
type CommitInfo struct {
	ID, Tree string
	Parents  []string
	Author   Person // the account of the author's address, with ID 0 and the author's name if there is none
	Verified bool   // GitHub verified its signature
}

// File is an entry of a tree.
type File struct{ Mode, Blob string }
