package workflow

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// start reads all that has to be known before an agent is asked: the repository's settings, what
// the agent may see, what blocks the issue, what others did already, where the branch begins. It
// only reads, so it may be repeated at any time.
func (s *Steps) start(ctx context.Context, w *unit) (state.Event, error) {
	issue, err := s.GitHub.Issue(ctx, w.repo, w.task.Key.Issue)
	if err != nil {
		return state.Event{}, fmt.Errorf("read the issue: %w", err)
	}
	if issue.Closed {
		return state.Event{Kind: state.EventIssueClosed, Via: state.ViaStart, At: issue.ClosedAt}, nil
	}
	if held, err := s.permitted(ctx, w); held != nil || err != nil {
		return heldUp(held), err
	}
	at := s.Now()
	out, err := s.GitHub.IssueSnapshot(ctx, w.repo, w.task.Key.Issue, configFile)
	if err != nil {
		return state.Event{}, fmt.Errorf("read the discussion: %w", err)
	}
	if missed, err := s.missed(ctx, w, issue, out.Text.Editor); missed != nil || err != nil {
		return orNothing(missed), err
	}
	settings, held := s.settings(w, out)
	if held != nil {
		return heldUp(held), nil
	}
	view, err := s.visible(ctx, w, settings, out)
	if err != nil {
		return state.Event{}, fmt.Errorf("decide what the agent may see: %w", err)
	}
	e := state.Event{Kind: state.EventStarted, Start: &state.Start{Settings: settings, Context: s.context(w.task, view), Visible: !view.Empty(), ReadAt: at}}
	if view.Empty() {
		return e, nil
	}
	if held, err = s.blocked(ctx, w, issue, view); held != nil || err != nil {
		return heldUp(held), err
	}
	if err := s.branch(ctx, w, e.Start, view, out); err != nil {
		return state.Event{}, fmt.Errorf("find where the branch begins: %w", err)
	}
	if err := s.base(ctx, w, e.Start); err != nil {
		return state.Event{}, err
	}
	e.Start.Branch.BaseAt = at
	return s.questions(ctx, w, e, out.Linked)
}

// missed is what happened to the issue while its task was in the making: nobody could take the
// webhooks about it. An edit whose editor GitHub does not tell counts as an outsider's.
func (s *Steps) missed(ctx context.Context, w *unit, i forge.Issue, editor *state.Person) (*state.Event, error) {
	t := w.task
	if t.Frozen.Changed != nil || state.FreezeHash(i.Title, i.Body) == t.Frozen.Hash {
		return nil, nil
	}
	issue := i.Issue
	e := &state.Event{Kind: state.EventIssueEdited, Via: state.ViaStart, By: t.Author, Permission: state.PermissionNone, At: s.Now(), Issue: &issue}
	if editor == nil || i.Title != t.Frozen.Title {
		return e, nil
	}
	e.By = *editor
	p, err := s.permission(ctx, w, e.By)
	if err != nil {
		return nil, fmt.Errorf("ask what @%s, who edited the issue, may do: %w", e.By.Login, err)
	}
	e.Permission = p
	return e, nil
}

// orNothing is the event, or that of a step after which nothing follows.
func orNothing(e *state.Event) state.Event {
	if e == nil {
		return done()
	}
	return *e
}

// heldUp is the event of a step that cannot go on for now.
func heldUp(w *state.Waiting) state.Event {
	return state.Event{Kind: state.EventHeldUp, Waiting: w}
}

// configFile is the repository's own settings, read from its default branch only.
const configFile = ".errand.yml"

// settings are the repository's, those of the organisation's `.github` repository where it has none.
func (s *Steps) settings(w *unit, out forge.IssueSnapshot) (state.Settings, *state.Waiting) {
	data := out.Config
	if data == nil {
		data = out.OrgConfig
	}
	settings := s.Defaults
	if data != nil {
		var err error
		if settings, err = s.RepoConfig(data); err != nil {
			return settings, &state.Waiting{Kind: state.WaitConfig, Detail: err.Error()}
		}
	}
	if why := s.operatorsShell(w.task.Repo.FullName(), &settings); why != "" {
		return settings, &state.Waiting{Kind: state.WaitConfig, Detail: why}
	}
	if !settings.Enabled {
		return settings, &state.Waiting{Kind: state.WaitDisabled, Detail: "`enabled` is false, so nothing new is started"}
	}
	return settings, nil
}

// visible decides what the agent may see of the issue and its discussion.
func (s *Steps) visible(ctx context.Context, w *unit, settings state.Settings, out forge.IssueSnapshot) (trust.View, error) {
	t := w.task
	issue := trust.Issue{Title: t.Frozen.Title, Comment: commentOf(out.Text), VouchedBy: t.Frozen.By}
	issue.Body = t.Frozen.Body // as frozen, whatever stands there now
	comments := make([]trust.Comment, 0, len(out.Comments))
	for _, c := range out.Comments {
		comments = append(comments, commentOf(c))
	}
	return s.decide(ctx, w, settings, issue, comments)
}

