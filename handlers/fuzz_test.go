package handlers_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// incompletePayloads has payloads of the right form that lack parts which a decoder may read.
var incompletePayloads = []string{
	`{"action":"dequeued"}`, `{"action":"ready_for_review","pull_request":{}}`, `{"action":"resolved"}`, `{"action":"dismissed","review":{}}`,
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

// fuzzTasks returns a store with one task that every kind of webhook can concern.
func fuzzTasks() *tasks {
	return &tasks{list: []*state.Task{{
		Key: state.TaskKey{Repo: 70, Issue: 1}, TaskChanges: state.TaskChanges{PR: &state.PR{Number: 12}, Branch: state.Branch{Name: "b", Head: "aa"}},
		TaskPhase: state.TaskPhase{Waiting: &state.Waiting{Kind: state.WaitConfig}},
	}}}
}

// knownEvents lists the webhooks with a decoder.
var knownEvents = []string{
	"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread", "push",
	"check_run", "check_suite", "status", "installation", "installation_repositories", "repository", "issue_dependencies", "sub_issues", "ping", "other",
}

func mapAny(t *testing.T, event string, payload []byte) []event.Event {
	t.Helper()
	m := handlers.NewMapper(handlers.Config{Slug: "errand", BotID: 99, Assignee: "errand-bot", Label: "errand"}, fuzzTasks())
	events, reason, err := m.Map(context.Background(), event, "g", payload)
	if err != nil && (len(events) > 0 || reason != "") {
		t.Errorf("got an error together with %d events and reason %q", len(events), reason)
	}
	if err == nil && len(events) == 0 && reason == "" {
		t.Error("got neither an event nor a reason")
	}
	for _, e := range events {
		if e.Kind() == "" || e.Task.Issue == 0 || e.Task.Repo == 0 || e.Delivery != "g" {
			t.Errorf("got invalid event %+v", e)
		}
		if _, err := json.Marshal(e); err != nil { // it is stored with the job vet
			t.Errorf("got an event that cannot be encoded: %v", err)
		}
	}
	return events
}

func TestMapIncompletePayloads(t *testing.T) {
	t.Parallel()
	for _, event := range knownEvents {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			for _, p := range incompletePayloads {
				mapAny(t, event, []byte(p))
			}
		})
	}
}

// completePayloads has complete payloads of actions that have an effect.
var completePayloads = map[string]string{
	"issues":                      `{"action":"assigned","assignee":{"id":5,"login":"errand-bot"},"issue":{"number":1,"title":"t","body":"b\n\nbase: v1","user":{"id":4,"login":"eve","type":"User"},"labels":[{"name":"x"}],"state":"open","updated_at":"2026-01-02T03:04:05Z","node_id":"n","type":{"name":"Bug"},"milestone":{"title":"m"}},"repository":{"id":70,"name":"slug","owner":{"login":"acme"},"default_branch":"main"},"sender":{"id":4,"login":"eve"},"installation":{"id":3}}`,
	"issue_comment":               `{"action":"created","comment":{"id":8,"body":"@errand approve a1b2c3d4\n> @errand stop","user":{"id":4},"created_at":1700000000},"issue":{"number":1},"repository":{"id":70},"sender":{"id":4,"login":"eve"}}`,
	"pull_request":                `{"action":"closed","pull_request":{"number":12,"merged":true},"repository":{"id":70},"sender":{"id":4}}`,
	"pull_request_review":         `{"action":"submitted","review":{"id":9,"state":"CHANGES_REQUESTED","body":"x","user":{"id":4},"submitted_at":"2026-01-02T03:04:05+01:00","commit_id":"aa"},"pull_request":{"number":12},"repository":{"id":70},"sender":{"id":4}}`,
	"pull_request_review_comment": `{"action":"created","comment":{"id":7,"body":"@errand stop","in_reply_to_id":6,"user":{"id":4}},"pull_request":{"number":12},"repository":{"id":70},"sender":{"id":4}}`,
	"push":                        `{"ref":"refs/heads/b","after":"bb","repository":{"id":70,"default_branch":"main"},"sender":{"id":4},"commits":[{"added":[".errand.yml"]}]}`,
	"check_suite":                 `{"action":"completed","check_suite":{"head_sha":"aa","conclusion":"failure"},"repository":{"id":70}}`,
}

