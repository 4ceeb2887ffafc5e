package e2e

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rogpeppe/go-internal/testscript"
)

// browser is the browser of a person, who is known to the simulated GitHub.
type browser struct {
	s      *story
	client http.Client
}

// browserOf returns the browser of a person, which keeps its cookies during the story.
func browserOf(ts *testscript.TestScript, person string) *browser {
	s := of(ts)
	if b := s.browsers[person]; b != nil {
		return b
	}
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	github, err := url.Parse(s.w.GitHub.BaseURL())
	ts.Check(err)
	jar.SetCookies(github, []*http.Cookie{{Name: "simgithub_as", Value: person}}) // instead of a login there
	b := &browser{s: s, client: http.Client{Transport: webtest.Transport(), Jar: jar, Timeout: 30 * time.Second}}
	s.browsers[person] = b
	return b
}

// request sends a form, or a GET without one, and follows redirects, also to GitHub and back.
func (b *browser) request(address string, form url.Values) (status int, body string, err error) {
	method, text := http.MethodGet, ""
	if form != nil {
		method, text = http.MethodPost, form.Encode()
	}
	req, err := http.NewRequest(method, address, strings.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Accept", "text/html")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

var (
	signInLink = regexp.MustCompile(`href="([^"]*/login/github[^"]*)"`)
	hidden     = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// fields returns the hidden fields of the first form that contains a text.
func fields(page, text string) url.Values {
	for form := range strings.SplitSeq(page, "<form") {
		if strings.Contains(form, text) {
			v := url.Values{}
			for _, m := range hidden.FindAllStringSubmatch(form, -1) {
				v.Set(m[1], html.UnescapeString(m[2]))
			}
			return v
		}
	}
	return nil
}

// open opens a page of errand. If errand asks for it, the person signs in with GitHub, and authorizes errand there.
func (b *browser) open(path string) (int, string, error) {
	status, body, err := b.request(b.s.w.URL+path, nil)
	if link := signInLink.FindStringSubmatch(body); err == nil && status == http.StatusUnauthorized && link != nil {
		status, body, err = b.request(html.UnescapeString(link[1]), nil)
	}
	if form := fields(body, `value="authorize"`); err == nil && form != nil {
		status, body, err = b.request(b.s.w.GitHub.BaseURL()+"/login/oauth/authorize", form)
	}
	return status, body, err
}

// visit is visit PERSON PATH: the person opens a page of errand, and signs in if necessary. It prints the status and the page.
func visit(ts *testscript.TestScript, neg bool, args []string) {
	status, body, err := browserOf(ts, args[0]).open(args[1])
	printed(ts, neg, args, status, body, err)
}

// press is press PERSON PATH [KEY=VALUE …]: the person sends a form of errand's pages.
func press(ts *testscript.TestScript, neg bool, args []string) {
	b := browserOf(ts, args[0])
	_, page, err := b.open("/status")
	ts.Check(err)
	form := fields(page, `action="/logout"`)
	if form == nil {
		form = url.Values{}
	}
	for _, a := range args[2:] {
		k, v, _ := strings.Cut(a, "=")
		form.Set(k, v)
	}
	status, body, err := b.request(b.s.w.URL+args[1], form)
	printed(ts, neg, args, status, body, err)
}

func printed(ts *testscript.TestScript, neg bool, args []string, status int, body string, err error) {
	ts.Check(err)
	_, _ = fmt.Fprintf(ts.Stdout(), "%d\n%s\n", status, body)
	if (status == http.StatusOK) == neg {
		ts.Fatalf("%v: %d %s", args, status, body)
	}
}

// revoke is revoke PERSON: the person revokes errand's authorization on GitHub.
func revoke(ts *testscript.TestScript, neg bool, args []string) {
	of(ts).w.GitHub.RevokeAuthorization(args[0])
}
