package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state"
)

// teamHub says who is in which team of acme, and counts the questions.
type teamHub struct {
	mu      sync.Mutex
	members map[string][]int64 // IDs of accounts by the slug of a team
	broken  map[string]bool    // teams about which GitHub says nothing
	owner   int64              // ID of the organization
	asked   int
	log     bytes.Buffer
}

func (h *teamHub) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *teamHub) isMember(_ context.Context, t config.Team, who state.Person) (bool, int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	if h.broken[t.Slug] {
		return false, 0, fmt.Errorf("bad gateway for %s", t)
	}
	for _, id := range h.members[t.Slug] {
		if id == who.ID {
			return true, h.owner, nil
		}
	}
	return false, h.owner, nil
}

// questions returns how often GitHub was asked while f ran.
func (h *teamHub) questions(f func()) int {
	var before, after int
	h.do(func() { before = h.asked })
	f()
	h.do(func() { after = h.asked })
	return after - before
}

// newTeamed returns a world in which the operators are olga and the teams ops and night. Rita is in night.
func newTeamed(t *testing.T) (*peopled, *teamHub) {
	t.Helper()
	h := &teamHub{members: map[string][]int64{"night": {3}}, broken: map[string]bool{}, owner: 70}
	return newPeopled(t, func(c *admin.Config) {
		c.Log = zerolog.New(&h.log)
		c.GitHub.Teams = []config.Team{{Organization: "Acme", Slug: "ops"}, {Organization: "acme", Slug: "night"}}
		c.GitHub.IsMember, c.GitHub.Reason = h.isMember, func(error) string { return "GitHub hides behind <b>." }
	}), h
}

func isOperator(b *browser) bool {
	b.t.Helper()
	status, _ := b.page("/metrics")
	return status == http.StatusOK
}

const inDoubt = "could not check whether you are in a team of operators"

// TestTeamsAreAskedSeldom: GitHub is asked at the sign-in, about each team until one has the person, and about members then at most every four
// minutes; never about an account that is listed.
func TestTeamsAreAskedSeldom(t *testing.T) {
	t.Parallel()
	p, h := newTeamed(t)
	var rita, wes *browser
	for person, c := range map[string]struct {
		do   func()
		want int
	}{
		"a member of the second team": {func() { rita = p.as("rita") }, 2},
		"a member of none":            {func() { wes = p.as("wes") }, 2},
		"a listed account":            {func() { p.as("olga").page("/status") }, 0},
	} {
		if n := h.questions(c.do); n != c.want {
			t.Errorf("the sign-in of %s: %d questions, want %d", person, n, c.want)
		}
	}
	n := h.questions(func() {
		for range 8 {
			if !isOperator(rita) || isOperator(wes) {
				t.Error("got the wrong operators")
			}
			p.advance(29 * time.Second)
		}
	})
	if n != 0 {
		t.Errorf("%d questions within four minutes", n)
	}
	h.do(func() { h.members = map[string][]int64{"ops": {2}} })
	if n := h.questions(func() { p.as("wes") }); n != 1 {
		t.Errorf("a new sign-in: %d questions, want 1", n)
	}
	again := p.as("wes")
	if !isOperator(again) || isOperator(wes) || !isOperator(rita) {
		t.Error("a new sign-in of one person changed another session")
	}
	p.advance(69 * time.Second)
	if isOperator(rita) {
		t.Error("a member who left is an operator after five minutes")
	}
	p.advance(time.Hour)
	if n := h.questions(func() { wes.page("/status"); rita.page("/status") }); n != 0 {
		t.Errorf("%d questions about those who were in no team", n)
	}
	if n := h.questions(func() { again.page("/status") }); n != 1 {
		t.Errorf("%d questions about a member after an hour", n)
	}
}

// TestUnclearTeams: no error makes anybody an operator, or stops somebody who is one in another way. The reason is shown on every page to
// those whom it concerns, as text and without the name of a team.
func TestUnclearTeams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm      func(p *peopled, h *teamHub)
		rita, wes bool   // are operators
		reason    string // that who is none reads
	}{
		"nothing":           {func(*peopled, *teamHub) {}, true, false, ""},
		"one team":          {func(_ *peopled, h *teamHub) { h.broken["ops"] = true }, true, false, "GitHub hides behind &lt;b&gt;."},
		"the person's team": {func(_ *peopled, h *teamHub) { h.broken["night"] = true }, false, false, "GitHub hides behind &lt;b&gt;."},
		"both teams":        {func(_ *peopled, h *teamHub) { h.broken["ops"], h.broken["night"] = true, true }, false, false, "GitHub hides behind &lt;b&gt;."},
		"no organization":   {func(_ *peopled, h *teamHub) { h.owner = 0 }, false, false, "GitHub did not name the team&#39;s organization."},
		"the store":         {func(p *peopled, _ *teamHub) { p.broken.Store(true) }, false, false, "errand&#39;s store failed."},
		"the store later": {func(p *peopled, h *teamHub) {
			h.mu.Unlock()
			p.as("wes")
			h.mu.Lock()
			p.broken.Store(true)
		}, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, h := newTeamed(t)
			isOperator(p.as("olga")) // her ID is stored
			h.do(func() { c.harm(p, h) })
			for person, want := range map[string]bool{"olga": true, "rita": c.rita, "wes": c.wes, "otto": false} {
				b := p.as(person)
				if got := isOperator(b); got != want {
					t.Errorf("%s is an operator: %t", person, got)
				}
				for _, path := range []string{"/status", "/vms", "/nowhere"} {
					_, text := b.page(path)
					if told := strings.Contains(text, inDoubt); told != (!want && c.reason != "") || told && !strings.Contains(text, c.reason) {
						t.Errorf("%s reads at %s that it is unclear: %t, want %q", person, path, told, c.reason)
					}
					if !want {
						wantNot(t, text, "bad gateway", "Acme/", "acme/ops", "night", "behind <b>")
					}
				}
			}
			if lines := strings.Count(h.log.String(), "in a team of operators"); lines > 1 || lines == 0 && c.reason != "" {
				t.Errorf("%d lines in the log:\n%s", lines, h.log.String())
			}
		})
	}
}

