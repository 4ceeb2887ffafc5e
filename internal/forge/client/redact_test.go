package client_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
)

// TestSecretsAreRedacted checks for the texts of all methods that a secret is replaced and the rest is sent.
func TestSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	text := "say " + secret + " twice"
	tests := map[string]struct {
		do      func(f *forge.Forge) error
		refused bool
	}{
		"comment": {do: func(f *forge.Forge) error {
			_, err := f.CreateComment(t.Context(), forgetest.Repo(), 1, text)
			return err
		}},
		"comment that begins like a reference": {do: func(f *forge.Forge) error {
			_, err := f.CreateComment(t.Context(), forgetest.Repo(), 1, "refs/heads: "+text)
			return err
		}},
		"edited comment": {do: func(f *forge.Forge) error {
			_, err := f.EditComment(t.Context(), forgetest.Repo(), 1, text)
			return err
		}},
		"reply": {do: func(f *forge.Forge) error {
			return f.AddReply(t.Context(), forgetest.Repo(), "review", "thread", text)
		}},
		"review": {do: func(f *forge.Forge) error { return f.SubmitReview(t.Context(), forgetest.Repo(), "review", text) }},
		"issue title": {do: func(f *forge.Forge) error {
			_, err := f.CreateIssue(t.Context(), forgetest.Repo(), text, "b")
			return err
		}},
		"issue body": {do: func(f *forge.Forge) error {
			_, err := f.CreateIssue(t.Context(), forgetest.Repo(), "a", text)
			return err
		}},
		"pull request title": {do: func(f *forge.Forge) error {
			_, err := f.OpenPR(t.Context(), forgetest.Repo(), forge.NewPR{Head: "h", Base: "b", Title: text})
			return err
		}},
		"pull request body": {do: func(f *forge.Forge) error {
			_, err := f.OpenPR(t.Context(), forgetest.Repo(), forge.NewPR{Head: "h", Base: "b", Body: text})
			return err
		}},
		"GraphQL variable": {do: func(f *forge.Forge) error { return f.Minimize(t.Context(), forgetest.Repo().Installation, text) }},
		"commit message": {do: func(f *forge.Forge) error {
			_, err := f.CreateCommits(t.Context(), forgetest.Repo(), &changeset.Changeset{Base: "base", Commits: []changeset.Commit{{ID: "1", Parents: []string{"base"}, Tree: "tree", Message: text}}}, "base", nil)
			return err
		}},
		"branch name": {refused: true, do: func(f *forge.Forge) error {
			return f.MoveBranch(t.Context(), forgetest.Repo(), "errand/"+secret, "", "head")
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent strings.Builder
			gh := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.Method != http.MethodGet {
					sent.Write(body)
				}
				forgetest.Answer(w, http.StatusOK, m{"number": 1, "id": 1, "sha": "tree", "tree": m{"sha": "tree"}, "data": m{"repository": m{"id": "R_1"}}})
			})
			f := forgetest.New(t, gh.URL, func(c *forge.Config) {
				c.Redact = func(text string) string { return strings.ReplaceAll(text, secret, "[redacted]") }
			})
			err := tc.do(f)
			if class, _ := forge.Classify(err); tc.refused != (err != nil) || tc.refused && class != forge.ClassPermanent {
				t.Errorf("got error %v", err)
			}
			if got := sent.String(); strings.Contains(got, secret) || !tc.refused && !strings.Contains(got, "say [redacted] twice") {
				t.Errorf("got request %s", got)
			}
		})
	}
}

// TestReadsAreNotRedacted checks that the IDs in a query are sent unchanged.
func TestReadsAreNotRedacted(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t, func(c *forge.Config) {
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "e", "*") }
	})
	got, err := w.Forge.CreateIssue(t.Context(), w.Repo, "Greet", "Hello")
	if err != nil || got.Title != "Gr**t" {
		t.Errorf("got %+v, error %v", got, err)
	}
	if _, err := w.Forge.PollReactions(t.Context(), w.Repo.Installation, []string{got.Node}); err != nil {
		t.Errorf("read: %v", err)
	}
}
