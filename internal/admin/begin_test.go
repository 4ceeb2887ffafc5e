package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state/store"
)

// TestBegin: an issue is shown, and a task begins for the text of a hash; every refusal and failure has its status, and those of an order
// are in the audit log.
func TestBegin(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("0a", 32)
	for name, c := range map[string]struct {
		form     url.Values // nil shows the issue
		path     string
		err      error
		status   int
		body     string
		recorded string
	}{
		"shown":             {status: 200, body: `"title": "Greet \u003cb\u003e"`},
		"not shown":         {err: admin.Refusal("acme/shop#4 is closed"), status: 409, body: "acme/shop#4 is closed"},
		"GitHub fails":      {err: errors.New("read issue: 502"), status: 502, body: "could not be read: read issue: 502; try again"},
		"no number":         {path: "/tasks/acme/shop/x/run.json", status: 400, body: "not a number"},
		"begun":             {form: url.Values{"text": {hash}}, status: 200, body: "started with the text " + hash, recorded: "acme/shop#4 run: started with the text " + hash},
		"refused":           {form: url.Values{"text": {hash}}, err: admin.Refusal("it has changed"), status: 409, body: "it has changed", recorded: "acme/shop#4 run refused: it has changed"},
		"not begun":         {form: url.Values{"text": {hash}}, err: admin.UnchangedError{Err: errors.New("read issue: 502")}, status: 502, body: "was not carried out: read issue: 502"},
		"perhaps begun":     {form: url.Values{"text": {hash}}, err: errors.New("disk full"), status: 500, body: "it may have been carried out"},
		"without a text":    {form: url.Values{}, status: 400, body: "hash of the text"},
		"a part of a hash":  {form: url.Values{"text": {hash[:12]}}, status: 400, body: "hash of the text"},
		"begun, no number":  {form: url.Values{"text": {hash}}, path: "/tasks/acme/shop/0/run", status: 400, body: "not a number"},
		"too large a form":  {form: url.Values{"text": {hash}, "x": {strings.Repeat("x", 2<<20)}}, status: 400, body: "hash of the text"},
		"begun by a GET":    {path: "/tasks/acme/shop/4/run", status: 404},
		"shown at its page": {path: "/tasks/acme/shop/4", status: 404, body: "no task"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var audit *store.Audit
			w := newWorld(t, func(cfg *admin.Config) {
				audit = cfg.Store.(*store.Store).Audit
				cfg.Token, cfg.Audit = token, audit
				cfg.Preview = func(context.Context, string, int) (admin.Preview, error) {
					return admin.Preview{Title: "Greet <b>"}, c.err
				}
				cfg.Begin = func(ctx context.Context, _ string, _ int, text string, a store.Action) (store.Action, error) {
					if c.err != nil {
						return a, c.err
					}
					a.Result = "started with the text " + text
					return a, audit.Add(ctx, a)
				}
			})
			method, path, form := http.MethodGet, "/tasks/acme/shop/4/run.json", ""
			if c.form != nil {
				method, path, form = http.MethodPost, "/tasks/acme/shop/4/run", c.form.Encode()
			}
			if c.path != "" {
				path = c.path
			}
			resp := do(t, method, w.url+path, form, map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/x-www-form-urlencoded"})
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || !strings.Contains(string(body), c.body) {
				t.Errorf("got status %d, %q, error %v; want %d, %q", resp.StatusCode, body, err, c.status, c.body)
			}
			list, err := audit.List(t.Context(), 9, func(store.Action) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, a := range list {
				if got += a.Subject + " " + a.Command; a.Refused {
					got += " refused"
				}
				got += ": " + a.Result
			}
			if diff := cmp.Diff(c.recorded, got); diff != "" {
				t.Errorf("audit log (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOnlyOperatorsBegin: nobody but an operator is shown an issue for a task, or begins one; those with write access included.
func TestOnlyOperatorsBegin(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	for i, person := range roles {
		b := p.as(person)
		form := url.Values{"form": {b.formToken()}, "text": {strings.Repeat("0a", 32)}}
		resp := b.send(http.MethodPost, "/tasks/acme/shop/1/run", form, nil)
		_ = resp.Body.Close()
		want := http.StatusNotFound
		if i == 0 {
			want = http.StatusSeeOther
		}
		if status, _ := b.ask(http.MethodGet, "/tasks/acme/shop/1/run.json"); resp.StatusCode != want || i > 0 && status != http.StatusNotFound {
			t.Errorf("%s: got status %d for the order and %d for the issue", person, resp.StatusCode, status)
		}
	}
	if diff := cmp.Diff([]string{"acme/shop#1 run by @Olga (GitHub ID 1)"}, p.acted); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
