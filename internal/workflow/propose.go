package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/runnerctl"
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
