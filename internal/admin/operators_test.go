package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
)

// TestUnstartedIssuesAreListed: issues with an old trigger are on the board and in its JSON, at most 100 of them, without those that
// have got a task since.
func TestUnstartedIssuesAreListed(t *testing.T) {
	t.Parallel()
	list := []admin.Unstarted{
		{Repo: "acme/shop", Issue: 1, Title: "It has a task", Trigger: state.TriggerLabel},
		{Repo: "acme/zebra", Issue: 1, Title: "<b>It breaks</b>", URL: "https://git.example/acme/zebra/issues/4", Trigger: state.TriggerLabel},
		{Repo: "acme/zebra", Issue: 5, Title: "Without an address", Trigger: state.TriggerAssigned},
	}
	url := serve(t, admin.Config{Store: sample(), Transcripts: noFiles{}, Open: true, Now: func() time.Time { return noon }, Unstarted: func() []admin.Unstarted { return list }})
	html := map[string]string{"Accept": "text/html"}
	_, body := fetch(t, url+"/status", html)
	want(t, body, "Not started", "&lt;b&gt;It breaks&lt;/b&gt;", `href="https://git.example/acme/zebra/issues/4"`, "acme/zebra #5", "errand adopt OWNER/REPO#N")
	wantNot(t, body, "It has a task", "The first")
	_, body = fetch(t, url+"/status.json", nil)
	want(t, body, `"unstarted_count": 2`, `"trigger": "assigned"`)
	for n := range 120 {
		list = append(list, admin.Unstarted{Repo: "acme/zebra", Issue: 10 + n, Title: fmt.Sprintf("Another %d", n), Trigger: state.TriggerLabel})
	}
	_, body = fetch(t, url+"/status", html)
	want(t, body, `Not started <span class="dim">122</span>`, "The first 100.")
	wantNot(t, body, "Another 100")
	list = nil
	_, body = fetch(t, url+"/status", html)
	wantNot(t, body, "Not started")
}

// TestAdopt: only operators adopt issues, and no page of another site can make their browser do it.
func TestAdopt(t *testing.T) {
	t.Parallel()
	bearer := map[string]string{"Authorization": "Bearer " + token}
	for name, c := range map[string]struct {
		method, path string
		headers      map[string]string
		err          error
		status       int
		body         string
		called       string
	}{
		"started":       {path: "/tasks/acme/shop/4/adopt", headers: bearer, status: http.StatusOK, body: "labeled by @ada", called: "acme/shop#4"},
		"refused":       {path: "/tasks/acme/shop/4/adopt", headers: bearer, err: admin.Refusal("acme/shop#4 is closed"), status: http.StatusConflict, body: "is closed", called: "acme/shop#4"},
		"GitHub fails":  {path: "/tasks/acme/shop/4/adopt", headers: bearer, err: errors.New("read events: 502"), status: http.StatusBadGateway, body: "read events: 502; try again", called: "acme/shop#4"},
		"no number":     {path: "/tasks/acme/shop/x/adopt", headers: bearer, status: http.StatusBadRequest, body: "not a number"},
		"zero":          {path: "/tasks/acme/shop/0/adopt", headers: bearer, status: http.StatusBadRequest, body: "not a number"},
		"no token":      {path: "/tasks/acme/shop/4/adopt", status: http.StatusUnauthorized},
		"wrong token":   {path: "/tasks/acme/shop/4/adopt", headers: map[string]string{"Authorization": "Bearer x"}, status: http.StatusUnauthorized},
		"another site":  {path: "/tasks/acme/shop/4/adopt", headers: map[string]string{"Authorization": "Bearer " + token, "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, status: http.StatusForbidden},
		"not by a link": {method: http.MethodGet, path: "/tasks/acme/shop/4/adopt", headers: bearer, status: http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called := ""
			url := serve(t, admin.Config{Store: sample(), Transcripts: noFiles{}, Token: token, Adopt: func(_ context.Context, repo string, issue int) (string, error) {
				called = fmt.Sprintf("%s#%d", repo, issue)
				return called + ", labeled by @ada", c.err
			}})
			if c.method == "" {
				c.method = http.MethodPost
			}
			resp := do(t, c.method, url+c.path, "", c.headers)
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status || !strings.Contains(string(body), c.body) || called != c.called {
				t.Errorf("got status %d, %q, error %v, called for %q; want status %d, %q, for %q", resp.StatusCode, body, err, called, c.status, c.body, c.called)
			}
		})
	}
}

// TestDoctor: only operators get the report, and one at a time is made.
func TestDoctor(t *testing.T) {
	t.Parallel()
	var busy atomic.Int32
	url := serve(t, admin.Config{Store: sample(), Transcripts: noFiles{}, Token: token, Doctor: func(context.Context) any {
		defer busy.Add(-1)
		if busy.Add(1) > 1 {
			t.Error("two reports at a time")
		}
		return map[string]string{"found": "nothing"}
	}})
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			resp := do(t, http.MethodGet, url+"/doctor.json", "", map[string]string{"Authorization": "Bearer " + token})
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK || string(body) != "{\n  \"found\": \"nothing\"\n}\n" {
				return fmt.Errorf("got status %d, %q, %v", resp.StatusCode, body, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	resp := do(t, http.MethodGet, url+"/doctor.json", "", nil)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: got status %d", resp.StatusCode)
	}
}
