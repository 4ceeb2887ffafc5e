package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-github/v66/github"
)

// An Operation is one use of GitHub's API, such as "create comment". It can take several HTTP requests, which must be
// made with Ctx, and its errors must pass through Wrap.
type Operation struct {
	// Ctx carries the operation down to the transport.
	Ctx context.Context
	// GitHub has the credentials of the installation, or of the App.
	GitHub *github.Client

	client       *Client // nil for requests that were not made through an operation
	name         string  // without details, for metrics: "create comment"
	description  string  // with details, for errors: "create comment on octo/app#3"
	kind         operationKind
	installation int64
	priority     Priority
	now          func() time.Time
	began        time.Time
	sent         atomic.Bool // a write has left this process
}

// An operationKind decides how requests are paced and retried.
type operationKind int

const (
	kindRead  operationKind = iota // can be repeated; not paced
	kindWrite                      // has its effect once; paced
	kindData                       // git objects: named by their content, so can be repeated; paced separately
)

// Read begins an operation that changes nothing. name is for metrics; about says which object it is for. Installation 0
// is the App itself.
func (c *Client) Read(ctx context.Context, installation int64, name, about string) (*Operation, error) {
	return c.begin(ctx, &Operation{name: name, kind: kindRead, installation: installation}, about)
}

// Write begins an operation whose effect people see.
func (c *Client) Write(ctx context.Context, installation int64, name, about string) (*Operation, error) {
	op := &Operation{name: name, kind: kindWrite, installation: installation, priority: priorityOf(ctx, PriorityAnswer)}
	return c.begin(ctx, op, about)
}

// Data begins an operation that uploads content-addressed data, which can be repeated.
func (c *Client) Data(ctx context.Context, installation int64, name, about string) (*Operation, error) {
	return c.begin(ctx, &Operation{name: name, kind: kindData, installation: installation}, about)
}

func (c *Client) begin(ctx context.Context, op *Operation, about string) (*Operation, error) {
	op.client, op.description, op.now, op.began = c, strings.TrimSpace(op.name+" "+about), c.cfg.Now, c.cfg.Now()
	op.GitHub = c.app
	if op.installation != 0 {
		var err error
		if op.GitHub, err = c.clientCreator().NewInstallationClient(op.installation); err != nil {
			return nil, op.Wrap(fmt.Errorf("make client: %w", err))
		}
	}
	op.Ctx = op.withContext(ctx)
	return op, nil
}

// Verify begins a read that finds out the effect of a write.
func (op *Operation) Verify() *Operation {
	read := &Operation{
		GitHub: op.GitHub, client: op.client, name: op.name, description: op.description, kind: kindRead, installation: op.installation,
		now: op.now, began: op.began,
	}
	read.Ctx = read.withContext(op.Ctx)
	return read
}

type operationKey struct{}

func (op *Operation) withContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, operationKey{}, op)
}

// operationOf returns the operation that a request belongs to. The kind of any other request follows from its method.
func operationOf(req *http.Request, now func() time.Time) *Operation {
	if op, ok := req.Context().Value(operationKey{}).(*Operation); ok {
		return op
	}
	op := &Operation{description: req.Method + " " + req.URL.Path, name: "other", now: now}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		op.kind, op.priority = kindWrite, PriorityAnswer
	}
	return op
}

// Get fetches one page of path (relative to the REST address) into out and returns the next page's
// number, 0 at the end.
func (op *Operation) Get(path string, out any) (next int, err error) {
	req, err := op.GitHub.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return 0, fmt.Errorf("make request: %w", err)
	}
	resp, err := op.GitHub.Do(op.Ctx, req, out)
	if err != nil {
		return 0, err
	}
	return resp.NextPage, nil
}

// GetAs fetches path (relative to the REST address) in a media type into out.
func (op *Operation) GetAs(mediaType, path string, out any) error {
	req, err := op.GitHub.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", mediaType)
	_, err = op.GitHub.Do(op.Ctx, req, out)
	return err
}

// Deleted is the error for an object that vanished between two requests.
func (op *Operation) Deleted() error {
	return &Error{
		Op: op.description, Reason: "It was deleted in the meantime.", Class: ClassPermanent, Status: http.StatusNotFound, Err: ErrNotFound,
	}
}
