package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// operated starts pages with a task, acme/shop#1, on which operators can act. acted holds the commands.
func operated(t *testing.T, change func(*admin.Config)) (w *world, acted *[]string) {
	t.Helper()
	acted = new([]string)
	var s *store.Store
	w = newWorld(t, func(cfg *admin.Config) {
		s = cfg.Store.(*store.Store)
		cfg.Audit = s.Audit
		cfg.Act = func(ctx context.Context, task *state.Task, _ state.Person, o state.Order, a store.Action) (store.Action, error) {
			*acted = append(*acted, fmt.Sprintf("%s %s", task.Key, command.Format(o)))
			switch {
			case o.Turns == 13:
				return a, admin.UnchangedError{Err: errors.New("read the issue: 502")}
			case o.Turns == 14:
				return a, errors.New("commit: power cut")
			case o.Verb == state.VerbRetry:
				a.Refused = true
			}
			return s.Act(ctx, event.OperatorCommand(task.Key, a.ID, o, false), a, func(_ store.Applied, done *store.Action) {
				done.Result = "result of " + string(o.Verb)
			})
		}
		if change != nil {
			change(cfg)
		}
	})
	w.trigger(1, "It <b>breaks</b>")
	return w, acted
}

// TestOnlyOperatorsAct: a command needs the admin token, or a session with the token of errand's own form; a page of another site
// can neither send one nor guess it.
func TestOnlyOperatorsAct(t *testing.T) {
	t.Parallel()
	const stop, bearer = "/tasks/acme/shop/1/actions/stop", "Bearer " + token
	for name, c := range map[string]struct {
		path    string
		headers map[string]string
		cookie  bool   // of a session
		form    string // page: of the task's page; other: of another session
		body    string
		status  int
		text    string
		acted   string
	}{
		"program":               {headers: map[string]string{"Authorization": bearer}, status: http.StatusOK, text: "result of stop", acted: "7/1 stop"},
		"arguments":             {path: "/tasks/acme/shop/1/actions/budget", body: "args=%2B500k+tokens", headers: map[string]string{"Authorization": bearer}, status: http.StatusOK, acted: "7/1 budget +500000 tokens"},
		"refused":               {path: "/tasks/acme/shop/1/actions/retry", body: "args=fresh", headers: map[string]string{"Authorization": bearer}, status: http.StatusConflict, text: "result of retry", acted: "7/1 retry fresh"},
		"the store fails":       {path: "/tasks/acme/shop/1/actions/retry", body: "args=turns%3D14", headers: map[string]string{"Authorization": bearer}, status: http.StatusInternalServerError, text: "may have been carried out: commit: power cut", acted: "7/1 retry turns=14"},
		"GitHub fails":          {path: "/tasks/acme/shop/1/actions/retry", body: "args=turns%3D13", headers: map[string]string{"Authorization": bearer}, status: http.StatusBadGateway, text: "read the issue: 502. Try again", acted: "7/1 retry turns=13"},
		"browser":               {cookie: true, form: "page", headers: map[string]string{"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}, status: http.StatusSeeOther, acted: "7/1 stop"},
		"another session's":     {cookie: true, form: "other", status: http.StatusForbidden, text: "reload the page"},
		"without form token":    {cookie: true, status: http.StatusForbidden, text: "reload the page"},
		"guessed form token":    {cookie: true, form: strings.Repeat("0", 64), status: http.StatusForbidden},
		"form token in address": {path: stop + "?form=FORM", cookie: true, status: http.StatusForbidden},
		"another site":          {cookie: true, form: "page", headers: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: http.StatusForbidden},
		"another origin":        {cookie: true, form: "page", headers: map[string]string{"Origin": "https://evil.example"}, status: http.StatusForbidden},
		"token, another origin": {headers: map[string]string{"Authorization": bearer, "Origin": "https://evil.example"}, status: http.StatusForbidden},
		"nobody":                {status: http.StatusUnauthorized},
		"wrong token":           {headers: map[string]string{"Authorization": "Bearer x"}, status: http.StatusUnauthorized},
		"form token, no cookie": {form: "page", status: http.StatusUnauthorized},
		"megabytes":             {headers: map[string]string{"Authorization": bearer}, body: "args=" + strings.Repeat("x", 5<<20), status: http.StatusRequestEntityTooLarge},
		"megabytes, session":    {cookie: true, body: "form=" + strings.Repeat("x", 5<<20), status: http.StatusForbidden},
		"bad arguments":         {path: "/tasks/acme/shop/1/actions/budget", body: "args=-5", headers: map[string]string{"Authorization": bearer}, status: http.StatusBadRequest, text: "for example `budget +5`"},
		"two lines":             {path: "/tasks/acme/shop/1/actions/retry", body: "args=fresh%0A@errand+approve", headers: map[string]string{"Authorization": bearer}, status: http.StatusBadRequest},
		"approval":              {path: "/tasks/acme/shop/1/actions/approve", headers: map[string]string{"Authorization": bearer}, status: http.StatusNotFound},
		"message":               {path: "/tasks/acme/shop/1/actions/after", body: "args=:+do+it", headers: map[string]string{"Authorization": bearer}, status: http.StatusNotFound},
		"another repository":    {path: "/tasks/acme/blog/1/actions/stop", headers: map[string]string{"Authorization": bearer}, status: http.StatusNotFound},
		"another issue":         {path: "/tasks/acme/shop/2/actions/stop", headers: map[string]string{"Authorization": bearer}, status: http.StatusNotFound},
		"no number":             {path: "/tasks/acme/shop/x/actions/stop", headers: map[string]string{"Authorization": bearer}, status: http.StatusNotFound},
		"path of another":       {path: "/tasks/acme/blog%2F..%2Fshop/1/actions/stop", headers: map[string]string{"Authorization": bearer}, status: http.StatusNotFound},
		"path with dots":        {path: "/tasks/x/../acme/shop/1/actions/stop/..", headers: map[string]string{"Authorization": bearer}, status: http.StatusTemporaryRedirect},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, acted := operated(t, nil)
			h := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
			for k, v := range c.headers {
				h[k] = v
			}
			cookie := logIn(t, w.url)
			form := formToken(t, w.url, cookie)
			switch c.form {
			case "other":
				w.advance(1e9)
				form = formToken(t, w.url, logIn(t, w.url))
			case "", "page":
			default:
				form = c.form
			}
			if c.cookie {
				h["Cookie"] = cookie
			}
			if c.form != "" {
				c.body = url.Values{"form": {form}}.Encode()
			}
			if c.path == "" {
				c.path = stop
			}
			resp := do(t, http.MethodPost, w.url+strings.ReplaceAll(c.path, "FORM", form), c.body, h)
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if got := strings.Join(*acted, ", "); err != nil || resp.StatusCode != c.status || !strings.Contains(string(body), c.text) || got != c.acted {
				t.Errorf("got status %d, %.200q, error %v, commands %q; want %d, %q, %q", resp.StatusCode, body, err, got, c.status, c.text, c.acted)
			}
		})
	}
}

