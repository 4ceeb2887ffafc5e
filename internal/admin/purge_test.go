package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// purged starts pages with an ended task, acme/shop#1, that is purged with this error. It counts the purges.
func purged(t *testing.T, result store.Purged, failure error) (w *world, purges *int) {
	t.Helper()
	purges = new(int)
	w, _ = operated(t, func(cfg *admin.Config) {
		s := cfg.Store.(*store.Store)
		cfg.Purge = func(ctx context.Context, key state.TaskKey, a store.Action) (store.Purged, error) {
			*purges++
			if failure != nil {
				return result, failure
			}
			e := event.Event{Task: key, ID: a.ID, By: state.Person{Operator: true}, Payload: event.Purged{}}
			_, err := s.Act(ctx, e, a, func(applied store.Applied, a *store.Action) {
				a.Refused, a.Result = !applied.Changed, "purged: everything"
			})
			return result, err
		}
	})
	w.apply(1, event.Event{By: state.Person{ID: 1, Login: "ada"}, Permission: state.PermissionWrite, Payload: event.IssueClosed{}})
	return w, purges
}

// TestPurgeAnswers: programs get the result or the reason, each attempt is in the audit log, and other sites cannot purge.
func TestPurgeAnswers(t *testing.T) {
	t.Parallel()
	bearer := map[string]string{"Authorization": "Bearer " + token}
	done := store.Purged{Task: "acme/shop#1", At: noon, Files: 3}
	for name, c := range map[string]struct {
		path   string
		header map[string]string
		result store.Purged
		err    error
		status int
		body   string
		audit  string
	}{
		"purged":         {header: bearer, result: done, status: http.StatusOK, body: `"files": 3`, audit: "purged: everything"},
		"refused":        {header: bearer, err: admin.Refusal("the task has not ended"), status: http.StatusConflict, body: "the task has not ended", audit: "the task has not ended"},
		"failed":         {header: bearer, err: errors.New("power cut"), status: http.StatusInternalServerError, body: "could not be purged: power cut", audit: "failed: power cut"},
		"a full disk":    {header: bearer, result: done, err: errors.New("no space left"), status: http.StatusInternalServerError, body: "is not complete: no space left", audit: "is not complete: no space left"},
		"another issue":  {path: "/tasks/acme/shop/2/actions/purge", header: bearer, status: http.StatusNotFound, body: "errand has no task"},
		"a stranger":     {status: http.StatusUnauthorized},
		"another site":   {header: map[string]string{"Authorization": "Bearer " + token, "Origin": "https://evil.example"}, status: http.StatusForbidden},
		"a link to it":   {path: "/tasks/acme/shop/1/actions/purge?yes=1", header: map[string]string{}, status: http.StatusUnauthorized},
		"too many bytes": {header: bearer, status: http.StatusRequestEntityTooLarge, body: "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, purges := purged(t, c.result, c.err)
			if c.path == "" {
				c.path = "/tasks/acme/shop/1/actions/purge"
			}
			body := ""
			if name == "too many bytes" {
				body = "id=" + strings.Repeat("x", 5<<20)
			}
			h := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
			for k, v := range c.header {
				h[k] = v
			}
			resp := do(t, http.MethodPost, w.url+c.path, body, h)
			data, err := io.ReadAll(resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err != nil {
				t.Fatal(err)
			}
			text := string(data)
			if resp.StatusCode != c.status || !strings.Contains(text, c.body) {
				t.Errorf("got status %d, %q; want %d, %q", resp.StatusCode, text, c.status, c.body)
			}
			if (*purges > 0) != slices.Contains([]int{http.StatusOK, http.StatusConflict, http.StatusInternalServerError}, c.status) {
				t.Errorf("got %d purges", *purges)
			}
			_, list := fetch(t, w.url+"/audit.json", bearer)
			if c.audit != "" {
				want(t, list, `"command": "purge"`, c.audit, `"subject": "acme/shop#1"`)
			}
		})
	}
}

// TestPurgedTaskOnThePages: the page of an ended task offers the purge and asks whether it is meant; afterwards no page has a text of
// the task, although some were cached.
func TestPurgedTaskOnThePages(t *testing.T) {
	t.Parallel()
	w, _ := purged(t, store.Purged{At: noon}, nil)
	html := map[string]string{"Authorization": "Bearer " + token, "Accept": "text/html"}
	page := func(path string) string {
		t.Helper()
		_, body := fetch(t, w.url+path, html)
		return body
	}
	want(t, page("/status"), "breaks")
	want(t, page("/tasks/acme/shop/1"), `method="get" action="/tasks/acme/shop/1/actions/purge"`)
	want(t, page("/tasks/acme/shop/1/actions/purge"), "Purge acme/shop #1?", `method="post"`, "comments on GitHub", "back to the task")
	cookie := logIn(t, w.url)
	resp := do(t, http.MethodPost, w.url+"/tasks/acme/shop/1/actions/purge", url.Values{"form": {formToken(t, w.url, cookie)}}.Encode(),
		map[string]string{"Cookie": cookie, "Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"})
	_ = resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "/tasks/acme/shop/1#actions" {
		t.Errorf("got redirected to %q with status %d", to, resp.StatusCode)
	}
	want(t, page("/tasks/acme/shop/1"), "(purged)", "its texts were purged", "purged: everything")
	want(t, page("/status"), "(purged)")
	for _, path := range []string{"/status", "/status.json", "/tasks/acme/shop/1", "/tasks/acme/shop/1/task.json", "/tasks/acme/shop/1/summary.json", "/audit.json"} {
		wantNot(t, page(path), "breaks")
	}
	_, card := fetch(t, w.url+"/tasks/acme/shop/1/task.json", html)
	want(t, card, `"purged": "`)
}
