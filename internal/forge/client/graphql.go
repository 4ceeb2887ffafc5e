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

// GraphQLProblem is one entry of an answer's errors.
type GraphQLProblem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Path    []any  `json:"path"`
}

// GraphQLError is an answer with errors. Data that came with them has been decoded.
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

// only reports whether all problems are of the type.
func (e *GraphQLError) only(kind string) bool {
	return !slices.ContainsFunc(e.Problems, func(p GraphQLProblem) bool { return p.Type != kind })
}

// explain fills the *Error for this answer. GitHub carries a mutation out or answers with an error,
// not both, so an error of a mutation is a refusal.
func (e *GraphQLError) explain(into *Error) {
	into.Class, into.Reason = ClassPermanent, "GitHub refused it."
	if len(e.Problems) > 0 {
		into.Reason = "GitHub refused it: " + strings.TrimSuffix(e.Problems[0].Message, ".") + "."
	}
	switch {
	case e.only("NOT_FOUND"):
		into.Reason = "GitHub does not know it, or errand may not see it."
		into.Hint = "Check that the App is installed on the repository and has accepted its permissions."
		into.Err = fmt.Errorf("%w: %w", ErrNotFound, e)
	case e.only("FORBIDDEN"):
		into.Hint = permissionHint("")
	case e.only(""): // a time-out or a failure inside GitHub has no type
		into.Class = ClassUnknown
	}
}

// GraphQL posts a query or mutation and decodes data into out, also when there are errors beside it:
// then it returns *GraphQLError.
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
		return fmt.Errorf("ask GraphQL: %w", err)
	}
	defer resp.Body.Close()
	if err := github.CheckResponse(resp); err != nil {
		return err
	}
	var answer struct {
		Data   json.RawMessage  `json:"data"`
		Errors []GraphQLProblem `json:"errors"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("decode GraphQL answer: %w", err)
	}
	if len(answer.Data) > 0 && !bytes.Equal(answer.Data, []byte("null")) && out != nil {
		if err := json.Unmarshal(answer.Data, out); err != nil {
			return fmt.Errorf("decode GraphQL data: %w", err)
		}
	}
	if len(answer.Errors) > 0 {
		return &GraphQLError{Problems: answer.Errors}
	}
	return nil
}

// IgnoreNotFound drops the error that GitHub adds for every id that does not exist any more: the data
// beside it has null there.
func IgnoreNotFound(err error) error {
	var g *GraphQLError
	if errors.As(err, &g) && g.only("NOT_FOUND") {
		return nil
	}
	return err
}

// IgnoreMissing drops the error of an answer in which nothing but one part, which need not exist or
// be shown to us, is missing.
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

// Forbidden reports whether an answer refused something.
func Forbidden(err error) bool {
	var g *GraphQLError
	return errors.As(err, &g) && slices.ContainsFunc(g.Problems, func(p GraphQLProblem) bool { return p.Type == "FORBIDDEN" })
}