var formField = regexp.MustCompile(`name="form" value="([0-9a-f]{64})"`)

// formToken returns the form token of a session, as the task's page has it.
func formToken(t *testing.T, base, cookie string) string {
	t.Helper()
	headers := map[string]string{"Accept": "text/html"}
	if cookie != "" {
		headers["Cookie"] = cookie
	}
	_, body := fetch(t, base+"/tasks/acme/shop/1", headers)
	m := formField.FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no form token in %s", body)
	}
	return m[1]
}

// TestPagesWithoutTokenAct: without an admin token, programs may act, and browsers only by errand's own forms.
func TestPagesWithoutTokenAct(t *testing.T) {
	t.Parallel()
	w, acted := operated(t, func(cfg *admin.Config) { cfg.Token, cfg.Open = "", true })
	form := formToken(t, w.url, "")
	for name, c := range map[string]struct {
		headers map[string]string
		form    string
		status  int
	}{
		"program":      {status: http.StatusOK},
		"browser":      {headers: map[string]string{"Origin": w.url}, form: form, status: http.StatusOK},
		"no form":      {headers: map[string]string{"Origin": w.url}, status: http.StatusForbidden},
		"another site": {headers: map[string]string{"Origin": "https://evil.example"}, form: form, status: http.StatusForbidden},
	} {
		*acted = nil
		h := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
		for k, v := range c.headers {
			h[k] = v
		}
		resp := do(t, http.MethodPost, w.url+"/tasks/acme/shop/1/actions/stop", url.Values{"form": {c.form}}.Encode(), h)
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || (len(*acted) > 0) != (c.status == http.StatusOK) {
			t.Errorf("%s: got status %d and commands %v, want %d", name, resp.StatusCode, *acted, c.status)
		}
	}
}

