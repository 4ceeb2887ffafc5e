// Package setuptest plays the operator of a setup in tests: a browser that creates and installs the App by plain forms, and a
// terminal whose output tests can wait for.
//
// Start with [NewBrowser] and [Screen].
package setuptest

import (
	"bytes"
	"context"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"
)

// Browser posts the forms of the local page and of the simulator of GitHub.
type Browser struct {
	t      testing.TB
	client *http.Client
}

// NewBrowser returns a browser without cookies, which follows no redirects by itself.
func NewBrowser(t testing.TB) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Browser{t, &http.Client{
		Transport: webtest.Transport(),
		Jar:       jar, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Page is an answer that a browser got.
type Page struct {
	URL      string
	Status   int
	Location string
	Header   http.Header
	Text     string
}

// Get opens a page.
func (b *Browser) Get(address string) Page {
	b.t.Helper()
	resp, err := b.client.Get(address)
	return b.page(address, resp, err)
}

// Post posts a form.
func (b *Browser) Post(address string, form url.Values) Page {
	b.t.Helper()
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	resp, err := b.client.Do(r)
	return b.page(address, resp, err)
}

func (b *Browser) page(address string, resp *http.Response, err error) Page {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return Page{URL: address, Status: resp.StatusCode, Location: resp.Header.Get("Location"), Header: resp.Header, Text: string(text)}
}

var (
	formAction = regexp.MustCompile(`<form[^>]* method="post" action="([^".][^"]*)"`) // without the buttons of a setup's page
	formField  = regexp.MustCompile(`<input[^>]*?(?:type="hidden" )?(?:id="[^"]*" )?name="([^"]+)"[^>]*? value="([^"]*)"`)
)

// Form returns the last form of a page: its absolute address and its fields.
func (p Page) Form(t testing.TB) (action string, fields url.Values) {
	t.Helper()
	all := formAction.FindAllStringSubmatchIndex(p.Text, -1)
	if len(all) == 0 {
		t.Fatalf("%s (status %d) has no form:\n%s", p.URL, p.Status, p.Body())
	}
	last := all[len(all)-1]
	at, err := url.Parse(p.URL)
	if err == nil {
		at, err = at.Parse(html.UnescapeString(p.Text[last[2]:last[3]]))
	}
	if err != nil {
		t.Fatal(err)
	}
	fields = url.Values{}
	rest, _, _ := strings.Cut(p.Text[last[1]:], "</form>")
	for _, m := range formField.FindAllStringSubmatch(rest, -1) {
		fields.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return at.String(), fields
}

// Confirm opens the local page, posts its form to GitHub, confirms there, with another name for the App if one is given, and returns the
// address to which GitHub sends the browser.
func (b *Browser) Confirm(page string, name ...string) string {
	b.t.Helper()
	action, fields := b.Get(page).Form(b.t)
	action, fields = b.Post(action, fields).Form(b.t)
	for _, n := range name {
		fields.Set("name", n)
	}
	done := b.Post(action, fields)
	if done.Status != http.StatusSeeOther {
		b.t.Fatalf("GitHub did not create the App: %d\n%s", done.Status, done.Text)
	}
	return done.Location
}

// CreateApp creates the App, beginning on the local page, and returns the text of the last page.
func (b *Browser) CreateApp(page string) string {
	b.t.Helper()
	back := b.Get(b.Confirm(page))
	if back.Status != http.StatusOK {
		b.t.Fatalf("the local page did not accept the App: %d\n%s", back.Status, back.Text)
	}
	return back.Text
}

// Install installs the App on repositories as an account.
func (b *Browser) Install(page, login string, repos ...string) {
	b.t.Helper()
	at, err := url.Parse(page)
	if err != nil {
		b.t.Fatal(err)
	}
	b.client.Jar.SetCookies(at, []*http.Cookie{{Name: "simgithub_as", Value: login}})
	action, fields := b.Get(page).Form(b.t)
	fields["repo"] = repos
	if done := b.Post(action, fields); done.Status != http.StatusSeeOther {
		b.t.Fatalf("GitHub did not install the App: %d\n%s", done.Status, done.Text)
	}
}

// Screen is the output of a terminal. It may be written and read concurrently.
type Screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed at the next output
}

// Write adds output.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more != nil {
		close(s.more)
		s.more = nil
	}
	return s.text.Write(p)
}

// String returns all output so far.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Await waits until the output matches a pattern, and returns the first group of the match, or "" if ctx ends first.
func (s *Screen) Await(ctx context.Context, pattern *regexp.Regexp) string {
	for {
		s.mu.Lock()
		m := pattern.FindSubmatch(s.text.Bytes())
		if m != nil {
			s.mu.Unlock()
			return string(m[1])
		}
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-more:
		case <-ctx.Done():
			return ""
		}
	}
}

// NextPage matches the address of the local page or of the installation in the output, whichever comes first, and InstallPage only the
// latter.
var (
	NextPage    = regexp.MustCompile(`\n  (http\S+(?:/[0-9a-f]{64}/|/installations/new))\n`)
	InstallPage = regexp.MustCompile(`\n  (http\S+/installations/new)\n`)
)

// Play creates and installs the App when a setup asks for it, until ctx ends.
func Play(ctx context.Context, t testing.TB, s *Screen, login string, repos ...string) {
	t.Helper()
	if page := s.Await(ctx, NextPage); page != "" && !InstallPage.MatchString("\n  "+page+"\n") {
		NewBrowser(t).CreateApp(page)
	}
	if page := s.Await(ctx, InstallPage); page != "" {
		NewBrowser(t).Install(page, login, repos...)
	}
}

// Serve serves a handler on this host until the test ends, and returns its address.
func Serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}
