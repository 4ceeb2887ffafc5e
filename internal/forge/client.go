package forge

import (
	"context"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/ci"
	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/forge/publish"
	"github.com/errand-bot/errand/state"
)

// Types of the packages client and publish that callers of this package need.
type (
	Config     = client.Config
	RateLimit  = client.RateLimit
	Request    = client.Request
	Purpose    = client.Purpose
	Priority   = client.Priority
	Repo       = client.Repo
	Error      = client.Error
	Class      = client.Class
	LimitError = client.LimitError
	LimitKind  = client.LimitKind

	Published      = publish.Published
	FileCommit     = publish.FileCommit
	TreeEntry      = publish.TreeEntry
	MovedError     = publish.MovedError
	LargeFileError = publish.LargeFileError

	actor    = client.Actor
	pageInfo = client.PageInfo
)

const actorFields = client.ActorFields

// VersionHeader is the header in which an Enterprise Server names its version.
const VersionHeader = client.VersionHeader

// See [client.Class].
const (
	ClassTemporary = client.ClassTemporary
	ClassPermanent = client.ClassPermanent
	ClassUnknown   = client.ClassUnknown
)

// See [client.LimitKind].
const (
	LimitPrimary   = client.LimitPrimary
	LimitSecondary = client.LimitSecondary
)

// See [client.Purpose].
const (
	ForTask  = client.ForTask
	ForPoll  = client.ForPoll
	ForSweep = client.ForSweep
	ForStart = client.ForStart
)

// See [client.Priority].
const (
	PriorityStatus   = client.PriorityStatus
	PriorityAnswer   = client.PriorityAnswer
	PriorityReaction = client.PriorityReaction
)

// Errors to match with errors.Is.
var (
	ErrNotFound     = client.ErrNotFound
	ErrNotInstalled = client.ErrNotInstalled
	ErrLocked       = client.ErrLocked
	ErrRenamed      = client.ErrRenamed
	ErrMoved        = publish.ErrMoved
	ErrTreeMismatch = publish.ErrTreeMismatch
	ErrIncomplete   = publish.ErrIncomplete

	ErrCannotRerun    = ci.ErrCannotRerun
	ErrLogUnavailable = ci.ErrLogUnavailable
	ErrStillRunning   = ci.ErrStillRunning
)

// WithPurpose sets the purpose of the requests that are made with the returned context.
func WithPurpose(ctx context.Context, p Purpose) context.Context { return client.WithPurpose(ctx, p) }

// WithPriority sets the priority of the writes that are made with the returned context.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return client.WithPriority(ctx, p)
}

// Classify returns the class of err, and the time before which GitHub refuses a retry (zero if it named none).
func Classify(err error) (Class, time.Time) { return client.Classify(err) }

// NotGranted reports whether GitHub refused a call because the installation lacks a permission.
func NotGranted(err error) bool { return client.NotGranted(err) }

// IsPermanent reports whether err consists of nothing but calls that GitHub has refused, so that it does not help to repeat them.
func IsPermanent(err error) bool { return client.IsPermanent(err) }

// Explain returns the reason of err for people, and a hint that can be empty.
func Explain(err error) (reason, hint string) { return client.Explain(err) }

// rateCost is the cost of a query in GraphQL points, and the remaining points of the installation.
type rateCost struct {
	Cost      int `json:"cost"`
	Remaining int `json:"remaining"`
}

// person returns an account. A nil user is a deleted account, which GitHub shows as "ghost".
func person(u *github.User) state.Person {
	if u == nil {
		return state.Person{Login: "ghost"}
	}
	return state.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}
