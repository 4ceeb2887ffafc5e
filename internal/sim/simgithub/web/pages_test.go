package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"golang.org/x/net/html"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// All pages are served for a repository with an issue and a pull request.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("Add subtracts")
	i := w.Pull("alice", "feature/fix", map[string]string{"dir/new.go": "package dir\n"}, "Closes #1")
	head := i.Pull.HeadSHA
	resp, err := webtest.Client().Get(w.URL + "/api/v3/repos/octo/calc") // to be listed among the calls
	check(t, err)
	check(t, resp.Body.Close())
	for path, want := range map[string]string{
		"/":                                      "octo/calc",
		"/octo":                                  "Organization|User",
		"/octo/calc":                             "Add subtracts",
		"/octo/calc/issues/new":                  "New issue",
		"/octo/calc/issues/1":                    "It is broken.",
		"/octo/calc/issues/2":                    "Closes",
		"/octo/calc/pull/2":                      "Merging",
		"/octo/calc/pull/2/commits":              "Change feature/fix",
		"/octo/calc/pull/2/files":                "dir/new.go",
		"/octo/calc/commit/" + head:              "Change feature/fix",
		"/octo/calc/tree/feature/fix":            "dir/",
		"/octo/calc/tree/feature/fix/dir":        "new.go",
		"/octo/calc/tree/" + head + "/dir":       "new.go",
		"/octo/calc/blob/feature/fix/dir/new.go": "package dir",
		"/octo/calc/issues":                      "Add subtracts",
		"/octo/calc/pulls":                       "Pull feature/fix",
		"/github-apps/errand/installations/new":  "octo/calc",
		"/_sim/people":                           "tina",
		"/_sim/deliveries":                       "issues.opened",
		"/_sim/calls":                            "/repos/",
	} {
		p := w.browse("octo").get(path)
		if p.status != http.StatusOK || !regexp.MustCompile(want).MatchString(p.body) {
			t.Errorf("%s: got %d, want %q in it", path, p.status, want)
		}
		csp := p.header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got policy %q", path, csp)
		}
		outline(t, path, p)
	}
	for _, path := range []string{
		"/nobody", "/octo/none", "/octo/calc/issues/9", "/octo/calc/issues/x", "/octo/calc/pull/1", "/octo/calc/pull/9/files", "/octo/calc/commit/123",
		"/octo/calc/tree/none", "/octo/calc/blob/main/none", "/octo/calc/blob/main/../x", "/octo/calc/runs/1", "/octo/calc/compare/main...feature/fix",
		"/octo/calc/commits/main", "/octo/calc/raw/main/README.md", "/octo/calc/tree/--output=x", "/a/b/c/d", "/_sim/deliveries?id=1",
	} {
		if p := w.browse("octo").get(path); p.status != http.StatusNotFound {
			t.Errorf("%s: got %d", path, p.status)
		}
	}
}

// outline checks a page for assistive technology: unique ids, one heading, and labels.
func outline(t *testing.T, path string, p page) {
	t.Helper()
	if !strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
		return
	}
	ids, heads := map[string]bool{}, 0
	var labels []string
	for n := range p.doc.Descendants() {
		if id := attr(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("%s: id %q twice", path, id)
			}
			ids[id] = true
		}
		switch n.Data {
		case "h1":
			if n.Parent == nil || !strings.Contains(attr(n.Parent, "class"), "md") { // texts may contain headings
				heads++
			}
		case "label":
			labels = append(labels, attr(n, "for"))
		}
	}
	if heads != 1 {
		t.Errorf("%s: got %d headings of level 1, want 1", path, heads)
	}
	for n := range p.doc.Descendants() {
		field := n.Data == "textarea" || n.Data == "select" || n.Data == "input" && !slices.Contains([]string{"hidden", "checkbox"}, attr(n, "type"))
		if field && attr(n, "aria-label") == "" && !slices.Contains(labels, attr(n, "id")) {
			t.Errorf("%s: a %s named %q has no label", path, n.Data, attr(n, "name"))
		}
	}
}

