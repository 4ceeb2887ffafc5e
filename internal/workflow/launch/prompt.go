package launch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/prompts"
	"github.com/errand-bot/errand/state"
)

// prompt writes the agent's prompt, and returns the directory of attachments on the VM, empty if it lists none that can be
// read. If no session is resumed, the prompt contains the conversation so far.
func (s *Steps) prompt(
	ctx context.Context, w *step.Attempt, ws *workspace.Workspace, l *state.Launch,
) (p prompts.Prompt, attached string, err error) {
	t := w.Task
	d := prompts.Data{Task: s.promptTask(t, s.turnLimit(t, l)), Issue: s.promptIssue(t)}
	d.Task.LargeFiles = ws.Place.LargeFiles
	for _, x := range t.Context.Withheld {
		d.Withheld = append(d.Withheld, fmt.Sprintf("a text by @%s: %s", x.By.Login, x.Reason))
	}
	s.promptPlans(t, &d)
	d.Considers = t.ConsideredPlan() != nil
	if t.Asked != nil {
		d.Asked = step.Shown(t.Asked.Text, s.Redact)
	}
	newest := t.NewestPlan()
	d.Shown = newest != nil && newest.Publish != nil && newest.Superseded && t.Work != nil && l.Root == "" // else they went with their VM
	s.promptDiscussion(t, &d)
	s.promptFeedback(t, &d, l)
	if d.Plan != nil {
		files, err := s.drift(ctx, w, approvedPlan(t), l.BaseSHA)
		if err != nil {
			return p, "", err
		}
		for _, f := range files {
			d.Drift = append(d.Drift, prompts.Drift{Path: f.Path, Diff: f.Patch})
			l.Notes = append(l.Notes, fmt.Sprintf("%s changed on the base", f.Path))
		}
	}
	if t.PR != nil {
		d.PR = &prompts.PullRequest{Number: t.PR.Number, Title: t.PR.Title}
	}
	adapter, _ := s.choose(t)
	d.Tools = adapter.Capabilities().MCP
	for _, n := range t.Notes {
		d.Notes = append(d.Notes, string(n.Kind)+": "+n.Text)
	}
	for _, g := range t.Context.Guidance {
		d.Guidance = append(d.Guidance, prompts.Guidance{Path: g.Path, Text: g.Text, Cut: g.Cut})
	}
	if !l.IsRepair {
		if d.Attachments, err = s.attachments(ctx, w, ws, l); err != nil {
			return p, "", err
		}
		if slices.ContainsFunc(d.Attachments, func(a prompts.Attachment) bool { return a.Path != "" }) {
			attached = attachmentDir(ws)
		}
	}
	d.Resume = s.changed(ctx, w, ws, l)
	promptConversation(t, &d, !l.Resumed)
	if l.IsRepair {
		d.Repair, l.FeedbackIDs, l.Notes = promptRepair(t, adapter.Capabilities(), !l.Resumed), nil, nil
	}
	p, err = prompts.Render(string(t.Run.Kind), d)
	return p, attached, err
}

func (s *Steps) promptTask(t *state.Task, turns int) prompts.Task {
	p := prompts.Task{
		Owner: t.Repo.Owner, Repo: t.Repo.Name, Issue: t.Key.Issue, Run: t.Run.Seq, Base: t.Branch.Base, Branch: t.Branch.Name,
		Subject:      naming.SubjectForm(t.Settings.Commit, step.Vars(t, t.Ticket, s.Redact), t.Round > 0),
		MergeCommits: t.Settings.MergeCommits,
		Protected:    step.ProtectedPaths(s.Gate, t.Settings), Unprotected: step.ExceptedPaths(s.Gate, t.Settings), Shell: ownShell(t.Settings), Denied: deniedCommands(t.Settings), Turns: turns, Duration: t.Settings.Limits.Duration, Memory: s.Memory,
	}
	for _, c := range t.Settings.Setup {
		p.Setup = append(p.Setup, c.Run)
	}
	for _, c := range t.Settings.Check {
		if c.BeforePR {
			p.CheckBeforePR = append(p.CheckBeforePR, c.Run)
		} else {
			p.Check = append(p.Check, c.Run)
		}
	}
	p.Coverage, p.Mutation = t.Settings.Gates.Coverage, t.Settings.Gates.Mutation
	p.TestEnv, p.TestFiles = slices.Sorted(maps.Keys(s.Workspaces.Tests(t).Env)), s.Workspaces.TestPaths(t)
	return p
}

