// Package intake reads the input of tasks from GitHub: the permissions of people, the issue with its discussion,
// settings and blockers, review threads and checks.
//
// Start with Steps.Vet, the first step of an event by a person, and Steps.Start, the first of a task.
package intake

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/green"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Steps are the steps that read GitHub.
type Steps struct {
	GitHub   GitHub
	Settings *step.RepoSettings
	Redact   *trust.Redactor
	Now      func() time.Time
	// ChecksQuiet is how long no check may have appeared before a head is green that needs none.
	ChecksQuiet time.Duration
	// AllowUsers and AllowBots are logins whose text the agent may see in addition to writers'.
	AllowUsers, AllowBots []string
}

// GitHub has the calls of GitHub's API that these steps need.
type GitHub interface {
	step.Self
	step.Heads
	step.Installations
	Permission(ctx context.Context, r forge.Repo, login string, id int64) (state.Permission, error)
	Issue(ctx context.Context, r forge.Repo, number int) (forge.Issue, error)
	IssueState(ctx context.Context, installation int64, owner, name string, number int) (open bool, err error)
	Blockers(ctx context.Context, r forge.Repo, number int) ([]forge.Blocker, error)
	IssueSnapshot(ctx context.Context, r forge.Repo, number int, file string) (forge.IssueSnapshot, error)
	PullText(ctx context.Context, r forge.Repo, number int) (forge.PullText, error)
	CommentAndHead(ctx context.Context, r forge.Repo, node, branch string) (said *forge.Comment, head string, err error)
	CommitFiles(ctx context.Context, r forge.Repo, commit string, files []string) (map[string]string, error)
	FilePaths(ctx context.Context, r forge.Repo, commit string) ([]string, error)
	Branches(ctx context.Context, r forge.Repo, prefix string) ([]forge.Branch, error)
	PR(ctx context.Context, r forge.Repo, number int) (forge.PR, error)
	Checks(ctx context.Context, r forge.Repo, number int, head string) (green.Report, error)
	CommitChecks(ctx context.Context, r forge.Repo, ref string) ([]green.Check, error)
	FailedCheck(ctx context.Context, r forge.Repo, c green.Check, withLog bool) (green.Cause, error)
	RerunCheck(ctx context.Context, r forge.Repo, c green.Check) error
	Threads(ctx context.Context, r forge.Repo, number int) ([]forge.Thread, error)
}

// Start reads all data that is required before an agent starts: the repository's settings, the text that the agent may
// see, blockers, existing work by others, and the commit at which the branch begins. It only reads, so it may be
// repeated at any time.
func (s *Steps) Start(ctx context.Context, w *step.Attempt) (event.Event, error) {
	issue, err := s.GitHub.Issue(ctx, w.Repo, w.Task.Key.Issue)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the issue: %w", err)
	}
	if issue.Closed {
		return event.Event{Via: event.ViaStart, At: issue.ClosedAt, Payload: event.IssueClosed{}}, nil
	}
	if waiting, err := step.MissingPermissions(ctx, s.GitHub, w); waiting != nil || err != nil {
		return step.Blocked(waiting), err
	}
	at := s.Now()
	out, err := s.GitHub.IssueSnapshot(ctx, w.Repo, w.Task.Key.Issue, step.ConfigFile)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the discussion: %w", err)
	}
	if missed, err := s.missed(ctx, w, issue, out.Text.Editor); missed != nil || err != nil {
		return orNothing(missed), err
	}
	settings, waiting := s.Settings.Of(w.Task.Repo.FullName(), out)
	if waiting != nil {
		return step.Blocked(waiting), nil
	}
	view, err := s.visible(ctx, w, settings, out)
	if err != nil {
		return event.Event{}, fmt.Errorf("decide what the agent may see: %w", err)
	}
	st := &event.Start{Settings: settings, Context: s.context(w.Task, view), Visible: !view.Empty(), ReadAt: at}
	if view.Empty() {
		return event.Event{Payload: event.Started{Start: *st}}, nil
	}
	if waiting, err = s.blocked(ctx, w, issue, view); waiting != nil || err != nil {
		return step.Blocked(waiting), err
	}
	if err := s.branch(ctx, w, st, view, out); err != nil {
		return event.Event{}, fmt.Errorf("find where the branch begins: %w", err)
	}
	if err := s.base(ctx, w, st); err != nil {
		return event.Event{}, err
	}
	st.Branch.BaseAt = at
	return s.ask(ctx, w, st, out.Linked)
}

