// Package handlers receives webhooks from GitHub and turns them into events for tasks.
//
// Front verifies a webhook and writes it to the store under its GUID; only then is the request answered. A worker takes
// deliveries in the order of their arrival, decodes each and maps it to events (package event; events.go lists the webhooks).
// Store.Apply applies them; the last one marks the delivery as processed in the same transaction. Mapping never calls
// GitHub.
//
// Start with Front, then Inbox, then Mapper.Map.
package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Tasks is the part of the store that mapping reads.
type Tasks interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	TaskByPR(ctx context.Context, repo int64, number int) (*state.Task, error)
	// Overviews returns, for every open task, the fields that mapping needs.
	Overviews(ctx context.Context) ([]state.TaskOverview, error)
	// OutOfReach lists the tasks that ended because errand lost access.
	OutOfReach(ctx context.Context) ([]*state.Task, error)
}

// Config has errand's own identities and the triggers of tasks.
type Config struct {
	Slug     string // the App's slug: people mention it as @slug
	BotID    int64  // user ID of errand's own account, whose actions are ignored
	Assignee string // login whose assignment starts a task, besides errand's own account; may be empty
	Label    string // label that starts a task; may be empty
}

// Mapper maps webhooks to events.
type Mapper struct {
	cfg   Config
	tasks Tasks
}

// NewMapper returns a Mapper.
func NewMapper(cfg Config, tasks Tasks) *Mapper { return &Mapper{cfg: cfg, tasks: tasks} }

// mapping maps one kind of webhook to events. If it returns no events it returns the reason.
type mapping func(m *Mapper, ctx context.Context, payload []byte) ([]event.Event, string, error)

// mappings returns the mapping of each event that can have an effect. treatments has all events, with reasons for those
// without effect.
func mappings() map[string]mapping {
	return map[string]mapping{
		"issues":                      (*Mapper).issues,
		"issue_comment":               (*Mapper).issueComment,
		"pull_request":                (*Mapper).pullRequest,
		"pull_request_review":         (*Mapper).review,
		"pull_request_review_comment": (*Mapper).reviewComment,
		"pull_request_review_thread":  (*Mapper).thread,
		"push":                        (*Mapper).push,
		"check_run":                   (*Mapper).check,
		"check_suite":                 (*Mapper).check,
		"status":                      (*Mapper).status,
		"installation":                (*Mapper).installation,
		"installation_repositories":   (*Mapper).installationRepositories,
		"repository":                  (*Mapper).repository,
		"issue_dependencies":          (*Mapper).dependencies,
		"sub_issues":                  (*Mapper).dependencies,
	}
}

// Map maps a delivery to events. If there are none it returns the reason. It returns an error if it cannot decode the
// payload.
func (m *Mapper) Map(ctx context.Context, event, guid string, payload []byte) ([]event.Event, string, error) {
	do, ok := mappings()[event]
	action, err := actionOf(payload)
	handled, reason, _ := Treatment(event, action)
	switch {
	case !ok:
		return nil, reason, nil
	case err != nil:
		return nil, "", fmt.Errorf("map %s: %w", event, err)
	case !handled: // not decoded further, because GitHub changes its payloads
		return nil, reason, nil
	}
	events, reason, err := do(m, ctx, payload)
	if err != nil {
		return nil, "", fmt.Errorf("map %s: %w", event, err)
	}
	for i := range events {
		events[i].Delivery = guid
		if k := events[i].Candidate(); k != nil {
			k.Delivery = guid
		}
	}
	return events, reason, nil
}

// actionOf returns the action that a payload names, or "".
func actionOf(payload []byte) (string, error) {
	head, err := decode[struct {
		Action string `json:"action"`
	}](payload)
	if err != nil {
		return "", err
	}
	return head.Action, nil
}

// decode decodes a payload into a type of go-github.
func decode[T any](payload []byte) (*T, error) {
	var v T
	if err := json.Unmarshal(payload, &v); err != nil {
		return nil, fmt.Errorf("decode payload: %w", err)
	}
	return &v, nil
}

// errIncomplete is the error for a payload without a part that every webhook of its kind has.
var errIncomplete = errors.New("the payload lacks its issue, comment, review or repository")

// isOwn reports whether u is errand's own account.
func (m *Mapper) isOwn(u *github.User) bool { return u.GetID() == m.cfg.BotID }

// person converts an account.
func person(u *github.User) state.Person {
	return state.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}

// repoOf converts a repository.
func repoOf(r *github.Repository) *state.Repo {
	return &state.Repo{ID: r.GetID(), Owner: r.GetOwner().GetLogin(), Name: r.GetName(), DefaultBranch: r.GetDefaultBranch(),
		Private: r.GetPrivate(), URL: r.GetHTMLURL()}
}

// issueOf converts an issue. The type is newer than go-github's struct.
func issueOf(i *github.Issue, kind string) *state.Issue {
	out := &state.Issue{Node: i.GetNodeID(), Title: i.GetTitle(), Body: i.GetBody(), Author: person(i.User), Type: kind,
		Closed: i.GetState() == "closed"}
	for _, l := range i.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	if i.Milestone != nil {
		out.Milestone = i.Milestone.GetTitle()
	}
	return out
}

// extra has fields of payloads that go-github's structs lack.
type extra struct {
	Issue struct {
		Type *struct {
			Name string `json:"name"`
		} `json:"type"`
	} `json:"issue"`
	Changes struct {
		OldIssue *struct{} `json:"old_issue"` // set if the issue was transferred from another repository
	} `json:"changes"`
}

// extraOf decodes those fields. It returns the zero value if they cannot be decoded.
func extraOf(payload []byte) extra {
	x, err := decode[extra](payload)
	if err != nil {
		return extra{}
	}
	return *x
}

// issueType returns the name of the issue's type, or "".
func (x extra) issueType() string {
	if x.Issue.Type == nil {
		return ""
	}
	return x.Issue.Type.Name
}

// key returns the key of an issue's task.
func key(r *github.Repository, number int) state.TaskKey {
	return state.TaskKey{Repo: r.GetID(), Issue: number}
}

// isAssignee reports whether assigning an issue to the account starts a task.
func (m *Mapper) isAssignee(u *github.User) bool {
	return u.GetID() == m.cfg.BotID || m.cfg.Assignee != "" && strings.EqualFold(u.GetLogin(), m.cfg.Assignee)
}

// isLabel reports whether a label starts a task.
func (m *Mapper) isLabel(name string) bool {
	return m.cfg.Label != "" && strings.EqualFold(name, m.cfg.Label)
}

// parse parses the commands in a comment.
func (m *Mapper) parse(body string, onPR bool) command.Parsed {
	return command.Parse(body, m.cfg.Slug, onPR)
}

// ordersOf returns the commands of a text. A mention without any starts the task.
func ordersOf(parsed command.Parsed) []state.Order {
	if parsed.Mention && len(parsed.Orders) == 0 {
		return []state.Order{{Verb: state.VerbPlan}}
	}
	return parsed.Orders
}

// at converts a timestamp.
func at(t *github.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time.UTC()
}
