package simgithub_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
)

func TestDeliveryLogAndRedelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.Settled()
	w.Inbox.Answer(http.StatusInternalServerError)
	w.Issue("Lost")
	w.Settled()
	w.Inbox.Answer(http.StatusOK)
	w.Issue("Found")
	w.Settled()
	var all []*github.HookDelivery
	o := &github.ListCursorOptions{PerPage: 1}
	for {
		list, resp, err := w.app.Apps.ListHookDeliveries(ctx, o)
		check(t, err)
		all = append(all, list...)
		if resp.Cursor == "" {
			break
		}
		o.Cursor = resp.Cursor
	}
	if len(all) != 3 || all[2].GetEvent() != "installation" || all[0].GetStatus() != "OK" || all[1].GetStatusCode() != 500 || all[1].GetStatus() == "OK" {
		t.Fatalf("newest first: an OK, a failure and the installation; got %v", all)
	}
	full, _, err := w.app.Apps.GetHookDelivery(ctx, all[1].GetID())
	check(t, err)
	event, err := full.ParseRequestPayload()
	check(t, err)
	if e, ok := event.(*github.IssuesEvent); !ok || e.GetIssue().GetTitle() != "Lost" || full.Request.Headers["X-Github-Delivery"] != all[1].GetGUID() {
		t.Errorf("got payload %T, headers %v", event, full.Request.Headers)
	}
	_, _, err = w.app.Apps.RedeliverHookDelivery(ctx, all[1].GetID())
	var accepted *github.AcceptedError
	if !errors.As(err, &accepted) {
		t.Fatalf("redelivery: %v", err)
	}
	check(t, w.Sim.WaitHooks(ctx))
	h, ok := w.Inbox.Last("issues.opened")
	if !ok || h.Header.Get("X-Github-Delivery") != all[1].GetGUID() {
		t.Error("the redelivery has another GUID")
	}
	list := w.Sim.Deliveries()
	if last := list[len(list)-1]; !last.Redelivery || last.Status != "OK" {
		t.Errorf("got log entry %+v", last)
	}
}

func TestHookConfigCanBeChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _, err := w.app.Apps.UpdateHookConfig(t.Context(), &github.HookConfig{Secret: ptr("rotated")})
	check(t, err)
	if c.GetURL() != w.Inbox.URL() || w.Sim.App().WebhookSecret != "rotated" {
		t.Errorf("got config %v", c)
	}
	w.Settled()
	w.Issue("Signed anew")
	check(t, w.Sim.WaitHooks(t.Context()))
	if h, _ := w.Inbox.Last("issues.opened"); h.Valid {
		t.Error("signed with the old secret")
	}
}

func TestFaultsOfDeliveries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault       delivery.Fault
		want        []string
		bad, failed int
	}{
		"lost":       {delivery.Fault{Event: "issues", Lose: true}, []string{"issue_comment.created"}, 0, 0},
		"failed":     {delivery.Fault{Action: "opened", Fail: true}, []string{"issues.closed", "issue_comment.created"}, 0, 1},
		"second":     {delivery.Fault{Event: "issues", Nth: 2, Lose: true}, []string{"issues.opened", "issue_comment.created"}, 0, 0},
		"once":       {delivery.Fault{Event: "issues", Count: 1, Lose: true}, []string{"issues.closed", "issue_comment.created"}, 0, 0},
		"duplicated": {delivery.Fault{Action: "closed", Copies: 2}, []string{"issues.opened", "issues.closed", "issues.closed", "issues.closed", "issue_comment.created"}, 0, 0},
		"badly signed": {
			delivery.Fault{Action: "closed", BadSignature: true}, []string{"issues.opened", "issues.closed", "issue_comment.created"}, 1, 0,
		},
		"held": {delivery.Fault{Action: "opened", Hold: true}, []string{"issues.closed", "issue_comment.created", "issues.opened"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Settled()
			w.Sim.FaultHooks(c.fault)
			i := w.Issue("One")
			check(t, w.Owner.Close(repo, i.Number, ""))
			check(t, second(w.Owner.Comment(repo, i.Number, "bye")))
			check(t, w.Sim.WaitHooks(t.Context()))
			w.Sim.ReleaseHooks(false)
			check(t, w.Sim.WaitHooks(t.Context()))
			bad, failed := 0, 0
			for _, h := range w.Inbox.Hooks() {
				if !h.Valid {
					bad++
				}
			}
			for _, d := range w.Sim.Deliveries() {
				if d.Status != "OK" {
					failed++
				}
			}
			if diff := cmp.Diff(c.want, w.Settled()); diff != "" || bad != c.bad || failed != c.failed {
				t.Errorf("got %d badly signed, %d failed; webhooks (-want +got):\n%s", bad, failed, diff)
			}
		})
	}
}

