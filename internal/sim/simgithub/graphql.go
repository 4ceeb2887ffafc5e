package simgithub

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/graph-gophers/graphql-go"
	gqlerrors "github.com/graph-gophers/graphql-go/errors"
)

//go:embed schema.graphql
var schemaText string

// graphQL serves POST /api/graphql.
type graphQL struct {
	s      *Sim
	schema *graphql.Schema
}

// parseSchema parses the schema once per process. Its resolvers find their request in the context.
var parseSchema = sync.OnceValues(func() (*graphql.Schema, error) {
	return graphql.ParseSchema(schemaText, &rootR{}, graphql.MaxParallelism(1), graphql.UseStringDescriptions())
})

func newGraphQL(s *Sim) (*graphQL, error) {
	schema, err := parseSchema()
	if err != nil {
		return nil, fmt.Errorf("parse GraphQL schema: %w", err)
	}
	return &graphQL{s: s, schema: schema}, nil
}

// request is the state of one query, for its resolvers.
type request struct {
	*session
	mu     sync.Mutex
	errors []*gqlerrors.QueryError
	asked  []*Pull // whose mergeability was requested
}

type requestKey struct{}

// from returns the request in the context of a resolver, which always has one.
func from(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// note adds an error for a field of the answer that is null.
func (r *request) note(err error, path ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, &gqlerrors.QueryError{Message: message(err), ResolverError: err, Path: path})
}

// ask records that mergeability was requested: the next request will know it.
func (r *request) ask(p *Pull) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, p)
}

func message(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// query is a request's body.
type query struct {
	Query         string         `json:"query"`
	OperationName string         `json:"operationName"`
	Variables     map[string]any `json:"variables"`
}

func (g *graphQL) serve(w http.ResponseWriter, r *http.Request) {
	f := g.s.admit(r, "POST /graphql", "/graphql")
	if f.before(w, r) {
		return
	}
	var q query
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&q); err != nil {
		answer{status: http.StatusBadRequest, body: []byte(`{"message":"Problems parsing JSON"}`)}.write(w)
		return
	}
	a := g.perform(r, q)
	if f.after(w, r) {
		return
	}
	a.write(w)
}

// perform runs a query under the lock of the Sim; resolvers need no locking of their own.
func (g *graphQL) perform(r *http.Request, q query) answer {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	c := &call{session: g.s.auth.session(r), r: r, header: http.Header{}}
	c.header.Set("Content-Type", "application/json; charset=utf-8")
	if c.bad != nil {
		return c.failed(c.bad)
	}
	if c.by == nil {
		return c.failed(&Error{Status: http.StatusUnauthorized, Message: "This endpoint requires you to be authenticated."})
	}
	if err := c.quota().spend("graphql", false, c.header); err != nil {
		body, _ := json.Marshal(obj{"errors": []obj{{"type": "RATE_LIMITED", "message": message(err)}}}) // plain strings
		return answer{status: http.StatusOK, header: c.header, body: body}
	}
	req := &request{session: c.session}
	resp := g.schema.Exec(context.WithValue(r.Context(), requestKey{}, req), q.Query, q.OperationName, q.Variables)
	for _, p := range req.asked {
		p.judged = g.s.pulls.ends(p)
	}
	out := obj{"data": resp.Data}
	if list := append(resp.Errors, req.errors...); len(list) > 0 {
		out["errors"] = errorsJSON(list)
	}
	body, err := json.Marshal(out)
	if err != nil {
		return c.failed(err)
	}
	return answer{status: http.StatusOK, header: c.header, body: body}
}

// errorsJSON encodes errors as GitHub does: with a type next to the message.
func errorsJSON(list []*gqlerrors.QueryError) []obj {
	out := make([]obj, 0, len(list))
	for _, e := range list {
		o := obj{"message": e.Message}
		if len(e.Path) > 0 {
			o["path"] = e.Path
		}
		if len(e.Locations) > 0 {
			o["locations"] = e.Locations
		}
		var known *Error
		if errors.As(e.ResolverError, &known) {
			o["type"], o["message"] = errorType(known), known.Message
			if len(known.Fields) > 0 {
				o["message"] = known.Fields[0].Message
			}
		}
		out = append(out, o)
	}
	return out
}

func errorType(e *Error) string {
	switch {
	case e.Status == http.StatusNotFound:
		return "NOT_FOUND"
	case e.Status == http.StatusForbidden, e.Status == http.StatusUnauthorized:
		return "FORBIDDEN"
	case strings.HasPrefix(e.Message, "You may not provide more than"):
		return "ARGUMENT_LIMIT"
	default:
		return "UNPROCESSABLE"
	}
}
