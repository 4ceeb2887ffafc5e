package handlers_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/state"
)

// hollow are payloads of the right form with something missing where a decoder may look.
var hollow = []string{
	`null`, `{}`, `[]`, `{"action":null}`,
	`{"action":"assigned","assignee":null,"issue":null,"repository":null,"sender":null}`,
	`{"action":"labeled","issue":{"labels":[null],"user":null},"label":{"name":"errand"},"repository":{"id":70}}`,
	`{"action":"edited","changes":{"body":{}},"issue":{"number":1},"comment":{"user":{"id":99}}}`,
	`{"action":"edited","changes":{"body":{"from":"- [ ] x"}},"comment":{"user":{"id":99},"body":"- [x] x"},"issue":{"number":1}}`,
	`{"action":"created","comment":{"body":"@errand plan"},"issue":{"number":12,"pull_request":{}},"repository":{"id":70}}`,
	`{"action":"submitted","review":null,"pull_request":{"number":12},"repository":{"id":70}}`,
	`{"action":"submitted","review":{"state":null},"pull_request":{"number":12},"repository":{"id":70}}`,
	`{"action":"created","comment":{"body":"@errand stop"},"pull_request":{"number":12},"repository":{"id":70}}`,
	`{"action":"closed","pull_request":null,"repository":{"id":70}}`,
	`{"ref":"refs/heads/main","repository":{"id":70,"default_branch":"main"},"commits":[null,{"added":null}]}`,
	`{"ref":"refs/heads/b","repository":{"id":70},"after":null}`,
	`{"action":"completed","check_suite":{"head_sha":"aa","conclusion":null},"repository":{"id":70}}`,
	`{"action":"created","check_run":{"head_sha":"aa"},"repository":null}`,
	`{"sha":"aa","state":"error","repository":{"id":70}}`,
	`{"action":"deleted","installation":null}`,
	`{"action":"removed","repositories_removed":[null,{"id":70}]}`,
	`{"action":"renamed","repository":{"id":70,"owner":null}}`,
	`{"issue":{"type":{"name":1}}}`,
}

// fuzzTasks has a task that every kind of webhook can be about.
func fuzzTasks() *tasks {
	return &tasks{list: []*state.Task{{
		Key: state.TaskKey{Repo: 70, Issue: 1}, PR: &state.PR{Number: 12}, Branch: state.Branch{Name: "b", Head: "aa"},
		Waiting: &state.Waiting{Kind: state.WaitConfig},
	}}}
}

// known are the webhooks that have a decoder.
var known = []string{
	"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread", "push",
	"check_run", "check_suite", "status", "installation", "installation_repositories", "repository", "issue_dependencies", "sub_issues", "ping", "other",
}

func mapAny(t *testing.T, event string, payload []byte) {
	t.Helper()
	m := handlers.NewMapper(handlers.Config{Slug: "errand", BotID: 99, Assignee: "errand-bot", Label: "errand"}, fuzzTasks())
	events, why, err := m.Map(context.Background(), event, "g", payload)
	if err != nil && (len(events) > 0 || why != "") {
		t.Errorf("an error and %d events, %q", len(events), why)
	}
	if err == nil && len(events) == 0 && why == "" {
		t.Error("no event, and no reason")
	}
	for _, e := range events {
		if e.Kind == "" || e.Task.Issue == 0 || e.Task.Repo == 0 || e.Delivery != "g" {
			t.Errorf("event %+v", e)
		}
		if _, err := json.Marshal(e); err != nil { // it is stored with the job vet
			t.Errorf("event cannot be stored: %v", err)
		}
	}
}

func TestMapHollowPayloads(t *testing.T) {
	t.Parallel()
	for _, event := range known {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			for _, p := range hollow {
				mapAny(t, event, []byte(p))
			}
		})
	}
}

func FuzzMap(f *testing.F) {
	for n := range known {
		for _, p := range hollow {
			f.Add(uint8(n), []byte(p))
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, payload []byte) {
		mapAny(t, known[int(n)%len(known)], payload)
	})
}