func TestHeldDeliveriesCanBeReversed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settled()
	w.Sim.HoldHooks()
	i := w.Issue("One")
	check(t, w.Owner.Close(repo, i.Number, ""))
	if got := w.Settled(); len(got) != 0 {
		t.Errorf("got %v although deliveries are held", got)
	}
	w.Sim.ReleaseHooks(true)
	if diff := cmp.Diff([]string{"issues.closed", "issues.opened"}, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

func TestFaultsOfRequests(t *testing.T) {
	t.Parallel()
	const comments = `/issues/1/comments$`
	for name, c := range map[string]struct {
		fault    simgithub.Fault
		statuses []int // of three comments in turn
		written  int
	}{
		"500 before":         {simgithub.Fault{Method: "POST", Path: comments, Status: 500, Count: 1}, []int{500, 0, 0}, 2},
		"502 after":          {simgithub.Fault{Method: "POST", Path: comments, Status: 502, Nth: 2, Count: 1, After: true}, []int{0, 502, 0}, 3},
		"cut after":          {simgithub.Fault{Method: "POST", Path: comments, Nth: 3, After: true, Cut: true}, []int{0, 0, -1}, 3},
		"people only":        {simgithub.Fault{Path: comments, Status: 500, Actor: "user"}, []int{0, 0, 0}, 3},
		"secondary with 429": {simgithub.Fault{Method: "POST", Path: comments, Secondary: true, Status: 429, RetryAfter: 1, Count: 1}, []int{429, 0, 0}, 2},
		"another path":       {simgithub.Fault{Method: "POST", Path: "/reactions$", Status: 500}, []int{0, 0, 0}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Issue("One")
			check(t, w.Sim.Fault(c.fault))
			var got []int
			for range 3 {
				_, _, err := w.bot.Issues.CreateComment(t.Context(), "octo", "calc", 1, &github.IssueComment{Body: ptr("x")})
				got = append(got, status(err))
			}
			i, err := w.Owner.Issue(repo, 1)
			check(t, err)
			if diff := cmp.Diff(c.statuses, got); diff != "" || len(i.Comments) != c.written {
				t.Errorf("got %d comments, want %d; statuses (-want +got):\n%s", len(i.Comments), c.written, diff)
			}
		})
	}
}

func TestLimitsAreRecognizedByGoGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	check(t, w.Sim.Fault(simgithub.Fault{Path: "^/repos/octo/calc$", Primary: true, Count: 1}))
	check(t, w.Sim.Fault(simgithub.Fault{Path: "/issues$", Secondary: true, RetryAfter: 7}))
	_, _, err := w.bot.Issues.ListByRepo(t.Context(), "octo", "calc", nil)
	var abuse *github.AbuseRateLimitError
	if !errors.As(err, &abuse) || abuse.GetRetryAfter() != 7*time.Second {
		t.Errorf("secondary limit: %v", err)
	}
	fresh := w.client(nil).WithAuthToken(w.Sim.AddUser("alice").Token)
	_, _, err = fresh.Repositories.Get(t.Context(), "octo", "calc")
	var primary *github.RateLimitError
	if !errors.As(err, &primary) {
		t.Errorf("primary limit: %v", err)
	}
}

func TestFaultsOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	post := func(body string) {
		t.Helper()
		resp, err := webtest.Client().Post(w.URL+"/_sim/faults", "application/json", strings.NewReader(body))
		check(t, err)
		check(t, resp.Body.Close())
		if resp.StatusCode != http.StatusNoContent {
			t.Fatalf("add a fault: %s", resp.Status)
		}
	}
	post(`{"path":"/branches","hang":true}`)
	post(`{"path":"/meta$","status":503}`)
	post(`{"hook":{"event":"issues","lose":true}}`)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := w.human("alice").Repositories.GetBranch(ctx, "octo", "calc", "main", 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a hanging request: %v", err)
	}
	if got := w.get(t, "/api/v3/meta", "").StatusCode; got != 503 {
		t.Errorf("got status %d", got)
	}
	w.Settled()
	w.Issue("Lost")
	if got := w.Settled(); len(got) != 0 {
		t.Errorf("got webhooks %v", got)
	}
	w.Sim.ClearFaults()
	if got := w.get(t, "/api/v3/meta", "").StatusCode; got != 200 {
		t.Errorf("after clearing: %d", got)
	}
}

func TestListsCanLag(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.Issue("One")
	w.Sim.SetListLag(time.Hour)
	k, err := w.Owner.Comment(repo, i.Number, "fresh")
	check(t, err)
	list, _, err := w.bot.Issues.ListComments(t.Context(), "octo", "calc", i.Number, nil)
	check(t, err)
	if len(list) != 0 {
		t.Errorf("got list %v", list)
	}
	if _, _, err := w.bot.Issues.GetComment(t.Context(), "octo", "calc", k.ID); err != nil {
		t.Errorf("a single read: %v", err)
	}
	w.Sim.ClearFaults()
	if list, _, _ = w.bot.Issues.ListComments(t.Context(), "octo", "calc", i.Number, nil); len(list) != 1 {
		t.Errorf("without lag: got list %v", list)
	}
}

func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, before := w.Sim.Calls()
	w.Issue("One")
	_, _, err := w.bot.Issues.Get(t.Context(), "octo", "calc", 1)
	check(t, err)
	_, _, err = w.bot.Issues.Get(t.Context(), "octo", "calc", 1)
	check(t, err)
	list, after := w.Sim.Calls()
	found := 0
	for _, c := range list {
		if c.Route == "GET /repos/{owner}/{repo}/issues/{number}" {
			found = c.Count
		}
	}
	if found != 2 || after-before != 3 { // one token was minted
		t.Errorf("got %d calls of the route, %d in total", found, after-before)
	}
}

func TestContentRate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simgithub.Config) { c.ContentRate = 2 })
	w.Issue("One")
	for n, want := range []int{0, 0, 403} {
		_, _, err := w.bot.Issues.CreateComment(t.Context(), "octo", "calc", 1, &github.IssueComment{Body: ptr("x")})
		var abuse *github.AbuseRateLimitError
		if want == 0 && err != nil || want != 0 && (!errors.As(err, &abuse) || abuse.GetRetryAfter() <= 0) {
			t.Errorf("comment %d: %v", n+1, err)
		}
	}
}

func TestOnCallRunsBeforeAndAfterARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("One")
	var moments []bool
	w.Sim.OnCall(func(c simgithub.Call) {
		if c.Route != "POST /repos/{owner}/{repo}/issues/{number}/comments" || !c.App {
			return
		}
		moments = append(moments, c.After)
		i, err := w.Owner.Issue(repo, 1)
		check(t, err)
		if c.After != (len(i.Comments) == 1) {
			t.Errorf("got after=%v with %d comments", c.After, len(i.Comments))
		}
		if c.After {
			check(t, w.Owner.Close(repo, 1, ""))
		}
	})
	_, _, err := w.bot.Issues.CreateComment(t.Context(), "octo", "calc", 1, &github.IssueComment{Body: ptr("x")})
	check(t, err)
	w.Sim.OnCall(nil)
	i, err := w.Owner.Issue(repo, 1)
	check(t, err)
	if diff := cmp.Diff([]bool{false, true}, moments); diff != "" || i.State != "closed" {
		t.Errorf("got issue %s; moments (-want +got):\n%s", i.State, diff)
	}
}
