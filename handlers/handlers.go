// Package handlers is GitHub as it calls us: webhooks come in, events for tasks go out.
//
// A webhook is verified, written to the store under its GUID and only then answered (Front). A worker
// takes deliveries in the order of their arrival, decodes each (one file per GitHub event) and maps it
// to state.Events, which Store.Apply applies in one transaction with the delivery's end. A handler
// decodes, maps and calls once; it never calls GitHub.
//
// Start reading at Front, then Inbox, then Mapper.Map.
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
)

// Tasks is what mapping needs to know of the store.
type Tasks interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	TaskByPR(ctx context.Context, repo int64, number int) (*state.Task, error)
	// Glances says of every open task what mapping has to know.
	Glances(ctx context.Context) ([]state.Glance, error)
	// OutOfReach lists tasks that ended because there was no access any more.
	OutOfReach(ctx context.Context) ([]*state.Task, error)
}

// Config says who we are and what starts a task.
type Config struct {
	Slug     string // the App's slug: people mention it as @slug
	BotID    int64  // user id of our own account; what it does is no event
	Assignee string // login whose assignment starts a task, besides our own account; may be empty
	Label    string // label that starts a task; may be empty
}

// Mapper turns webhooks into events.
type Mapper struct {
	cfg   Config
	tasks Tasks
}

// NewMapper returns a Mapper.
func NewMapper(cfg Config, tasks Tasks) *Mapper { return &Mapper{cfg: cfg, tasks: tasks} }

// mapping turns one kind of webhook into events. It returns none, and the reason, for what errand
// does not care about.
type mapping func(m *Mapper, ctx context.Context, payload []byte) ([]state.Event, string, error)

// mappings is every event of which something may follow; treatments has them all, and the reasons for the others.
func mappings() map[string]mapping {
	return map[string]mapping{
		"issues":                      (*Mapper).issues,
		"issue_comment":               (*Mapper).issueComment,
		"pull_request":                (*Mapper).pullRequest,
		"pull_request_review":         (*Mapper).review,
		"pull_request_review_comment": (*Mapper).reviewComment,
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

// Map turns a delivery into events. No events come with the reason why not. An error means that the
// payload could not be understood.
func (m *Mapper) Map(ctx context.Context, event, guid string, payload []byte) ([]state.Event, string, error) {
	do, ok := mappings()[event]
	action, err := actionOf(payload)
	handled, why, _ := Treatment(event, action)
	switch {
	case !ok:
		return nil, why, nil
	case err != nil:
		return nil, "", fmt.Errorf("map %s: %w", event, err)
	case !handled: // it need not be understood further: GitHub changes its payloads
		return nil, why, nil
	}
	events, why, err := do(m, ctx, payload)
	if err != nil {
		return nil, "", fmt.Errorf("map %s: %w", event, err)
	}
	for i := range events {
		events[i].Delivery = guid
		if k := events[i].Candidate; k != nil {
			k.Delivery = guid
		}
	}
	return events, why, nil
}

// actionOf reads the action that a payload names, if any.
func actionOf(payload []byte) (string, error) {
	head, err := decode[struct {
		Action string `json:"action"`
	}](payload)
	if err != nil {
		return "", err
	}
	return head.Action, nil
}

// decode reads a payload into a type of go-github's.
func decode[T any](payload []byte) (*T, error) {
	var v T
	if err := json.Unmarshal(payload, &v); err != nil {
		return nil, fmt.Errorf("decode payload: %w", err)
	}
	return &v, nil
}

// errHollow says that a payload lacks what every webhook of its kind has.
var errHollow = errors.New("the payload lacks its issue, comment, review or repository")

// own reports whether we did it ourselves.
func (m *Mapper) own(u *github.User) bool { return u.GetID() == m.cfg.BotID }

// person converts an account.
func person(u *github.User) state.Person {
	return state.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}

// repoOf converts a repository.
func repoOf(r *github.Repository) *state.Repo {
	return &state.Repo{ID: r.GetID(), Owner: r.GetOwner().GetLogin(), Name: r.GetName(), DefaultBranch: r.GetDefaultBranch(), Private: r.GetPrivate(), URL: r.GetHTMLURL()}
}

// issueOf converts an issue. The type is newer than go-github's struct.
func issueOf(i *github.Issue, kind string) *state.Issue {
	out := &state.Issue{Node: i.GetNodeID(), Title: i.GetTitle(), Body: i.GetBody(), Author: person(i.User), Type: kind, Closed: i.GetState() == "closed"}
	for _, l := range i.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	if i.Milestone != nil {
		out.Milestone = i.Milestone.GetTitle()
	}
	return out
}

// extra is what payloads carry beyond go-github's structs.
type extra struct {
	Issue struct {
		Type *struct {
			Name string `json:"name"`
		} `json:"type"`
	} `json:"issue"`
}

// issueType reads the issue's type, if it has one.
func issueType(payload []byte) string {
	x, err := decode[extra](payload)
	if err != nil || x.Issue.Type == nil {
		return ""
	}
	return x.Issue.Type.Name
}

// key names the task of an issue.
func key(r *github.Repository, number int) state.TaskKey {
	return state.TaskKey{Repo: r.GetID(), Issue: number}
}

// isAssignee reports whether an account's assignment starts a task.
func (m *Mapper) isAssignee(u *github.User) bool {
	return u.GetID() == m.cfg.BotID || m.cfg.Assignee != "" && strings.EqualFold(u.GetLogin(), m.cfg.Assignee)
}

// isLabel reports whether a label starts a task.
func (m *Mapper) isLabel(name string) bool {
	return m.cfg.Label != "" && strings.EqualFold(name, m.cfg.Label)
}

// parse reads a comment's commands.
func (m *Mapper) parse(body string, onPR bool) command.Parsed {
	return command.Parse(body, m.cfg.Slug, onPR)
}

// at converts a timestamp.
func at(t *github.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time.UTC()
}
