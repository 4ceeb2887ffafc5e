package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// TestDestroyAnswers: programs get the result or the reason, and the page of a task with a VM offers the action to operators and asks
// whether it is meant.
func TestDestroyAnswers(t *testing.T) {
	t.Parallel()
	bearer := map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/x-www-form-urlencoded"}
	for name, c := range map[string]struct {
		path, body string
		header     map[string]string
		done       admin.Destroyed
		err        error
		status     int
		text, got  string
		audit      string
	}{
		"deleted":       {header: bearer, done: admin.Destroyed{VM: "errand-x-g1", Result: "done"}, status: http.StatusOK, text: `"vm": "errand-x-g1"`, got: "7/1 destroy false"},
		"by force":      {body: "force=true", header: bearer, done: admin.Destroyed{Stopped: true}, status: http.StatusOK, text: `"stopped": true`, got: "7/1 destroy force true"},
		"in use":        {header: bearer, done: admin.Destroyed{Refused: true, Result: "an agent works"}, status: http.StatusConflict, text: "an agent works", got: "7/1 destroy false"},
		"restored":      {header: bearer, err: admin.Refusal("resume errand first"), status: http.StatusConflict, text: "resume errand first", got: "7/1 destroy false", audit: "resume errand first"},
		"power cut":     {header: bearer, err: errors.New("power cut"), status: http.StatusInternalServerError, text: "may have been carried out: power cut", got: "7/1 destroy false"},
		"another issue": {path: "/tasks/acme/shop/2/actions/destroy", header: bearer, status: http.StatusNotFound, text: "errand has no task"},
		"megabytes":     {header: bearer, body: "id=" + strings.Repeat("x", 5<<20), status: http.StatusRequestEntityTooLarge},
		"a stranger":    {status: http.StatusUnauthorized},
		"another site":  {header: map[string]string{"Authorization": "Bearer " + token, "Origin": "https://evil.example"}, status: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			w, _ := operated(t, func(cfg *admin.Config) {
				cfg.Destroy = func(_ context.Context, key state.TaskKey, force bool, a store.Action) (admin.Destroyed, error) {
					got = fmt.Sprintf("%s %s %t", key, a.Command, force)
					return c.done, c.err
				}
			})
			if c.path == "" {
				c.path = "/tasks/acme/shop/1/actions/destroy"
			}
			resp := do(t, http.MethodPost, w.url+c.path, c.body, c.header)
			text, err := io.ReadAll(resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status || !strings.Contains(string(text), c.text) || got != c.got {
				t.Errorf("got status %d, %q, order %q; want %d, %q, %q", resp.StatusCode, text, got, c.status, c.text, c.got)
			}
			if c.audit != "" {
				_, list := fetch(t, w.url+"/audit.json", bearer)
				want(t, list, `"command": "destroy"`, c.audit)
			}
		})
	}
}

// TestDestroyOnThePage: the action is offered while there is something to delete.
func TestDestroyOnThePage(t *testing.T) {
	t.Parallel()
	w, _ := operated(t, func(cfg *admin.Config) {
		cfg.Destroy = func(context.Context, state.TaskKey, bool, store.Action) (admin.Destroyed, error) {
			return admin.Destroyed{}, nil
		}
	})
	page := func(path string) string {
		t.Helper()
		_, body := fetch(t, w.url+path, map[string]string{"Authorization": "Bearer " + token, "Accept": "text/html"})
		return body
	}
	wantNot(t, page("/tasks/acme/shop/1"), "actions/destroy")
	task := w.apply(1, event.Event{Payload: event.Started{Start: event.Start{Visible: true, Branch: state.Branch{Name: "b", Base: "main"}}}})
	w.apply(1, event.Event{Run: task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: task.Run.ID, VM: state.VM{Name: "errand-x-g1"}, Started: noon}}})
	want(t, page("/tasks/acme/shop/1"), `method="get" action="/tasks/acme/shop/1/actions/destroy"`)
	want(t, page("/tasks/acme/shop/1/actions/destroy"), "Delete the VM acme/shop #1?", "not published", "stop it first", `method="post"`)
}
