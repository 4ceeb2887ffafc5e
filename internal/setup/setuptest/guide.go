package setuptest

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/errand-bot/errand/internal/clock"
)

// Guide plays the operator of `errand setup --web` by its plain forms.
type Guide struct {
	*Browser

	Address string
	// Seen is the text of all pages so far.
	Seen strings.Builder
}

// NewGuide opens the page of a setup.
func NewGuide(t testing.TB, address string) *Guide {
	t.Helper()
	if address == "" {
		t.Fatal("the setup has no page")
	}
	return &Guide{Browser: NewBrowser(t), Address: address}
}

// Await opens the page until it has a text. A page that leads elsewhere when it changes is not waited for.
func (g *Guide) Await(ctx context.Context, text string) Page {
	g.t.Helper()
	ctx, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	for {
		p := g.Get(g.Address)
		if strings.Contains(html.UnescapeString(p.Text), text) {
			g.Seen.WriteString(p.Text)
			return p
		}
		if clock.Sleep(ctx, 10*time.Millisecond) != nil {
			g.t.Fatalf("the page lacks %q:\n%s", text, p.Body())
		}
	}
}

// Asked waits until the page asks a question, and returns the page.
func (g *Guide) Asked(ctx context.Context, key string) Page {
	g.t.Helper()
	return g.Await(ctx, ` name="`+key+`"`)
}

// Send fills in the form of a page, by pairs of names and values, presses a button of it, and returns the page that follows.
func (g *Guide) Send(p Page, button string, pairs ...string) Page {
	g.t.Helper()
	form := p.Guide(g.t)
	for i := 0; i < len(pairs); i += 2 {
		if !form.Has(pairs[i]) {
			g.t.Fatalf("the page does not ask for %s:\n%s", pairs[i], p.Body())
		}
		form.Set(pairs[i], pairs[i+1])
	}
	form.Set("do", button)
	next := g.Post(g.Address, form)
	if next.Location != "" {
		at, err := url.Parse(g.Address)
		if err == nil {
			at, err = at.Parse(next.Location)
		}
		if err != nil {
			g.t.Fatal(err)
		}
		next = g.Get(at.String())
	}
	g.Seen.WriteString(next.Text)
	return next
}

// Body returns a page without its style.
func (p Page) Body() string {
	_, body, _ := strings.Cut(p.Text, "<body>")
	return body
}

// Guide returns the fields of the form that leads through a setup, with their values.
func (p Page) Guide(t testing.TB) url.Values {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(p.Text))
	if err != nil {
		t.Fatal(err)
	}
	fields := url.Values{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.DataAtom != atom.Form || attribute(n, "action") != "./" {
			continue
		}
		for f := range n.Descendants() {
			switch {
			case f.Type != html.ElementNode:
			case f.DataAtom == atom.Input:
				fields.Set(attribute(f, "name"), attribute(f, "value"))
			case f.DataAtom == atom.Select:
				fields.Set(attribute(f, "name"), selected(f))
			}
		}
	}
	if !fields.Has("id") {
		t.Fatalf("%s (status %d) has no form:\n%s", p.URL, p.Status, p.Body())
	}
	return fields
}

func attribute(n *html.Node, key string) string {
	if i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key }); i >= 0 {
		return n.Attr[i].Val
	}
	return ""
}

// selected returns the chosen entry of a list.
func selected(list *html.Node) string {
	for o := range list.Descendants() {
		if o.DataAtom == atom.Option && slices.ContainsFunc(o.Attr, func(a html.Attribute) bool { return a.Key == "selected" }) {
			return o.FirstChild.Data
		}
	}
	return ""
}
