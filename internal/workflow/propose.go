package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/callback"
	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// createIssue creates an issue that an agent proposed and a person wanted, once: after an unknown outcome it is
// looked for by its hidden marker.
func (s *Steps) createIssue(ctx context.Context, w *unit) (state.Event, error) {
	n, err := strconv.Atoi(w.job.Args["n"])
	if err != nil || n < 1 || n > len(w.task.Proposed) || w.task.Proposed[n-1].Issue != 0 {
		return done(), nil // of an earlier life, or there already
	}
	v, err := s.view(ctx)
	if err != nil {
		return state.Event{}, err
	}
	v.Key = w.task.Key.String() + "/" + w.job.Key // it is looked for in the whole repository
	title, body := comment.Proposed(w.task, &w.task.Proposed[n-1], v)
	title, _ = s.Redact.Redact(title)
	body, _ = s.Redact.Redact(body)
	before, err := s.attempted(ctx, w)
	if err != nil {
		return state.Event{}, err
	}
	var issue forge.Issue
	if before {
		found, err := s.GitHub.FindIssues(ctx, w.repo, comment.Marker(v.Key), since(w.job).Add(-lookBack))
		if err != nil {
			return state.Event{}, fmt.Errorf("look for the proposed issue: %w", err)
		}
		if len(found) > 0 {
			issue = found[0]
		}
	}
	if issue.Number == 0 {
		if issue, err = s.GitHub.CreateIssue(ctx, w.repo, title, body); err != nil {
			return state.Event{}, fmt.Errorf("create the proposed issue: %w", err)
		}
	}
	return state.Event{Kind: state.EventCreated, Created: &state.Created{N: n, Issue: issue.Number, URL: issue.URL, OnPR: w.job.Args["on_pr"] != ""}}, nil
}

// tokenFile is where a run's token lies for the server of errand's tools: it must not be an argument, which other
// users of the VM could read.
func tokenFile(runDir string) string { return path.Join(runDir, "callback.token") }

// toolServer is the MCP configuration by which an agent reaches errand's tools, nil for one that has no MCP.
func toolServer(a agent.Adapter, place runnerctl.Place, runDir string) json.RawMessage {
	if !a.Capabilities().MCP {
		return nil
	}
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	raw, _ := json.Marshal(map[string]any{"mcpServers": map[string]server{ // strings always encode
		tools.Server: {Command: place.Runner, Args: []string{"mcp", "--url", place.BaseURL, "--token-file", tokenFile(runDir)}},
	}})
	return raw
}

// decide says what of an issue and its comments a task's agent may see.
func (s *Steps) decide(ctx context.Context, w *unit, settings state.Settings, issue trust.Issue, comments []trust.Comment) (trust.View, error) {
	me, err := s.GitHub.Self(ctx)
	if err != nil {
		return trust.View{}, err
	}
	return trust.Decide(ctx, issue, comments, permissionsOf{s.GitHub, w.repo}, trust.Policy{
		Self: me.BotID, Allowed: slices.Concat(s.AllowUsers, settings.AllowUsers), Bots: slices.Concat(s.AllowBots, settings.AllowBots), Redactor: s.Redact,
	})
}

// discussion reads the text of an issue or a pull request, and its comments.
func (s *Steps) discussion(ctx context.Context, w *unit, i forge.Issue) (forge.CommentView, []forge.CommentView, error) {
	if i.IsPR {
		return s.GitHub.PullText(ctx, w.repo, i.Number)
	}
	out, err := s.GitHub.Outset(ctx, w.repo, i.Number, configFile)
	return out.Text, out.Comments, err
}

// Seen is the text of an issue or pull request of a task's repository and its discussion, as far as the task's agent may see them:
// what people with write permission wrote, or vouched for. The errors are those of package callback.
func (s *Steps) Seen(ctx context.Context, t *state.Task, number int) (string, error) {
	w := &unit{task: t, repo: forge.RepoOf(t)}
	i, err := s.GitHub.Issue(ctx, w.repo, number)
	if errors.Is(err, forge.ErrNotFound) {
		return "", callback.ErrUnknown
	}
	if err != nil {
		return "", fmt.Errorf("read the issue: %w", err)
	}
	text, said, err := s.discussion(ctx, w, i)
	if err != nil {
		return "", fmt.Errorf("read the discussion: %w", err)
	}
	comments := make([]trust.Comment, 0, len(said))
	for _, c := range said {
		comments = append(comments, commentOf(c))
	}
	view, err := s.decide(ctx, w, t.Settings, trust.Issue{Title: i.Title, Comment: commentOf(text)}, comments)
	if err != nil {
		return "", fmt.Errorf("decide what the agent may see: %w", err)
	}
	if view.Empty() {
		return "", callback.ErrUnseen
	}
	var b strings.Builder
	if view.ShowsIssue {
		fmt.Fprintf(&b, "#%d: %s\n\n%s\n", number, view.Title, view.Body)
	} else {
		fmt.Fprintf(&b, "#%d: its title and text are withheld\n", number)
	}
	for _, c := range view.Comments {
		fmt.Fprintf(&b, "\n%s at %s:\n\n%s\n", c.Author.Login, c.At.UTC().Format("2006-01-02 15:04 UTC"), c.Body)
	}
	if n := len(view.Withheld); n > 0 {
		fmt.Fprintf(&b, "\n(%d texts by others are withheld)\n", n)
	}
	return b.String(), nil
}