// promptIssue returns the issue as frozen, which may be newer than the text that the job start read: hidden content
// is removed here.
func (s *Steps) promptIssue(t *state.Task) prompts.Issue {
	out := prompts.Issue{
		Title: fmt.Sprintf("Issue %d (its text is withheld)", t.Key.Issue), Author: t.Author.Login,
		Labels: t.Context.Labels, Type: t.Context.IssueType, Milestone: t.Context.Milestone,
	}
	if t.Context.ShowsIssue {
		title, _ := trust.StripLine(t.Frozen.Title)
		title, _ = s.Redact.Redact(title)
		if title != "" {
			out.Title = title
		}
		out.Body = step.Shown(t.Frozen.Body, s.Redact)
	}
	return out
}

// promptPlans adds the approved plan, verbatim, and the revision that this run replaces.
func (s *Steps) promptPlans(t *state.Task, d *prompts.Data) {
	if p, a := approvedPlan(t), t.Approval; p != nil {
		d.Plan = promptPlan(p)
		d.Plan.ApprovedBy = a.By.Login
		if a.Choice > 0 && a.Choice <= len(p.Approaches) {
			d.Plan.Approach = fmt.Sprintf("%d: %s", a.Choice, p.Approaches[a.Choice-1])
		}
		for _, f := range t.Feedback {
			if f.Kind == state.FeedbackCondition && !f.Steers {
				d.Plan.Conditions = append(d.Plan.Conditions, step.Shown(f.Body, s.Redact))
			}
		}
	}
	want := state.PlanThorough
	if t.Run.Kind == state.RunPreliminary {
		want = state.PlanPreliminary
	}
	if t.Run.Kind == state.RunPreliminary || t.Run.Kind == state.RunPlan {
		for i := range t.Plans {
			if t.Plans[i].Kind == want {
				d.Previous = promptPlan(&t.Plans[i])
			}
		}
	}
}

func promptPlan(p *state.Plan) *prompts.Plan {
	return &prompts.Plan{Kind: string(p.Kind), Revision: p.Revision, Hash: p.Short(), Text: p.Text}
}

// promptDiscussion adds the visible comments: those before the plan, and those since.
func (s *Steps) promptDiscussion(t *state.Task, d *prompts.Data) {
	pivot := approvedPlan(t)
	for _, c := range t.Context.Comments {
		if answers(t, c) {
			continue // it is shown where the agent has to answer it
		}
		said := prompts.Said{Author: c.By.Login, At: c.At, Body: step.Shown(c.Body, s.Redact)}
		if pivot != nil && c.At.After(pivot.Made) {
			d.Since = append(d.Since, said)
		} else {
			d.Discussion = append(d.Discussion, said)
		}
	}
	if d.Plan == nil {
		return
	}
	for _, f := range t.Feedback { // comments since the context was read, for runs that answer nothing
		if f.Kind == state.FeedbackComment && !f.After && !f.Steers && t.Run.Kind == state.RunImplement {
			d.Since = append(d.Since, prompts.Said{Author: f.By.Login, At: f.At, Body: step.Shown(f.Body, s.Redact)})
		}
	}
}

// answers reports whether a planning run answers a comment that was read again with the discussion.
func answers(t *state.Task, c state.DiscussionComment) bool {
	if t.Run.Kind != state.RunPreliminary && t.Run.Kind != state.RunPlan {
		return false
	}
	return slices.ContainsFunc(t.Feedback, func(f state.Feedback) bool {
		return f.Kind == state.FeedbackComment && f.ID == fmt.Sprintf("comment:%d", c.ID) && (f.TakenBy == "" || f.TakenBy == t.Run.ID)
	})
}

