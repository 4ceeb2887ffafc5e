package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v66/github"
)

// GraphQLProblem is one of the errors of a response.
type GraphQLProblem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Path    []any  `json:"path"`
}

// GraphQLError is a response with errors. Its data, if any, has been decoded.
type GraphQLError struct{ Problems []GraphQLProblem }

// Error joins the messages with their types.
func (e *GraphQLError) Error() string {
	var parts []string
	for _, p := range e.Problems {
		if p.Type == "" {
			parts = append(parts, p.Message)
			continue
		}
		parts = append(parts, p.Type+": "+p.Message)
	}
	return "GraphQL: " + strings.Join(parts, "; ")
}

// onlyOfType reports whether all problems have the type.
func (e *GraphQLError) onlyOfType(kind string) bool {
	return !slices.ContainsFunc(e.Problems, func(p GraphQLProblem) bool { return p.Type != kind })
}

// fillError fills in the *Error for this response. A mutation with an error had no effect, so the error is a refusal.
func (e *GraphQLError) fillError(into *Error) {
	into.Class, into.Reason = ClassPermanent, "GitHub refused it."
	if len(e.Problems) > 0 {
		into.Reason = "GitHub refused it: " + strings.TrimSuffix(e.Problems[0].Message, ".") + "."
	}
	switch {
	case len(e.Problems) > 0 && strings.Contains(e.Problems[0].Message, "is locked"):
		into.fillLocked(e)
	case e.onlyOfType("NOT_FOUND"):
		into.Reason = "It does not exist on GitHub, or errand has no access to it."
		into.Hint = "Check that the App is installed on the repository and has accepted its permissions."
		into.Err = fmt.Errorf("%w: %w", ErrNotFound, e)
	case e.onlyOfType("FORBIDDEN"):
		into.Hint = permissionHint("")
	case e.onlyOfType(""): // timeouts and internal failures of GitHub have no type
		into.Class = ClassUnknown
	}
}

// GraphQL posts a query or mutation and decodes the data into out. If the response has errors, it decodes the data as
// well and returns a *GraphQLError.
func (op *Operation) GraphQL(query string, vars map[string]any, out any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	if err != nil {
		return fmt.Errorf("encode GraphQL variables: %w", err)
	}
	req, err := http.NewRequestWithContext(op.Ctx, http.MethodPost, op.client.cfg.V4APIURL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make GraphQL request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", op.client.cfg.UserAgent)
	resp, err := op.GitHub.Client().Do(req)
	if err != nil {
		return fmt.Errorf("post GraphQL request: %w", err)
	}
	defer resp.Body.Close()
	if err := github.CheckResponse(resp); err != nil {
		return err
	}
	var response struct {
		Data   json.RawMessage  `json:"data"`
		Errors []GraphQLProblem `json:"errors"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&response); err != nil {
		return fmt.Errorf("decode GraphQL response: %w", err)
	}
	if len(response.Data) > 0 && !bytes.Equal(response.Data, []byte("null")) && out != nil {
		if err := json.Unmarshal(response.Data, out); err != nil {
			return fmt.Errorf("decode GraphQL data: %w", err)
		}
	}
	if len(response.Errors) > 0 {
		return &GraphQLError{Problems: response.Errors}
	}
	return nil
}

// IgnoreNotFound returns nil for a response in which all errors are for objects that do not exist; they are null in the
// data. It returns other errors unchanged.
func IgnoreNotFound(err error) error {
	var g *GraphQLError
	if errors.As(err, &g) && g.onlyOfType("NOT_FOUND") {
		return nil
	}
	return err
}

// IgnoreMissing returns nil for a response in which only one optional part is missing or forbidden. It returns other
// errors unchanged.
func IgnoreMissing(err error, part string) error {
	var g *GraphQLError
	if !errors.As(err, &g) {
		return err
	}
	for _, p := range g.Problems {
		if p.Type != "NOT_FOUND" && p.Type != "FORBIDDEN" || len(p.Path) == 0 || fmt.Sprint(p.Path[0]) != part {
			return err
		}
	}
	return nil
}

// Forbidden reports whether a response has an error about missing permissions.
func Forbidden(err error) bool {
	var g *GraphQLError
	return errors.As(err, &g) && slices.ContainsFunc(g.Problems, func(p GraphQLProblem) bool { return p.Type == "FORBIDDEN" })
}