// inTalk reports whether the form for a comment is still inside the conversation.
func inTalk(doc *html.Node) bool {
	for n := range doc.Descendants() {
		if attr(n, "id") != "end" {
			continue
		}
		for up := n.Parent; up != nil; up = up.Parent {
			if attr(up, "class") == "talk" {
				return n.Parent == up
			}
		}
	}
	return false
}

// Markup in texts never becomes markup of the page.
func TestMarkupInTextsIsHarmless(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)><a href="javascript:alert(1)">x</a><form action=//evil><input name=csrf></form>` +
		`<style>body{display:none}</style><iframe src=//evil></iframe><p id="main" onclick=x>y</p><!-- secret --></div></article></section></main></body><details>` + "\n\n[z](javascript:alert(1)) {{me}}"
	const branch = "x@=+evil"
	eve := w.Sim.As("eve")
	_, err := eve.OpenIssue(repo, simgithub.NewIssue{Title: evil, Body: evil})
	check(t, err)
	_, err = eve.Comment(repo, 1, evil)
	check(t, err)
	check(t, w.Owner.AddLabels(repo, 1, `"><script>alert(2)</script>`))
	_, err = w.Owner.PushCommit(repo, simgithub.Commit{Branch: branch, Message: evil, Files: map[string]string{`"><script>.txt`: evil}})
	check(t, err)
	_, err = w.Owner.OpenPull(repo, simgithub.NewPull{Title: evil, Body: evil, Head: branch})
	check(t, err)
	_, err = w.Owner.CommentOnLine(repo, 2, simgithub.NewReviewComment{Path: `"><script>.txt`, Line: 1, Body: evil})
	check(t, err)
	b := w.browse("alice")
	for _, path := range []string{"/octo/calc", "/octo/calc/issues/1", "/octo/calc/pull/2", "/octo/calc/pull/2/files", "/octo/calc/pull/2/commits", "/octo/calc/commit/" + w.issueNow(2).Pull.HeadSHA} {
		p := b.get(path)
		if p.status != http.StatusOK {
			t.Fatalf("%s: got %d", path, p.status)
		}
		harmless(t, path, p)
		outline(t, path, p)
		if (strings.HasSuffix(path, "/issues/1") || strings.HasSuffix(path, "/pull/2")) && !inTalk(p.doc) {
			t.Errorf("%s: a text has changed the surrounding page", path)
		}
		if strings.Contains(p.body, "<!-- secret") {
			t.Errorf("%s contains an HTML comment", path)
		}
	}
}

// harmless reports elements and attributes that only the page itself may have.
func harmless(t *testing.T, path string, p page) {
	t.Helper()
	nonce := ""
	if m := regexp.MustCompile(`script-src 'nonce-([0-9a-f]+)'`).FindStringSubmatch(p.header.Get("Content-Security-Policy")); m != nil {
		nonce = m[1]
	}
	for n := range p.doc.Descendants() {
		switch n.Data {
		case "script", "style":
			if attr(n, "nonce") != nonce || nonce == "" {
				t.Errorf("%s has a foreign %s", path, n.Data)
			}
		case "iframe", "object", "embed", "base", "meta":
			if n.Data != "meta" || attr(n, "http-equiv") != "" {
				t.Errorf("%s has a foreign %s", path, n.Data)
			}
		case "form":
			if !strings.HasPrefix(attr(n, "action"), "/") || strings.HasPrefix(attr(n, "action"), "//") {
				t.Errorf("%s has a form to %s", path, attr(n, "action"))
			}
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "href" && strings.HasPrefix(strings.ToLower(a.Val), "javascript:") {
				t.Errorf("%s has %s=%q", path, a.Key, a.Val)
			}
		}
	}
}

