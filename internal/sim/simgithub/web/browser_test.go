package web_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"golang.org/x/net/html"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// browser is a person who uses the pages: it reads the forms of a page and submits them.
type browser struct {
	t    *testing.T
	base string
	hc   *http.Client
}

// browse opens the pages as a person.
func (w *world) browse(login string) *browser {
	w.T.Helper()
	jar, err := cookiejar.New(nil)
	check(w.T, err)
	b := &browser{t: w.T, base: w.URL, hc: &http.Client{Transport: webtest.Transport(), Jar: jar}}
	b.get("/")
	if p := b.submit("/", form{act: "as"}, url.Values{"login": {login}}); p.status != http.StatusOK {
		w.T.Fatalf("act as %s: %d", login, p.status)
	}
	return b
}

// page is an answer.
type page struct {
	status int
	header http.Header
	body   string
	path   string // after redirects, with its fragment
	doc    *html.Node
}

func (b *browser) read(resp *http.Response, err error) page {
	b.t.Helper()
	check(b.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	check(b.t, err)
	doc, err := html.Parse(strings.NewReader(string(body)))
	check(b.t, err)
	u := resp.Request.URL
	at := u.Path
	if u.Fragment != "" {
		at += "#" + u.Fragment
	}
	return page{resp.StatusCode, resp.Header, string(body), at, doc}
}

func (b *browser) get(path string) page {
	b.t.Helper()
	resp, err := b.hc.Get(b.base + path)
	return b.read(resp, err)
}

// post posts values with a valid token, without a form.
func (b *browser) post(path string, values url.Values) page {
	b.t.Helper()
	values.Set("csrf", b.token())
	resp, err := b.hc.PostForm(b.base+path, values)
	return b.read(resp, err)
}

func (b *browser) token() string {
	u, err := url.Parse(b.base)
	check(b.t, err)
	for _, c := range b.hc.Jar.Cookies(u) {
		if c.Name == "simgithub_csrf" {
			return c.Value
		}
	}
	b.t.Fatal("the page set no token")
	return ""
}

// form identifies a form by its act and other hidden values.
type form struct {
	act  string
	with map[string]string
}

// find returns the fields of the first matching form as a browser would send them, and their address.
func (f form) find(doc *html.Node) (fields url.Values, action string, ok bool) {
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		fields, hidden := fieldsOf(n)
		match := hidden.Get("act") == f.act
		for k, v := range f.with {
			match = match && hidden.Get(k) == v
		}
		if match {
			return fields, attr(n, "action"), true
		}
	}
	return nil, "", false
}

func fieldsOf(form *html.Node) (fields, hidden url.Values) {
	fields, hidden = url.Values{}, url.Values{}
	for n := range form.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		name := attr(n, "name")
		switch kind := attr(n, "type"); {
		case n.Data == "input" && kind == "hidden":
			fields.Add(name, attr(n, "value"))
			hidden.Add(name, attr(n, "value"))
		case n.Data == "input" && kind != "checkbox" && name != "":
			fields.Add(name, attr(n, "value"))
		case n.Data == "textarea":
			fields.Add(name, text(n))
		case n.Data == "select":
			fields.Add(name, chosen(n))
		}
	}
	return fields, hidden
}

func chosen(sel *html.Node) string {
	value, first := "", true
	for n := range sel.Descendants() {
		if n.Type != html.ElementNode || n.Data != "option" {
			continue
		}
		if _, on := attribute(n, "selected"); on || first {
			if v, has := attribute(n, "value"); has {
				value = v
			} else {
				value = text(n)
			}
		}
		first = false
	}
	return value
}

func attr(n *html.Node, name string) string { v, _ := attribute(n, name); return v }

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func text(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// submit fills a form of a page and submits it.
func (b *browser) submit(path string, f form, fill url.Values) page {
	b.t.Helper()
	fields, action, ok := f.find(b.get(path).doc)
	if !ok {
		b.t.Fatalf("%s has no form %+v", path, f)
	}
	for k, v := range fill {
		fields[k] = v
	}
	resp, err := b.hc.PostForm(b.base+action, fields)
	return b.read(resp, err)
}

// offers reports whether a page has a form.
func (b *browser) offers(path string, f form) bool {
	b.t.Helper()
	_, _, ok := f.find(b.get(path).doc)
	return ok
}

// issueNow returns an issue as the owner sees it.
func (w *world) issueNow(n int) *simgithub.Issue {
	w.T.Helper()
	i, err := w.Owner.Issue(repo, n)
	check(w.T, err)
	return i
}