// approvedPlan returns the plan that the task carries out, or nil.
func approvedPlan(t *state.Task) *state.Plan {
	if t.Approval == nil {
		return nil
	}
	return t.PlanByHash(t.Approval.Hash)
}

// promptFeedback adds the feedback that the run has to answer, and notes in the launch that the run took it.
func (s *Steps) promptFeedback(t *state.Task, d *prompts.Data, l *state.Launch) {
	for _, f := range t.Feedback {
		if s.promptMessage(f, d) {
			l.FeedbackIDs = append(l.FeedbackIDs, f.ID)
			continue
		}
		if f.Kind == state.FeedbackCondition || f.After {
			continue
		}
		if f.TakenBy != "" && f.TakenBy != t.Run.ID && !slices.ContainsFunc(t.Runs,
			func(r state.Run) bool { return r.ID == f.TakenBy && r.Kind == t.Run.Kind && r.Round == t.Run.Round }) {
			continue
		}
		l.FeedbackIDs = append(l.FeedbackIDs, f.ID)
		body := step.Shown(f.Body, s.Redact)
		if f.Kind == state.FeedbackChecks || f.Kind == state.FeedbackRefusal || f.Kind == state.FeedbackConflict {
			body, _ = s.Redact.Redact(f.Body) // errand's own text, and the unchanged output of commands
		}
		d.Feedback = append(d.Feedback, prompts.Feedback{
			ID: f.ID, Kind: string(f.Kind), Author: f.By.Login, At: f.At, Body: body, Path: f.Path, Line: f.Line, Hunk: f.Hunk, Items: f.Items,
		})
	}
}

// promptMessage adds a message to a working agent, unless it is ordinary feedback by now. It reports whether no run has received
// the message yet.
func (s *Steps) promptMessage(f state.Feedback, d *prompts.Data) bool {
	switch {
	case !f.Steers:
	case f.TakenBy == "":
		d.Messages = append(d.Messages, prompts.Feedback{ID: f.ID, Kind: string(state.FeedbackComment), Author: f.By.Login,
			At: f.At, Body: step.Shown(f.Body, s.Redact)})
		return true
	case f.Kind == state.FeedbackCondition:
		d.Conditions = append(d.Conditions, prompts.Said{Author: f.By.Login, At: f.At, Body: step.Shown(f.Body, s.Redact)})
	}
	return false
}

// promptConversation adds the conversation so far, for a new session.
func promptConversation(t *state.Task, d *prompts.Data, anew bool) {
	if lastAgentRun(t) == nil {
		return
	}
	if !anew {
		return
	}
	for _, p := range t.Plans {
		if p.Kind == state.PlanPublish { // the agent has its commits
			continue
		}
		d.Conversation = append(d.Conversation, prompts.Turn{Role: "agent", Text: p.Text})
	}
	for i := range t.Runs {
		if text := t.Runs[i].LastMessage; text != "" && (t.Work == nil || t.Work.Run != t.Runs[i].ID) {
			d.Conversation = append(d.Conversation, prompts.Turn{Role: "agent", Text: text})
		}
	}
	if t.Work != nil && t.Work.Text != "" { // the whole of it
		d.Conversation = append(d.Conversation, prompts.Turn{Role: "agent", Text: t.Work.Text})
	}
}

// drift returns the files that the plan names and that changed since it was made.
func (s *Steps) drift(ctx context.Context, w *step.Attempt, plan *state.Plan, head string) ([]forge.ChangedFile, error) {
	if plan == nil || plan.BaseSHA == "" || head == "" || plan.BaseSHA == head || len(plan.Files) == 0 {
		return nil, nil
	}
	cmp, err := s.GitHub.ChangedSince(ctx, w.Repo, plan.BaseSHA, head)
	if err != nil {
		return nil, fmt.Errorf("compare the base with the plan's: %w", err)
	}
	var out []forge.ChangedFile
	for _, f := range cmp.Files {
		for _, named := range plan.Files {
			if f.Path == named || f.OldPath == named || strings.HasPrefix(f.Path, strings.TrimSuffix(named, "/")+"/") {
				out = append(out, f)
				break
			}
		}
	}
	return out, nil
}
