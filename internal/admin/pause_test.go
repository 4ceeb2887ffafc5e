package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// pausable starts pages on which operators can pause. orders holds their orders.
func pausable(t *testing.T, change func(*admin.Config)) (w *world, orders *[]string) {
	t.Helper()
	orders = new([]string)
	w = newWorld(t, func(cfg *admin.Config) {
		s := cfg.Store.(*store.Store)
		cfg.Audit = s.Audit
		cfg.Pauses = pausesIn(s, orders)
		if change != nil {
			change(cfg)
		}
	})
	return w, orders
}

// pausesIn gives orders to a store, and records them.
func pausesIn(s *store.Store, orders *[]string) *admin.Pauses {
	return &admin.Pauses{
		List: s.Pauses.List,
		Pause: func(ctx context.Context, repo, reason string, a store.Action) (store.Action, error) {
			*orders = append(*orders, fmt.Sprintf("pause %s %.40s", repo, reason))
			switch repo {
			case "acme/typo":
				return a, admin.Refusal("errand has no access to acme/typo")
			case "acme/down":
				return a, admin.UnchangedError{Err: errors.New("502 from GitHub")}
			case "acme/broken":
				return a, errors.New("power cut")
			}
			p := state.Pause{By: a.By, Reason: reason}
			if repo != "" {
				p.Repo, p.Name = 7, repo
			}
			return s.Pauses.Set(ctx, p, a)
		},
		Resume: func(ctx context.Context, repo string, all bool, a store.Action) (store.Action, error) {
			*orders = append(*orders, fmt.Sprintf("resume %s %t", repo, all))
			done, _, _, err := s.Pauses.Lift(ctx, func(p state.Pause) bool { return all || p.Name == repo }, a)
			return done, err
		},
		UnderWay: func(context.Context) ([]admin.Work, error) {
			return []admin.Work{{Task: "acme/shop#1", Doing: "the agent <b>runs</b>"}}, nil
		},
	}
}

