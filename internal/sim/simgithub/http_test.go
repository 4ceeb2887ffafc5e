package simgithub_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// fetch sends a request as a person, with headers in pairs, and returns the answer with its body.
func (w *world) fetch(t *testing.T, method, path, login string, headers ...string) (*http.Response, string) {
	t.Helper()
	var ask string
	switch {
	case path == "/api/graphql":
		ask = `{"query":"{ viewer { login } }"}`
	case method == http.MethodPost:
		ask = `{"body":"Hello."}`
	}
	req, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, strings.NewReader(ask))
	check(t, err)
	req.Header.Set("Authorization", "Bearer "+w.Sim.AddUser(login).Token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Transport: webtest.Transport(), Timeout: time.Minute}).Do(req)
	check(t, err)
	body, err := io.ReadAll(resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	return resp, string(body)
}

// An unchanged answer is not sent again and does not count towards the limit; its ETag depends on caller and content.
func TestUnchangedAnswersAreNotSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.Issue("One")
	path := fmt.Sprintf("/api/v3/repos/octo/calc/issues/%d", i.Number)
	first, body := w.fetch(t, http.MethodGet, path, "alice")
	tag := first.Header.Get("ETag")
	if !regexp.MustCompile(`^W/"[0-9a-f]{64}"$`).MatchString(tag) || !strings.Contains(body, `"title":"One"`) {
		t.Fatalf("got ETag %q of %s", tag, body)
	}
	same, body := w.fetch(t, http.MethodGet, path, "alice", "If-None-Match", tag)
	if same.StatusCode != http.StatusNotModified || body != "" || same.Header.Get("ETag") != tag {
		t.Errorf("conditional request: got %s, %q, ETag %q", same.Status, body, same.Header.Get("ETag"))
	}
	if a, b := first.Header.Get("X-RateLimit-Remaining"), same.Header.Get("X-RateLimit-Remaining"); a != b {
		t.Errorf("a 304 counts towards the limit: %s, then %s left", a, b)
	}
	if other, _ := w.fetch(t, http.MethodGet, path, "rob", "If-None-Match", tag); other.StatusCode != http.StatusOK {
		t.Errorf("ETag of another caller: got %s", other.Status)
	}
	check(t, w.Owner.EditIssue(repo, i.Number, simgithub.IssueEdit{Title: ptr("Two")}))
	changed, body := w.fetch(t, http.MethodGet, path, "alice", "If-None-Match", tag)
	if changed.StatusCode != http.StatusOK || changed.Header.Get("ETag") == tag || !strings.Contains(body, `"title":"Two"`) {
		t.Errorf("after an edit: got %s, with the old ETag %t", changed.Status, changed.Header.Get("ETag") == tag)
	}
	if made, _ := w.fetch(t, http.MethodPost, path+"/comments", "alice"); made.Header.Get("ETag") != "" {
		t.Error("the answer to a POST has an ETag")
	}
}

// Lists are sent in pages, with working links to the neighboring ones.
func TestListsLinkToTheirPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.Issue("Busy")
	for n := range 7 {
		_, err := w.Owner.Comment(repo, i.Number, strconv.Itoa(n))
		check(t, err)
	}
	list := fmt.Sprintf("/api/v3/repos/octo/calc/issues/%d/comments", i.Number)
	for query, want := range map[string]struct {
		bodies, rels string
	}{
		"":                     {"0 1 2 3 4 5 6", ""},
		"?per_page=3":          {"0 1 2", "next=2 last=3"},
		"?per_page=3&page=2":   {"3 4 5", "first=1 prev=1 next=3 last=3"},
		"?per_page=3&page=3":   {"6", "first=1 prev=2"},
		"?per_page=3&page=9":   {"", "first=1 prev=8"},
		"?per_page=7":          {"0 1 2 3 4 5 6", ""},
		"?per_page=1000":       {"0 1 2 3 4 5 6", ""},
		"?per_page=-1&page=no": {"0 1 2 3 4 5 6", ""},
		"?per_page=4":          {"0 1 2 3", "next=2 last=2"},
	} {
		resp, body := w.fetch(t, http.MethodGet, list+query, "alice")
		bodies, rels := bodiesOf(t, body), relsOf(t, w.URL+list, resp.Header.Get("Link"))
		if diff := cmp.Diff(want.bodies+"|"+want.rels, bodies+"|"+rels); diff != "" {
			t.Errorf("page of %q (-want +got):\n%s", query, diff)
		}
	}
	// Following the links visits every element once.
	var all []string
	for next, n := list+"?per_page=3", 0; next != "" && n < 10; n++ {
		resp, body := w.fetch(t, http.MethodGet, next, "alice")
		all = append(all, bodiesOf(t, body))
		m := regexp.MustCompile(`<` + regexp.QuoteMeta(w.URL) + `([^>]+)>; rel="next"`).FindStringSubmatch(resp.Header.Get("Link"))
		next = ""
		if m != nil {
			next = m[1]
		}
	}
	if got := strings.Join(all, " "); got != "0 1 2 3 4 5 6" {
		t.Errorf("following the links: got %q", got)
	}
}

