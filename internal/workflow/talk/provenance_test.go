package talk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// states is a signer whose statement is the number of publications.
type states struct{ err error }

func (s states) State(_ context.Context, t *state.Task) (provenance.Statement, error) {
	return provenance.Statement{Envelope: fmt.Appendf(nil, `{"payload":"%d"}`, len(t.Publications)), Summary: []string{"Known: " + workflowtest.Secret}}, s.err
}

// stated returns a world with a pull request on which one changeset was published.
func stated(t *testing.T, signer states) (*workflowtest.World, func(*state.Job)) {
	t.Helper()
	w := workflowtest.New(t, func(c *workflow.Config) { c.Provenance = signer })
	w.OpenPull()
	w.Task.Publications = []state.Publication{{Head: w.Task.Branch.Head}}
	number := w.Task.PR.Number
	return w, func(j *state.Job) {
		j.Key, j.Post = fmt.Sprintf("1.provenance-%d", number), &state.Post{Kind: state.PostProvenance, OnPR: true}
		j.Args.Number = number
	}
}

// TestProvenanceIsOneComment: the statement is posted once, and edited after further publications; one that was deleted is posted again.
func TestProvenanceIsOneComment(t *testing.T) {
	t.Parallel()
	w, job := stated(t, states{})
	number := w.Task.PR.Number
	e := w.Do(state.JobPost, job)
	posted := event.Of[event.Posted](e).Comment
	if list := w.Ours(number); len(list) != 1 || !strings.Contains(list[0], `{"payload":"1"}`) || strings.Contains(list[0], workflowtest.Secret) || posted.Number != number || posted.Kind != string(state.PostProvenance) {
		t.Fatalf("got %q, %+v", list, posted)
	}
	w.Task.Posted = append(w.Task.Posted, posted)
	w.Task.Publications = append(w.Task.Publications, state.Publication{Head: "b"})
	if e := w.Do(state.JobPost, job); e.Payload != nil {
		t.Errorf("got event %+v for an edit", e)
	}
	if list := w.Ours(number); len(list) != 1 || !strings.Contains(list[0], `{"payload":"2"}`) {
		t.Fatalf("after the second publication: got %q", list)
	}
	w.Task.PR.Unstated = "It failed."
	if e := w.Do(state.JobPost, job); event.Of[event.Posted](e).Comment.ID != posted.ID {
		t.Errorf("got event %+v for an edit after a failure, which the status comment shows", e)
	}
	workflowtest.Check(t, w.Ada.DeleteComment(workflowtest.RepoName, posted.ID))
	e = w.Do(state.JobPost, job)
	if list := w.Ours(number); len(list) != 1 || event.Of[event.Posted](e).Comment.ID == posted.ID {
		t.Errorf("after its deletion: got %q, %+v", list, event.Of[event.Posted](e).Comment)
	}
}

// TestProvenanceAfterALostAnswer: the comment exists, but GitHub's answer was lost, and something was published since.
func TestProvenanceAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w, job := stated(t, states{})
	number := w.Task.PR.Number
	w.MustFault(simgithub.Fault{Method: "POST", Path: fmt.Sprintf("/issues/%d/comments$", number), Nth: 1, Count: 1, After: true, Cut: true})
	if _, err := w.Try(state.JobPost, job); err == nil {
		t.Fatal("no error without an answer")
	}
	w.Task.Publications = append(w.Task.Publications, state.Publication{Head: "b"})
	e := w.Do(state.JobPost, job, workflowtest.Again)
	if list := w.Ours(number); len(list) != 1 || !strings.Contains(list[0], `{"payload":"2"}`) || !e.Searched() {
		t.Errorf("got %q, %+v", list, e)
	}
}

// TestProvenanceIsNotPosted: there is none for another pull request, a purged task or without publications, and an unsigned one is an error.
func TestProvenanceIsNotPosted(t *testing.T) {
	t.Parallel()
	lost := errors.New("the key is gone")
	for name, c := range map[string]struct {
		signer states
		change func(t *state.Task)
		want   error
		reason string // for people, if the step knows it
	}{
		"another pull request": {change: func(t *state.Task) { t.PR.Number++ }},
		"no pull request":      {change: func(t *state.Task) { t.PR = nil }},
		"nothing published":    {change: func(t *state.Task) { t.Publications = nil }},
		"too long":             {signer: states{fmt.Errorf("sign it: %w", provenance.ErrTooLong)}, change: func(*state.Task) {}, want: provenance.ErrTooLong, reason: "does not fit into a comment"},
		"without a key":        {signer: states{lost}, change: func(*state.Task) {}, want: lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, job := stated(t, c.signer)
			number := w.Task.PR.Number
			c.change(w.Task)
			e, err := w.Try(state.JobPost, job)
			var p *step.Problem
			if c.reason != "" && (!errors.As(err, &p) || !p.Permanent || !strings.Contains(p.Reason, c.reason)) {
				t.Errorf("got error %v, want the reason %q", err, c.reason)
			}
			if !errors.Is(err, c.want) || e.Payload != nil || len(w.Ours(number)) != 0 {
				t.Errorf("got event %+v, error %v, comments %q", e, err, w.Ours(number))
			}
		})
	}
}

// TestEnvelopeIsFoundInItsComment: verification finds what a step renders.
func TestEnvelopeIsFoundInItsComment(t *testing.T) {
	t.Parallel()
	body := comment.Render(&state.Task{}, state.Post{Kind: state.PostProvenance, Text: `{"payloadType":"a","payload":"b","signatures":[]}`}, comment.View{Key: "1.provenance-2"})
	if e, ok := provenance.Find(body); !ok || e.Payload != "b" {
		t.Errorf("got %+v in:\n%s", e, body)
	}
}