func commentOf(c forge.Comment) trust.Comment {
	out := trust.Comment{ID: c.ID, Node: c.Node, Author: c.Author, Body: c.Body, CreatedAt: c.CreatedAt, EditedAt: c.EditedAt}
	if c.Editor != nil {
		out.EditedBy = *c.Editor
	}
	for _, th := range c.ThumbsUp {
		out.ThumbsUp = append(out.ThumbsUp, trust.Reaction{By: th.By, At: th.At})
	}
	return out
}

// permissionsOf answers for permissions on the repository of a job's task.
type permissionsOf struct {
	steps *Steps
	unit  *unit
}

// Permission returns what a person may do there.
func (p permissionsOf) Permission(ctx context.Context, who state.Person) (state.Permission, error) {
	return p.steps.permission(ctx, p.unit, who)
}

// context is what the task keeps of what the agent may see.
func (s *Steps) context(t *state.Task, v trust.View) state.Context {
	c := state.Context{Labels: t.Context.Labels, IssueType: t.Context.IssueType, Milestone: t.Context.Milestone, Title: v.Title, Body: v.Body, ShowsIssue: v.ShowsIssue}
	for _, m := range v.Comments {
		c.Comments = append(c.Comments, state.Said{ID: m.ID, By: m.Author, At: m.At, Body: m.Body})
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

// refusedElsewhere reports whether GitHub does not let the App read an issue of another repository: it need not be installed
// there, and the repository may have moved.
func refusedElsewhere(err error, ref, home trust.IssueRef) bool {
	if err == nil || errors.Is(err, forge.ErrNotInstalled) || strings.EqualFold(ref.Owner+"/"+ref.Name, home.Owner+"/"+home.Name) {
		return false
	}
	class, _ := forge.Classify(err)
	return class == forge.ClassPermanent || errors.Is(err, forge.ErrRenamed)
}

// blocked says which other issues have to be closed first: GitHub's dependencies and sub-issues,
// and what trusted people wrote.
func (s *Steps) blocked(ctx context.Context, w *unit, i forge.Issue, v trust.View) (*state.Waiting, error) {
	t := w.task
	var found []forge.Blocker
	if !i.NoRelations {
		var err error
		if found, err = s.GitHub.Blockers(ctx, w.repo, t.Key.Issue); err != nil {
			return nil, fmt.Errorf("read what blocks the issue: %w", err)
		}
	}
	var open []string
	for _, b := range found {
		if b.Open {
			open = append(open, b.String())
		}
	}
	home := trust.IssueRef{Owner: t.Repo.Owner, Name: t.Repo.Name, Number: t.Key.Issue}
	texts := []string{v.Body}
	for _, c := range v.Comments {
		texts = append(texts, c.Body)
	}
	for _, ref := range trust.Blockers(strings.Join(texts, "\n\n"), home) {
		isOpen, err := s.GitHub.IssueState(ctx, t.Installation, ref.Owner, ref.Name, ref.Number)
		if errors.Is(err, forge.ErrNotFound) || refusedElsewhere(err, ref, home) {
			continue // a reference to what we cannot see blocks nothing
		}
		if err != nil {
			return nil, fmt.Errorf("look at %s/%s#%d: %w", ref.Owner, ref.Name, ref.Number, err)
		}
		name := fmt.Sprintf("%s/%s#%d", ref.Owner, ref.Name, ref.Number)
		if isOpen && !slices.Contains(open, name) {
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	return &state.Waiting{Kind: state.WaitBlocked, Detail: "blocked by " + strings.Join(open, ", "), Issues: open}, nil
}

// branch finds the base, its newest commit, the ticket key and a name for the branch.
func (s *Steps) branch(ctx context.Context, w *unit, st *state.Start, v trust.View, out forge.IssueSnapshot) error {
	t := w.task
	b := state.Branch{Base: t.Trigger.Base}
	if b.Base == "" {
		b.Base = st.Settings.Base
	}
	if b.Base == "" {
		b.Base = t.Repo.DefaultBranch
	}
	err := error(nil)
	if b.Base == out.DefaultBranch {
		b.BaseSHA = out.Head
	} else {
		b.BaseSHA, err = s.GitHub.Head(ctx, w.repo, b.Base)
	}
	if errors.Is(err, forge.ErrNotFound) {
		return &Problem{Reason: fmt.Sprintf("The base branch `%s` does not exist.", b.Base), Hint: "Name another with `base: NAME` in the issue or in `.errand.yml`, then comment `retry`.", Class: "config", Permanent: true, Err: err}
	} else if err != nil {
		return err
	}
	b.Name, err = comment.Expand(st.Settings.Branch, s.vars(t, s.ticket(t, st.Settings, v)))
	if err != nil {
		return &Problem{Reason: "The branch template cannot be used.", Hint: err.Error(), Class: "config", Permanent: true, Err: err}
	}
	if t.Gen > 1 { // an earlier life may have left its branch
		b.Name = fmt.Sprintf("%s-%d", b.Name, t.Gen)
	}
	if !comment.ValidRef(b.Name) {
		return &Problem{Reason: fmt.Sprintf("The branch template gives `%s`, which git does not take as a name.", b.Name), Hint: "Change `branch:` in `.errand.yml`, then comment `retry`.", Class: "config", Permanent: true}
	}
	if clean, _ := s.Redact.Redact(b.Name); clean != b.Name { // values that are none may make one together, or in lower case
		return &Problem{Reason: "The branch template gives a name that holds a secret.", Hint: "Change the issue's title or `branch:` in `.errand.yml`, then comment `retry`.", Class: "config", Permanent: true}
	}
	st.Branch = b
	return nil
}

// vars are what the templates for branches, commits and titles are filled with.
func (s *Steps) vars(t *state.Task, ticket string) comment.Vars {
	title := t.Frozen.Title
	if t.Work != nil && t.Work.Title != "" {
		title = t.Work.Title
	}
	name, _ := s.Redact.Redact(t.Frozen.Title) // a slug would not be known for a secret any more
	title, _ = s.Redact.Redact(title)
	ticket, _ = s.Redact.Redact(ticket)
	return comment.Vars{Key: ticket, Number: t.Key.Issue, Slug: comment.Slug(name), Task: title}
}

// ticket finds the repository's ticket key as a person named it, or in what people said. Where the
// repository has a pattern nothing else is a key.
func (s *Steps) ticket(t *state.Task, settings state.Settings, v trust.View) string {
	if settings.Key.Pattern == "" {
		return t.Ticket
	}
	re, err := regexp.Compile(settings.Key.Pattern)
	if err != nil {
		return "" // the settings were validated when they were read
	}
	texts := []string{t.Ticket, v.Title, v.Body}
	for _, c := range v.Comments {
		texts = append(texts, c.Body)
	}
	for _, text := range texts {
		if key := re.FindString(text); key != "" {
			return key
		}
	}
	return ""
}

// questions asks people before going on: about work by others, and about a required ticket key.
func (s *Steps) questions(ctx context.Context, w *unit, e state.Event, linked []forge.LinkedPR) (state.Event, error) {
	t, st := w.task, e.Start
	st.Ticket = s.ticket(t, st.Settings, trust.View{Title: st.Context.Title, Body: st.Context.Body, Comments: saidOf(st.Context.Comments)})
	if !t.Context.Cleared && len(t.Plans) == 0 {
		existing, err := s.existing(ctx, w, st, linked)
		if err != nil {
			return state.Event{}, fmt.Errorf("look for work by others: %w", err)
		}
		st.Context.Existing = existing
		if len(existing) > 0 {
			return state.Event{Kind: state.EventAsked, Start: st, Question: &state.Question{Kind: state.AskExisting, Text: namesOf(existing)}}, nil
		}
	}
	if st.Settings.Key.Required && st.Ticket == "" {
		return state.Event{Kind: state.EventAsked, Start: st, Question: &state.Question{Kind: state.AskKey, Text: st.Settings.Key.Pattern}}, nil
	}
	return e, nil
}

func saidOf(list []state.Said) []trust.Visible {
	var out []trust.Visible
	for _, c := range list {
		out = append(out, trust.Visible{ID: c.ID, Author: c.By, At: c.At, Body: c.Body})
	}
	return out
}

func namesOf(list []state.Existing) string {
	var names []string
	for _, x := range list {
		names = append(names, x.Kind+" "+x.Name)
	}
	return strings.Join(names, ", ")
}

// existing lists open pull requests that are linked to the issue and branches that the template names for
// it, unless they are ours.
func (s *Steps) existing(ctx context.Context, w *unit, st *state.Start, linked []forge.LinkedPR) ([]state.Existing, error) {
	t := w.task
	me, err := s.GitHub.Self(ctx)
	if err != nil {
		return nil, err
	}
	var out []state.Existing
	for _, p := range linked {
		if p.Open && p.By.ID != me.BotID {
			out = append(out, state.Existing{Kind: "pull request", Name: fmt.Sprintf("#%d", p.Number), URL: p.URL, By: p.By})
		}
	}
	if t.Gen != 1 { // an earlier life may have left branches
		return out, nil
	}
	ours, err := comment.BranchesOf(st.Settings.Branch, s.vars(t, st.Ticket))
	if err != nil {
		return nil, err
	}
	branches, err := s.GitHub.Branches(ctx, w.repo, ours.Prefix)
	if err != nil {
		return nil, err
	}
	for _, b := range branches {
		if ours.Has(b.Name) {
			out = append(out, state.Existing{Kind: "branch", Name: b.Name, URL: t.Repo.URL + "/tree/" + b.Name})
		}
	}
	return out, nil
}