// missed returns the event of an edit of the issue while its task was being created: the webhooks about
// it could not be applied. An edit whose editor GitHub does not name counts as one by a user without write access.
func (s *Steps) missed(ctx context.Context, w *step.Attempt, i forge.Issue, editor *state.Person) (*event.Event, error) {
	t := w.Task
	if t.Frozen.Changed != nil || t.Frozen.Matches(i.Title, i.Body) {
		return nil, nil
	}
	issue := i.Issue
	e := &event.Event{Via: event.ViaStart, By: t.Author, Permission: state.PermissionNone, At: i.UpdatedAt, Payload: event.IssueEdited{Issue: &issue}}
	if editor == nil || i.Title != t.Frozen.Title {
		return e, nil
	}
	e.By = *editor
	p, err := s.permission(ctx, w, e.By)
	if err != nil {
		return nil, fmt.Errorf("read the permission of @%s, who edited the issue: %w", e.By.Login, err)
	}
	e.Permission = p
	return e, nil
}

// orNothing is the event, or that of a step after which nothing follows.
func orNothing(e *event.Event) event.Event {
	if e == nil {
		return step.Done()
	}
	return *e
}

// context returns the part of the visible text that the task keeps.
func (s *Steps) context(t *state.Task, v trust.View) state.Context {
	c := state.Context{Labels: t.Context.Labels, IssueType: t.Context.IssueType, Milestone: t.Context.Milestone, Title: v.Title, Body: v.Body, ShowsIssue: v.ShowsIssue}
	for _, m := range v.Comments {
		c.Comments = append(c.Comments, state.DiscussionComment{ID: m.ID, By: m.Author, At: m.At, Body: m.Body})
	}
	for _, m := range v.Withheld {
		c.Withheld = append(c.Withheld, state.Withheld{ID: m.ID, Node: m.Node, By: m.By, Reason: m.Reason})
	}
	for _, x := range v.Stripped {
		if x.Kind != "" {
			c.Stripped = append(c.Stripped, fmt.Sprintf("%d × %s", x.Count, x.Kind))
		}
	}
	return c
}

// ask asks the first question before going on, if there is one.
func (s *Steps) ask(ctx context.Context, w *step.Attempt, st *event.Start, linked []forge.LinkedPR) (event.Event, error) {
	list, err := s.questions(ctx, w, st, linked)
	if err != nil {
		return event.Event{}, err
	}
	if len(list) > 0 {
		return event.Event{Payload: event.QuestionRaised{Start: st, Question: list[0]}}, nil
	}
	return event.Event{Payload: event.Started{Start: *st}}, nil
}

// questions returns what people are asked before an agent starts, one question after the other: about work by others, and about a required
// ticket key.
func (s *Steps) questions(ctx context.Context, w *step.Attempt, st *event.Start, linked []forge.LinkedPR) (list []state.Question, err error) {
	t := w.Task
	st.Ticket = s.ticket(t, st.Settings, trust.View{Title: st.Context.Title, Body: st.Context.Body, Comments: saidOf(st.Context.Comments)})
	if !t.Context.Cleared && len(t.Plans) == 0 {
		existing, err := s.existing(ctx, w, st, linked)
		if err != nil {
			return nil, fmt.Errorf("look for work by others: %w", err)
		}
		st.Context.Existing = existing
		if len(existing) > 0 {
			list = append(list, state.Question{Kind: state.AskExisting, Text: namesOf(existing)})
		}
	}
	if st.Settings.Key.Required && st.Ticket == "" {
		list = append(list, state.Question{Kind: state.AskKey, Text: st.Settings.Key.Pattern})
	}
	return list, nil
}

func saidOf(list []state.DiscussionComment) []trust.Visible {
	var out []trust.Visible
	for _, c := range list {
		out = append(out, trust.Visible{ID: c.ID, Author: c.By, At: c.At, Body: c.Body})
	}
	return out
}

func namesOf(list []state.Existing) string {
	var names []string
	for _, x := range list {
		names = append(names, string(x.Kind)+" "+x.Name)
	}
	return strings.Join(names, ", ")
}

// existing lists open pull requests that are linked to the issue and branches that the template names for
// it, unless they are errand's.
func (s *Steps) existing(ctx context.Context, w *step.Attempt, st *event.Start, linked []forge.LinkedPR) ([]state.Existing, error) {
	t := w.Task
	me, err := s.GitHub.Self(ctx)
	if err != nil {
		return nil, err
	}
	var out []state.Existing
	for _, p := range linked {
		if p.Open && p.By.ID != me.BotID {
			out = append(out, state.Existing{Kind: state.ExistingPR, Name: fmt.Sprintf("#%d", p.Number), URL: p.URL, By: p.By})
		}
	}
	if t.Gen != 1 { // an earlier life may have left branches
		return out, nil
	}
	ours, err := naming.BranchesOf(st.Settings.Branch, step.Vars(t, st.Ticket, s.Redact))
	if err != nil {
		return nil, err
	}
	branches, err := s.GitHub.Branches(ctx, w.Repo, ours.Prefix)
	if err != nil {
		return nil, err
	}
	for _, b := range branches {
		if ours.Has(b.Name) {
			out = append(out, state.Existing{Kind: state.ExistingBranch, Name: b.Name, URL: t.Repo.URL + "/tree/" + b.Name})
		}
	}
	return out, nil
}