// TestTaskPageHasActions: the page offers the actions that have an effect, asks before the drastic ones, and lists those of the past
// with who gave them. Reading pages changes nothing.
func TestTaskPageHasActions(t *testing.T) {
	t.Parallel()
	w, acted := operated(t, nil)
	page := func(path string) string {
		t.Helper()
		_, body := fetch(t, w.url+path, map[string]string{"Authorization": "Bearer " + token, "Accept": "text/html"})
		return body
	}
	want(t, page("/tasks/acme/shop/1"), `action="/tasks/acme/shop/1/actions/stop"`, `method="get" action="/tasks/acme/shop/1/actions/cancel"`, "500k tokens")
	wantNot(t, page("/tasks/acme/shop/1"), "actions/retry", "actions/approve")
	want(t, page("/tasks/acme/shop/1/actions/cancel"), "Cancel acme/shop #1?", `method="post"`, "It &lt;b&gt;breaks", "back to the task")
	want(t, page("/tasks/acme/shop/1/actions/stop"), "does not exist")
	want(t, page("/tasks/acme/shop/1/actions/nothing"), "does not exist")
	if len(*acted) > 0 {
		t.Errorf("pages led to the commands %v", *acted)
	}
	cookie := logIn(t, w.url)
	send := url.Values{"form": {formToken(t, w.url, cookie)}, "id": {"0123456789abcdef-stop"}}.Encode()
	for range 2 { // a double click
		resp := do(t, http.MethodPost, w.url+"/tasks/acme/shop/1/actions/stop", send, map[string]string{"Cookie": cookie, "Accept": "text/html", "Content-Type": "application/x-www-form-urlencoded"})
		_ = resp.Body.Close()
		if to := resp.Header.Get("Location"); to != "/tasks/acme/shop/1#actions" {
			t.Errorf("got redirected to %q", to)
		}
	}
	body := page("/tasks/acme/shop/1")
	want(t, body, "browser session ", "from 127.0.0.1<", "result of stop", `action="/tasks/acme/shop/1/actions/retry"`)
	if n := strings.Count(body, "result of stop"); n != 1 {
		t.Errorf("a double click is listed %d times", n)
	}
	wantNot(t, body, strings.TrimPrefix(cookie, "errand_admin="), `action="/tasks/acme/shop/1/actions/stop"`)
	_, list := fetch(t, w.url+"/audit.json?task=acme%2FSHOP%231", map[string]string{"Authorization": "Bearer " + token})
	want(t, list, `"command": "stop"`, `"by": "browser session `)
	_, list = fetch(t, w.url+"/audit.json?task=acme%2Fshop%232", map[string]string{"Authorization": "Bearer " + token})
	want(t, list, `"actions": []`)
	if status, _ := fetch(t, w.url+"/audit.json", nil); status != http.StatusUnauthorized {
		t.Errorf("the audit log without a token: got status %d", status)
	}
}

// TestAuditKnowsRenamedAndAdopted: a task's entries include that of its adoption, and those under the repository's earlier name.
func TestAuditKnowsRenamedAndAdopted(t *testing.T) {
	t.Parallel()
	w, _ := operated(t, func(cfg *admin.Config) {
		cfg.Adopt = func(context.Context, string, int) (string, error) { return "assigned by @ada", nil }
		earlier := store.Action{ID: "earlier", At: noon, Task: state.TaskKey{Repo: 7, Issue: 1}, Subject: "acme/old#1", Command: "retry", Result: "under the old name"}
		other := store.Action{ID: "other", At: noon, Subject: "acme/old#2", Command: "adopt", Result: "of another issue", Refused: true}
		if err := errors.Join(cfg.Audit.Add(t.Context(), earlier), cfg.Audit.Add(t.Context(), other)); err != nil {
			t.Fatal(err)
		}
	})
	bearer := map[string]string{"Authorization": "Bearer " + token}
	resp := do(t, http.MethodPost, w.url+"/tasks/acme/shop/1/adopt", "", bearer)
	_ = resp.Body.Close()
	for path, headers := range map[string]map[string]string{"/audit.json?task=acme%2Fshop%231": bearer, "/tasks/acme/shop/1": {"Authorization": "Bearer " + token, "Accept": "text/html"}} {
		_, body := fetch(t, w.url+path, headers)
		want(t, body, "started: assigned by @ada", "under the old name")
		wantNot(t, body, "of another issue")
	}
}