// TestOnlyOperatorsPause: an order needs the admin token, or a session with the token of errand's own form.
func TestOnlyOperatorsPause(t *testing.T) {
	t.Parallel()
	bearer := map[string]string{"Authorization": "Bearer " + token}
	for name, c := range map[string]struct {
		path, body string
		headers    map[string]string
		cookie     bool   // of a session
		form       bool   // with the form's token
		status     int    // of the answer
		text       string // a part of the answer
		order      string
	}{
		"program":              {path: "/pause", body: "reason=new+disk", headers: bearer, status: http.StatusOK, text: "paused", order: "pause  new disk"},
		"program, repository":  {path: "/pause", body: "repo=acme%2Fshop", headers: bearer, status: http.StatusOK, text: "paused", order: "pause acme/shop "},
		"program, resume":      {path: "/resume", body: "all=true", headers: bearer, status: http.StatusOK, text: "was not paused", order: "resume  true"},
		"refused":              {path: "/pause", body: "repo=acme%2Ftypo", headers: bearer, status: http.StatusConflict, text: "errand has no access to acme/typo", order: "pause acme/typo "},
		"GitHub fails":         {path: "/pause", body: "repo=acme%2Fdown", headers: bearer, status: http.StatusBadGateway, text: "502 from GitHub. Try again", order: "pause acme/down "},
		"the store fails":      {path: "/pause", body: "repo=acme%2Fbroken", headers: bearer, status: http.StatusInternalServerError, text: "may have been carried out: power cut", order: "pause acme/broken "},
		"browser":              {path: "/pause", cookie: true, form: true, headers: map[string]string{"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}, status: http.StatusSeeOther, order: "pause  "},
		"browser, refused":     {path: "/pause", body: "repo=acme%2Ftypo", cookie: true, form: true, headers: map[string]string{"Accept": "text/html"}, status: http.StatusConflict, text: "errand has no access", order: "pause acme/typo "},
		"without form token":   {path: "/pause", cookie: true, status: http.StatusForbidden, text: "reload the page"},
		"resume without":       {path: "/resume", cookie: true, status: http.StatusForbidden, text: "reload the page"},
		"another site":         {path: "/resume", cookie: true, form: true, headers: map[string]string{"Sec-Fetch-Site": "cross-site"}, status: http.StatusForbidden},
		"form token, nobody":   {path: "/pause", form: true, status: http.StatusUnauthorized},
		"nobody":               {path: "/pause", status: http.StatusUnauthorized},
		"wrong token":          {path: "/resume", headers: map[string]string{"Authorization": "Bearer x"}, status: http.StatusUnauthorized},
		"not a repository":     {path: "/pause", body: "repo=acme", headers: bearer, status: http.StatusBadRequest, text: "OWNER/REPO"},
		"an issue":             {path: "/pause", body: "repo=acme%2Fshop%231", headers: bearer, status: http.StatusBadRequest, text: "OWNER/REPO"},
		"an endless name":      {path: "/pause", body: "repo=acme%2F" + strings.Repeat("x", 5000), headers: bearer, status: http.StatusBadRequest, text: "OWNER/REPO"},
		"megabytes":            {path: "/pause", body: "reason=" + strings.Repeat("x", 5<<20), headers: bearer, status: http.StatusRequestEntityTooLarge},
		"reading does nothing": {path: "/pause.json", headers: bearer, status: http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, orders := pausable(t, nil)
			h := map[string]string{}
			for k, v := range c.headers {
				h[k] = v
			}
			cookie := logIn(t, w.url)
			_, form := fetch(t, w.url+"/pause", map[string]string{"Cookie": cookie, "Accept": "text/html"})
			m := formField.FindStringSubmatch(form)
			if m == nil {
				t.Fatalf("no form token in %s", form)
			}
			if c.cookie {
				h["Cookie"] = cookie
			}
			if c.form {
				c.body += "&" + url.Values{"form": {m[1]}}.Encode()
			}
			resp := do(t, http.MethodPost, w.url+c.path, c.body, h)
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if got := strings.Join(*orders, ", "); err != nil || resp.StatusCode != c.status || !strings.Contains(string(body), c.text) || got != c.order {
				t.Errorf("got status %d, %.200q, error %v, orders %q; want %d, %q, %q", resp.StatusCode, body, err, got, c.status, c.text, c.order)
			}
		})
	}
}

// TestBoardShowsPauses: prominently, with a button for each, and the audit log has who ordered them, also those that were refused.
func TestBoardShowsPauses(t *testing.T) {
	t.Parallel()
	w, orders := pausable(t, nil)
	want(t, w.page("/status"), `href="/pause"`)
	wantNot(t, w.page("/status"), "/resume")
	want(t, w.page("/pause"), `method="post" action="/pause"`, "go on to their end")
	if len(*orders) > 0 {
		t.Errorf("pages led to the orders %v", *orders)
	}
	post := func(path, body string) {
		t.Helper()
		_ = do(t, http.MethodPost, w.url+path, body, map[string]string{"Authorization": "Bearer " + token}).Body.Close()
		w.advance(time.Hour)
	}
	post("/pause", "repo=acme%2Fshop&reason=a+%3Cb%3Erelease")
	body := w.page("/status")
	want(t, body, "Paused repositories", "acme/shop: A &lt;b&gt;release.", `aria-label="Resume acme/shop"`, `href="/pause"`, "by token")
	post("/pause", "")
	body = w.page("/status")
	want(t, body, "Paused: no new run starts", `aria-label="Resume everything"`)
	wantNot(t, body, `href="/pause"`)
	post("/pause", "repo=acme%2Ftypo")
	want(t, w.page("/audit.json"), `"refused": true`, `"result": "errand has no access to acme/typo"`, `"subject": "acme/typo"`)
	want(t, w.page("/status.json"), `"paused": [`, `"name": "acme/shop"`, `"reason": "a \u003cb\u003erelease"`)
	want(t, w.page("/pause.json"), `"task": "acme/shop#1"`, `"paused": [`)
	want(t, w.page("/metrics"), `errand_paused{scope="all"} 1`, `errand_paused{scope="repository"} 1`)
	post("/resume", "")
	want(t, w.page("/metrics"), `errand_paused{scope="all"} 0`)
	post("/resume", "repo=acme%2Fshop")
	want(t, w.page("/metrics"), `errand_paused{scope="repository"} 0`)
}

// TestTaskPausesItsRepository: only operators see the button that pauses or resumes the repository on the page of an open task.
func TestTaskPausesItsRepository(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	p.trigger(1, "A task")
	const page = "/tasks/acme/shop/1"
	pause := `action="/pause"><input type="hidden" name="repo" value="acme/shop">`
	resume := `name="repo" value="acme/shop"><button title="Ends the pause`
	offers := func(person string) (offersPause, offersResume bool) {
		_, body := p.as(person).page(page)
		return strings.Contains(body, pause), strings.Contains(body, resume)
	}
	b := p.as("olga")
	if yes, no := offers("olga"); !yes || no {
		t.Errorf("the page offers to pause: %v, to resume: %v", yes, no)
	}
	for query, want := range map[string]bool{"acme%2Fshop": true, "%22%3E%3Cscript%3E": false} {
		if _, form := b.page("/pause?repo=" + query); strings.Contains(form, `name="repo" value="acme/shop"`) != want || strings.Contains(form, "<script>") {
			t.Errorf("%s: got the form %s", query, form)
		}
	}
	if _, err := p.store.Pauses.Set(t.Context(), state.Pause{Repo: 7, Name: "acme/shop", By: "token"}, store.Action{ID: "1"}); err != nil {
		t.Fatal(err)
	}
	if no, yes := offers("olga"); no || !yes {
		t.Errorf("paused: the page offers to pause: %v, to resume: %v", no, yes)
	}
	if pauses, resumes := offers("wes"); pauses || resumes {
		t.Error("a person with write access may pause or resume")
	}
	p.apply(1, event.Event{By: state.Person{ID: 1, Login: "ada"}, Permission: state.PermissionWrite, Payload: event.IssueClosed{}})
	if pauses, resumes := offers("olga"); pauses || resumes {
		t.Error("the page of an ended task offers to pause or to resume")
	}
}