// TestTeamBelongsToAnOrganizationNotALogin: somebody who takes over the login of a team's organization, and installs the App there, does not become an operator.
func TestTeamBelongsToAnOrganizationNotALogin(t *testing.T) {
	t.Parallel()
	p, h := newTeamed(t)
	rita := p.as("rita")
	if !isOperator(rita) {
		t.Fatal("rita is no operator")
	}
	h.do(func() { h.owner, h.members = 666, map[string][]int64{"ops": {2, 3}} })
	if b := p.as("wes"); isOperator(b) {
		t.Error("a member of the stranger's team is an operator")
	} else if _, text := b.page("/status"); !strings.Contains(text, "Another organization has the login") {
		t.Error("no page says why")
	}
	p.advance(5 * time.Minute)
	if isOperator(rita) || !strings.Contains(h.log.String(), "another organization (ID 666) than before (ID 70)") {
		t.Errorf("rita is an operator: %t; the log:\n%s", isOperator(rita), h.log.String())
	}
	for id, want := range map[int64]bool{0: false, 70: false, 666: true} { // after a restart
		cfg := p.base
		hub := *cfg.GitHub
		hub.Teams, cfg.GitHub = []config.Team{{Organization: "ACME", OrganizationID: id, Slug: "ops"}}, &hub
		b := p.browser()
		b.base = serve(t, cfg)
		b.signIn("wes", "/status")
		if got := isOperator(b); got != want {
			t.Errorf("the team of the organization %d: wes is an operator: %t", id, got)
		}
	}
}

// TestStrangersUseUpNoQuestions: many people who sign in make errand ask GitHub only so often, and do not take the role from a member who is
// there.
func TestStrangersUseUpNoQuestions(t *testing.T) {
	t.Parallel()
	p, h := newTeamed(t)
	p.hub.do(func() {
		for n := range 120 {
			p.hub.people[fmt.Sprint("s", n)] = state.Person{ID: int64(1000 + n), Login: fmt.Sprint("s", n)}
		}
	})
	rita := p.as("rita")
	asked := h.questions(func() {
		for n := range 120 {
			p.as(fmt.Sprint("s", n))
		}
	})
	if asked > 200 {
		t.Errorf("%d questions about 120 strangers", asked)
	}
	otto := p.as("otto")
	if _, text := otto.page("/status"); isOperator(otto) || !strings.Contains(text, "Too many people are signing in at this moment.") {
		t.Error("a stranger does not read why")
	}
	p.advance(5 * time.Minute)
	for n := range 120 {
		p.as(fmt.Sprint("s", n))
	}
	if n := h.questions(func() {
		if !isOperator(rita) {
			t.Error("strangers took the role of a member")
		}
	}); n != 2 {
		t.Errorf("%d questions about a member", n)
	}
}

// TestHangingTeams: if GitHub does not answer questions about teams, a page is delayed by seconds only, and the person is not an operator.
func TestHangingTeams(t *testing.T) {
	t.Parallel()
	p, _ := newTeamed(t)
	cfg := p.base
	hub := *cfg.GitHub
	hub.IsMember = func(ctx context.Context, _ config.Team, _ state.Person) (bool, int64, error) {
		deadline, ok := ctx.Deadline()
		if left := time.Until(deadline); !ok || left > 10*time.Second {
			return false, 0, fmt.Errorf("the question has %s", left)
		}
		return true, 70, errors.New("deadline exceeded")
	}
	hub.Reason = func(err error) string { return err.Error() }
	cfg.GitHub = &hub
	b := p.browser()
	b.base = serve(t, cfg)
	b.signIn("rita", "/status")
	if _, text := b.page("/status"); isOperator(b) || !strings.Contains(text, "deadline exceeded") {
		t.Errorf("rita is an operator: %t:\n%s", isOperator(b), text)
	}
}