// Forms that do not come from the pages are refused.
func TestForeignFormsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("Forms")
	b := w.browse("octo")
	for name, token := range map[string]string{"no token": "", "another token": strings.Repeat("0", 32)} {
		resp, err := b.hc.PostForm(b.base+"/octo/calc/issues/1", url.Values{"act": {"comment"}, "body": {"hi"}, "csrf": {token}})
		if p := b.read(resp, err); p.status != http.StatusForbidden || len(w.issueNow(1).Comments) != 0 {
			t.Errorf("%s: got %d", name, p.status)
		}
	}
	resp, err := webtest.Client().PostForm(b.base+"/octo/calc/issues/1", url.Values{"act": {"comment"}, "body": {"hi"}, "csrf": {b.token()}})
	if p := b.read(resp, err); p.status != http.StatusForbidden {
		t.Errorf("token without its cookie: got %d", p.status)
	}
	resp, err = webtest.Client().Get(b.base + "/")
	b.read(resp, err)
	for _, c := range resp.Cookies() {
		if c.SameSite != http.SameSiteStrictMode || !c.HttpOnly {
			t.Errorf("got cookie %s: %+v", c.Name, c)
		}
	}
	for _, back := range []string{"//evil.example", "https://evil.example", "/\\evil.example"} {
		fields := url.Values{"act": {"comment"}, "body": {"hi"}, "back": {back}}
		if p := b.post("/octo/calc/issues/1", fields); !strings.HasPrefix(p.path, "/octo/calc/issues/1#") {
			t.Errorf("redirect to %s: got %s", back, p.path)
		}
	}
	long := b.post("/octo/calc/issues/1", url.Values{"act": {"comment"}, "body": {strings.Repeat("x", 2<<20)}})
	if long.status != http.StatusBadRequest {
		t.Errorf("form of 2 MiB: got %d", long.status)
	}
}

// A page shows the text that was typed if a form is refused.
func TestRefusedTextIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("Keep")
	check(t, w.Owner.Lock(repo, 1, ""))
	p := w.browse("rob").post("/octo/calc/issues/1", url.Values{"act": {"comment"}, "body": {"A long <text> of mine"}})
	if p.status != http.StatusForbidden || !strings.Contains(alertOf(p), "A long <text> of mine") || !strings.Contains(alertOf(p), "locked") {
		t.Errorf("got %d: %s", p.status, alertOf(p))
	}
}

// Private repositories do not exist for users without access.
func TestPrivateRepositoryIsHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.Sim.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: "secret", Private: true, Files: map[string]string{"a": "a"}})
	check(t, err)
	_, err = w.Owner.OpenIssue("octo/secret", simgithub.NewIssue{Title: "Quiet"})
	check(t, err)
	rob, octo := w.browse("rob"), w.browse("octo")
	if strings.Contains(rob.get("/").body, "octo/secret") || strings.Contains(rob.get("/octo").body, "octo/secret") {
		t.Error("a list names the hidden repository")
	}
	if p := rob.get("/octo/secret/issues/1"); p.status != http.StatusNotFound || strings.Contains(p.body, "Quiet") {
		t.Errorf("got status %d", p.status)
	}
	before := rob.get("/_sim/version?path=/octo/secret/issues/1").body
	_, err = w.Owner.Comment("octo/secret", 1, "hush")
	check(t, err)
	if rob.get("/_sim/version?path=/octo/secret/issues/1").body != before {
		t.Error("the version reveals hidden content")
	}
	if p := octo.get("/octo/secret/issues/1"); p.status != http.StatusOK {
		t.Errorf("owner: got %d", p.status)
	}
}