// issueTexts are payloads of issues whose text mentions errand.
var issueTexts = []string{
	`{"action":"opened","issue":{"number":1,"title":"t","body":"It breaks.\n\n@errand plan base: v1\n@errand model opus","user":{"id":4},"created_at":"2026-01-02T03:04:05Z","node_id":"n"},"repository":{"id":70},"sender":{"id":4}}`,
	`{"action":"edited","changes":{"body":{"from":"It breaks."}},"issue":{"number":1,"title":"t","body":"@errand mend it","user":{"id":4},"updated_at":"2026-01-02T03:04:05Z","node_id":"n"},"repository":{"id":70},"sender":{"id":5}}`,
}

// wire has the fields of a fuzzed payload that decide who did what, decoded without package handlers.
type wire struct {
	Action  string
	Sender  struct{ ID int64 }
	Comment struct {
		User struct{ ID int64 }
		Body string
	}
	Issue struct{ Body string }
}

// FuzzMap checks that every payload maps to events of a task or to a reason for having none, the same each time, and that
// no payload attributes an action to another account: not to errand's, not by an edit, not by an old comment.
func FuzzMap(f *testing.F) {
	for n, event := range knownEvents {
		for _, p := range incompletePayloads {
			f.Add(uint8(n), []byte(p))
		}
		f.Add(uint8(n), []byte(completePayloads[event]))
	}
	for _, p := range issueTexts {
		f.Add(uint8(slices.Index(knownEvents, "issues")), []byte(p))
	}
	f.Fuzz(func(t *testing.T, n uint8, payload []byte) {
		event := knownEvents[int(n)%len(knownEvents)]
		events := mapAny(t, event, payload)
		if again := mapAny(t, event, payload); !cmp.Equal(events, again) {
			t.Errorf("mapped again: got %+v, want %+v", again, events)
		}
		var w wire
		if len(events) == 0 || json.Unmarshal(payload, &w) != nil {
			return
		}
		for _, e := range events {
			checkActor(t, e, w)
		}
	})
}

// checkActor checks that an event's sender and content agree with the payload.
func checkActor(t *testing.T, e event.Event, w wire) {
	t.Helper()
	if e.By.ID != 0 && e.By.ID != w.Sender.ID {
		t.Errorf("%s: got actor %d, want sender %d", e.Kind(), e.By.ID, w.Sender.ID)
	}
	said, actions := w.Comment.Body, []string{"created"}
	if c := event.Of[event.Commented](e).Comment; c != nil && c.InIssue {
		said, actions = w.Issue.Body, []string{"opened", "edited"}
	}
	if len(event.Of[event.Commented](e).Orders) > 0 &&
		(e.Kind() != event.KindCommented || !slices.Contains(actions, w.Action) || w.Sender.ID == 99 || !strings.Contains(strings.ToLower(said), "@errand")) {
		t.Errorf("got orders %+v from %+v, want none", event.Of[event.Commented](e).Orders, w)
	}
	if (e.Candidate() != nil || event.Of[event.CommentEdited](e).Ticked) && (e.Kind() != event.KindCommentEdited || w.Action != "edited" || w.Comment.User.ID != 99 || w.Sender.ID == 99) {
		t.Errorf("got approval %+v from %+v, want none", e.Candidate(), w)
	}
	if e.Kind() == event.KindTriggered && w.Sender.ID == 99 {
		t.Errorf("got a trigger by errand's own account: %+v", e)
	}
	data, err := json.Marshal(e)
	var stored event.Event
	if err != nil || json.Unmarshal(data, &stored) != nil {
		t.Fatalf("got an event that cannot be decoded: %v", err)
	}
	if diff := cmp.Diff(e, stored, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("got another stored event (-mapped +stored):\n%s", diff)
	}
}