func bodiesOf(t *testing.T, body string) string {
	t.Helper()
	var list []struct{ Body string }
	check(t, json.Unmarshal([]byte(body), &list))
	var out []string
	for _, c := range list {
		out = append(out, c.Body)
	}
	return strings.Join(out, " ")
}

// relsOf shortens a Link header to rel=page, and checks that every address is that of the list.
func relsOf(t *testing.T, list, link string) string {
	t.Helper()
	var out []string
	for part := range strings.SplitSeq(link, ", ") {
		if part == "" {
			continue
		}
		m := regexp.MustCompile(`^<([^?]+)\?(?:.*&)?page=(\d+)(?:&.*)?>; rel="([a-z]+)"$`).FindStringSubmatch(part)
		if m == nil || m[1] != list {
			t.Errorf("got link %q", part)
			continue
		}
		out = append(out, m[3]+"="+m[2])
	}
	return strings.Join(out, " ")
}

// Each caller has one hourly limit for REST and one for GraphQL, and every answer has the remaining number.
func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	began := time.Now() // this clock also determines the validity of tokens
	var later atomic.Int64
	w := newWorld(t, func(c *simgithub.Config) {
		c.RateLimit, c.AuthNow = 10, func() time.Time { return began.Add(time.Duration(later.Load())) }
	})
	ask := func(method, path, login string) string {
		resp, _ := w.fetch(t, method, path, login)
		h := resp.Header
		reset, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64)
		check(t, err)
		return fmt.Sprintf("%d %s: %s of %s left, %s used, until +%s", resp.StatusCode, h.Get("X-RateLimit-Resource"), h.Get("X-RateLimit-Remaining"),
			h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Used"), time.Unix(reset, 0).Sub(began.Truncate(time.Second)))
	}
	const one, graphql = "/api/v3/repos/octo/calc", "/api/graphql"
	got := []string{ask("GET", one, "alice"), ask("GET", one+"/nothing", "alice"), ask("POST", graphql, "alice"), ask("GET", one, "rob"), ask("GET", "/api/v3/rate_limit", "alice")}
	later.Store(int64(time.Hour))
	got = append(got, ask("GET", one, "alice"))
	want := []string{
		"200 core: 9 of 10 left, 1 used, until +1h0m0s",
		"404 core: 8 of 10 left, 2 used, until +1h0m0s",
		"200 graphql: 9 of 10 left, 1 used, until +1h0m0s",
		"200 core: 9 of 10 left, 1 used, until +1h0m0s",
		"200 core: 8 of 10 left, 2 used, until +1h0m0s",
		"200 core: 9 of 10 left, 1 used, until +2h0m0s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The simulator has the addresses of an Enterprise Server, and every address in its answers points to it: REST below
// /api/v3, GraphQL at /api/graphql, pages and git at the root.
func TestEnterpriseAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.Issue("One")
	_, body := w.fetch(t, http.MethodGet, fmt.Sprintf("/api/v3/repos/octo/calc/issues/%d", i.Number), "alice")
	_, repo := w.fetch(t, http.MethodGet, "/api/v3/repos/octo/calc", "alice")
	n := 0
	for _, m := range regexp.MustCompile(`"([a-z_]*url)":"(https?://[^"]+)"`).FindAllStringSubmatch(body+repo, -1) {
		n++
		api := strings.HasPrefix(m[2], w.URL+"/api/v3/")
		page := slices.Contains([]string{"html_url", "clone_url", "svn_url", "git_url", "avatar_url"}, m[1])
		if !strings.HasPrefix(m[2], w.URL) || api == page {
			t.Errorf("got %s = %s", m[1], m[2])
		}
	}
	if n < 50 {
		t.Errorf("checked only %d addresses", n)
	}
	for path, want := range map[string]int{
		"/api/v3/meta": http.StatusOK, "/api/uploads/repos/octo/calc/releases/1/assets": http.StatusNotFound, "/meta": http.StatusNotFound,
	} {
		if resp, _ := w.fetch(t, http.MethodGet, path, "alice"); resp.StatusCode != want {
			t.Errorf("%s: got %s, want %d", path, resp.Status, want)
		}
	}
}