// The version changes with everything that a page shows, and with nothing else.
func TestVersionChangesWithThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("One")
	w.Issue("Two")
	k, err := w.Owner.Comment(repo, 1, "hi")
	check(t, err)
	b := w.browse("alice")
	version := func() string { return b.get("/_sim/version?path=" + url.QueryEscape("/octo/calc/issues/1")).body }
	if p := b.get("/octo/calc/issues/1"); !strings.Contains(p.body, `data-version="`+version()+`"`) {
		t.Error("the page's version differs from the reported one")
	}
	for name, tc := range map[string]struct {
		act  func() error
		same bool
	}{
		"a reaction":     {act: func() error { return w.Owner.React(repo, k.ID, "+1") }},
		"an edit":        {act: func() error { return w.Owner.EditComment(repo, k.ID, strconv.Itoa(len(version()))+"!") }},
		"folding":        {act: func() error { return w.Owner.MinimizeComment(repo, k.ID, "spam") }},
		"a title":        {act: func() error { return w.Owner.EditIssue(repo, 1, simgithub.IssueEdit{Title: new("Uno")}) }},
		"another issue":  {act: func() error { _, err := w.Owner.Comment(repo, 2, "there"); return err }, same: true},
		"nothing at all": {act: func() error { return nil }, same: true},
	} {
		before := version()
		check(t, tc.act())
		if same := version() == before; same != tc.same {
			t.Errorf("after %s: version unchanged: %v", name, same)
		}
	}
	all := b.get("/_sim/version?path=/_sim/deliveries").body
	w.Settled()
	_, err = w.Owner.Comment(repo, 2, "more")
	check(t, err)
	w.Settled()
	if b.get("/_sim/version?path=/_sim/deliveries").body == all {
		t.Error("deliveries have the same version after another one")
	}
}

// An account can be added, given a role and acted as.
func TestPeopleCanBeAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browse("rob")
	b.submit("/_sim/people", form{act: "add"}, url.Values{"login": {"nina"}})
	b.submit("/_sim/people", form{act: "role", with: map[string]string{"login": "nina", "repo": repo}}, url.Values{"role": {"write"}})
	if got := w.Sim.As("nina").Role(repo); got != simgithub.RoleWrite {
		t.Errorf("got role %s of nina", got)
	}
	if got := w.Settled(); !slices.Contains(got, "member.added") && len(got) > 1 {
		t.Logf("sent %v", got)
	}
	b.submit("/", form{act: "as"}, url.Values{"login": {"nina"}})
	if p := b.get("/octo/calc"); !strings.Contains(p.body, "You are nina, with the role write") {
		t.Error("the pages do not act as nina")
	}
	b.submit("/_sim/people", form{act: "role", with: map[string]string{"login": "nina"}}, url.Values{"role": {"none"}})
	if got := w.Sim.As("nina").Role(repo); got != simgithub.RoleRead {
		t.Errorf("got role %s of nina in a public repository after losing the role", got)
	}
}

// A delivery can be sent again from its page.
func TestDeliveryCanBeSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Inbox.Answer(http.StatusInternalServerError)
	w.Issue("Again")
	w.Settled()
	w.Inbox.Answer(http.StatusOK)
	list := w.Sim.Deliveries()
	last := list[len(list)-1]
	b := w.browse("octo")
	id := strconv.FormatInt(last.ID, 10)
	if p := b.get("/_sim/deliveries?id=" + id); !strings.Contains(p.body, "Invalid HTTP Response: 500") || !strings.Contains(p.body, "&#34;action&#34;: &#34;opened&#34;") {
		t.Error("the delivery's page lacks its status or payload")
	}
	b.submit("/_sim/deliveries", form{act: "redeliver", with: map[string]string{"id": id}}, nil)
	if got := w.Settled(); !slices.Equal(got, []string{"issues.opened"}) {
		t.Errorf("redelivery: got webhooks %v", got)
	}
	list = w.Sim.Deliveries()
	if again := list[len(list)-1]; again.GUID != last.GUID || !again.Redelivery || again.Status != "OK" {
		t.Errorf("got second attempt %+v", again)
	}
}

// Visitors first act as the collaborator with the highest role, also if they chose an account that does not exist.
func TestDefaultActor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, cookie := range []string{"", "nobody-of-that-name", "errand[bot]"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+"/octo/calc", nil)
		check(t, err)
		if cookie != "" {
			req.AddCookie(&http.Cookie{Name: "simgithub_as", Value: url.QueryEscape(cookie)})
		}
		resp, err := webtest.Client().Do(req)
		b := &browser{t: t, base: w.URL}
		if p := b.read(resp, err); !strings.Contains(p.body, "You are alice, with the role write") {
			t.Errorf("with the cookie %q the page does not act as alice", cookie)
		}
	}
	empty := newSim(t)
	rec := httptest.NewRecorder()
	empty.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "There are no repositories") {
		t.Errorf("empty GitHub: got %d", rec.Code)
	}
}
