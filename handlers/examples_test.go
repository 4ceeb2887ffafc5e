package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state/store"
)

// publishedDir is the directory into which `make published` puts GitHub's published descriptions.
const publishedDir = "../.cache/published/node_modules/@octokit"

// readPublished reads a published file. If it is missing the test is skipped, or fails where npm is required.
func readPublished(t *testing.T, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(publishedDir, name))
	if os.IsNotExist(err) {
		if os.Getenv("ERRAND_REQUIRE_NPM") != "" {
			t.Fatalf("%s is not installed, although ERRAND_REQUIRE_NPM requires it: run `make published`", name)
		}
		t.Skipf("%s is not installed: run `make published`, which needs npm and the network", name)
	}
	check(t, err)
	check(t, json.Unmarshal(raw, into))
}

// example is a recorded webhook from GitHub.
type example struct {
	event, action string
	payload       []byte
}

func (e example) name() string { return strings.TrimSuffix(e.event+"."+e.action, ".") }

func realWebhooks(t *testing.T) []example {
	t.Helper()
	var index []struct {
		Name     string            `json:"name"`
		Examples []json.RawMessage `json:"examples"`
	}
	readPublished(t, "webhooks-examples/api.github.com/index.json", &index)
	var list []example
	for _, e := range index {
		for _, payload := range e.Examples {
			var head struct {
				Action string `json:"action"`
			}
			check(t, json.Unmarshal(payload, &head))
			list = append(list, example{e.Name, head.Action, payload})
		}
	}
	if len(list) < 300 {
		t.Fatalf("got %d examples, want more", len(list))
	}
	return list
}

// Every webhook recorded from GitHub is sent to the real route and processed by the inbox. None may fail, and each is
// handled, or ignored for the reason that Treatment states.
func TestHeavyRealWebhooks(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	list := realWebhooks(t)
	st := newStore(t)
	mapper := handlers.NewMapper(handlers.Config{Slug: "errand", BotID: 1, Assignee: "errand-bot", Label: "errand"}, st)
	var log bytes.Buffer
	inbox := handlers.NewInbox(st, st, mapper, zerolog.New(&log).Level(zerolog.WarnLevel), time.Now)
	front, err := handlers.Front([]string{secret}, inbox)
	check(t, err)
	stored, handled, events := 0, 0, 0
	for i, e := range list {
		w := httptest.NewRecorder()
		front.ServeHTTP(w, request(e.payload, func(r *http.Request) {
			r.Header.Set("X-GitHub-Event", e.event)
			r.Header.Set("X-GitHub-Delivery", fmt.Sprintf("real-%d", i))
		}))
		does, reason, known := handlers.Treatment(e.event, e.action)
		if !known {
			t.Errorf("%s: got no treatment, want handled or a reason", e.name())
		}
		switch {
		case w.Code == http.StatusOK:
			stored++
		case w.Code == http.StatusAccepted && !does: // errand does not subscribe to it: accepted and dropped
		default:
			t.Errorf("%s: got answer %d %s with handled %t", e.name(), w.Code, strings.TrimSpace(w.Body.String()), does)
		}
		mapped, said, err := mapper.Map(t.Context(), e.event, "x", e.payload)
		switch {
		case err != nil:
			t.Errorf("%s: got error %v", e.name(), err)
		case !does && (len(mapped) > 0 || !strings.HasSuffix(said, reason)):
			t.Errorf("%s: got %d events and reason %q, want it ignored: %s", e.name(), len(mapped), said, reason)
		case does && len(mapped) == 0 && said == "":
			t.Errorf("%s: got neither an event nor a reason", e.name())
		}
		if does {
			handled++
		}
		events += len(mapped)
	}
	drain(t, st, inbox, stored)
	if log.Len() > 0 {
		t.Errorf("got warnings or errors in the log:\n%s", log.String())
	}
	t.Logf("PROOF: real webhooks: %d, of them %d handled, %d ignored for a stated reason; %d events", len(list), handled, len(list)-handled, events)
}

// drain processes the inbox until it is empty.
func drain(t *testing.T, st *store.Store, inbox *handlers.Inbox, want int) {
	t.Helper()
	pending, err := st.PendingDeliveries(t.Context(), 1000)
	check(t, err)
	if len(pending) != want {
		t.Errorf("got %d stored deliveries, want %d", len(pending), want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- inbox.Run(ctx) }()
	defer func() {
		cancel()
		check(t, <-done)
	}()
	deadline := time.Now().Add(time.Minute)
	for len(pending) > 0 && time.Now().Before(deadline) {
		wake := st.Wake(t.Context())
		if pending, err = st.PendingDeliveries(t.Context(), 1000); len(pending) == 0 {
			break
		}
		check(t, err)
		select {
		case <-wake:
		case <-time.After(100 * time.Millisecond):
		}
	}
	if len(pending) > 0 {
		t.Errorf("got %d deliveries left in the inbox, the first of them %s; want none", len(pending), pending[0].Event)
	}
}

// Every webhook that GitHub describes is handled, or ignored for a stated reason.
func TestHeavyTreatmentIsComplete(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	var doc struct {
		Webhooks map[string]struct {
			Post struct {
				Docs struct {
					URL string `json:"url"`
				} `json:"externalDocs"`
			} `json:"post"`
		} `json:"webhooks"`
	}
	readPublished(t, "openapi-webhooks/generated/api.github.com.json", &doc)
	if len(doc.Webhooks) < 200 {
		t.Fatalf("got %d described webhooks, want more", len(doc.Webhooks))
	}
	for key, w := range doc.Webhooks {
		_, event, _ := strings.Cut(w.Post.Docs.URL, "#")
		event = strings.ReplaceAll(event, "-", "_")
		action := strings.TrimPrefix(strings.TrimPrefix(strings.ReplaceAll(key, "-", "_"), event), "_")
		if _, reason, known := handlers.Treatment(event, action); !known {
			t.Errorf("%s: got an unknown event %q or action %q: %s", key, event, action, reason)
		}
	}
}
