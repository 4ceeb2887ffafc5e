package client_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/state"
)

// redirector sends requests for another GitHub to the simulator, and records their original addresses.
type redirector struct {
	sim     string // address of the simulator
	web     string // addresses of the other GitHub
	rest    string
	graphql string

	mu        sync.Mutex
	requested map[string]bool // addresses up to the first variable part
	lost      []string
}

// RoundTrip replaces the address of a request by one of the simulator.
func (e *redirector) RoundTrip(r *http.Request) (*http.Response, error) {
	to, requested := r.URL.String(), ""
	switch {
	case to == e.graphql:
		to, requested = e.sim+"/api/graphql", e.graphql
	case strings.HasPrefix(to, e.rest):
		to, requested = e.sim+"/api/v3/"+strings.TrimPrefix(to, e.rest), e.rest
	}
	e.mu.Lock()
	if requested == "" {
		e.lost = append(e.lost, to)
	}
	e.requested[requested] = true
	e.mu.Unlock()
	u, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL, r.Host = u, u.Host
	return webtest.Transport().RoundTrip(r)
}

// TestRequestsGoToConfiguredAddresses checks that all requests go to the configured addresses. github.com has its API
// on another host than its pages, an Enterprise Server below paths of the same host. git fetches from the host of the
// pages.
func TestRequestsGoToConfiguredAddresses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ web, rest, graphql string }{
		"github.com":            {"https://github.com", "https://api.github.com/", "https://api.github.com/graphql"},
		"Enterprise Server":     {"https://git.example.org", "https://git.example.org/api/v3/", "https://git.example.org/api/graphql"},
		"GHE.com":               {"https://acme.ghe.com", "https://api.acme.ghe.com/", "https://api.acme.ghe.com/graphql"},
		"without a final slash": {"https://git.example.org/", "https://git.example.org/api/v3", "https://git.example.org/api/graphql"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var to *redirector
			w := forgetest.NewWorld(t, func(cfg *forge.Config) {
				to = &redirector{sim: cfg.WebURL, web: c.web, rest: strings.TrimSuffix(c.rest, "/") + "/", graphql: c.graphql, requested: map[string]bool{}}
				cfg.WebURL, cfg.V3APIURL, cfg.V4APIURL, cfg.Transport = c.web, c.rest, c.graphql, to
				if name == "github.com" { // the default
					cfg.WebURL, cfg.V3APIURL, cfg.V4APIURL = "", "", ""
				}
			})
			i := w.OpenIssue(t, "It breaks")
			self := forgetest.Must(w.Forge.Self(t.Context()))(t)
			posted := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, i.Number, "Hello."))(t)
			forgetest.Must(w.Forge.PollReactions(t.Context(), w.Repo.Installation, []string{posted.Node}))(t)
			forgetest.Must(w.Forge.Installations(t.Context()))(t)
			token, _, err := w.Forge.GitToken(t.Context(), w.Repo)
			if err != nil || token == "" || self.Slug != "errand" {
				t.Errorf("got token %q, %v; the App is %q", token, err, self.Slug)
			}
			host := strings.TrimSuffix(strings.TrimPrefix(c.web, "https://"), "/")
			if _, got, err := w.Forge.Identity(t.Context(), w.Repo, state.Person{ID: 7654321, Login: "rita"}); err != nil || got != "7654321+rita@users.noreply."+host {
				t.Errorf("got address %s, %v", got, err)
			}
			to.mu.Lock()
			defer to.mu.Unlock()
			if diff := cmp.Diff(map[string]bool{to.rest: true, to.graphql: true}, to.requested); diff != "" {
				t.Errorf("requested addresses (-want +got):\n%s%v", diff, to.lost)
			}
			if got, want := w.Forge.GitURL(w.Repo), strings.TrimSuffix(c.web, "/")+"/octo/app.git"; got != want {
				t.Errorf("fetched from %s, want %s", got, want)
			}
		})
	}
}

// TestAllPagesAreRead checks that a comment on the last of three pages is found, in three requests.
func TestAllPagesAreRead(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "Busy")
	for range 200 {
		forgetest.Must(w.As("rita").Comment(forgetest.FullName, i.Number, "words"))(t)
	}
	const marker = "<!-- errand:last -->"
	want := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, i.Number, "Here. "+marker))(t)
	got := forgetest.Must(w.Forge.FindComments(t.Context(), w.Repo, i.Number, marker, time.Time{}))(t)
	if len(got) != 1 || got[0].ID != want.ID {
		t.Errorf("found %+v, want comment %d", got, want.ID)
	}
	calls, _ := w.Calls()
	for _, c := range calls {
		if c.Route == "GET /repos/{owner}/{repo}/issues/{number}/comments" && c.Count != 3 {
			t.Errorf("got %d requests for 201 comments", c.Count)
		}
	}
}
