package browser

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/demo"
)

// crawl checks pages and all pages that they link to: one of each shape, and all that differ by their history.
type crawl struct {
	b     *tab
	hosts []string // only pages of this server are visited
	queue []string
	known map[string]int // visits by shape
	pages []string       // the shapes that were checked
}

// shapes maps all pages that differ only in their subject to the same path.
var shapes = []struct {
	find *regexp.Regexp
	put  string
	most int // to be checked
}{
	{regexp.MustCompile(`^/acme/slug/(issues|pull)/\d+$`), "/acme/slug/$1/N", 4},
	{regexp.MustCompile(`^/tasks/acme/slug/\d+$`), "/tasks/acme/slug/N", 8},
	{regexp.MustCompile(`^/tasks/acme/slug/\d+/summary\.json$`), "/tasks/acme/slug/N/summary.json", 1},
	{regexp.MustCompile(`^/tasks/acme/slug/\d+/runs/\d+$`), "/tasks/acme/slug/N/runs/N", 2},
	{regexp.MustCompile(`^/tasks/acme/slug/\d+/runs/\d+/at/\d+$`), "/tasks/acme/slug/N/runs/N/at/N", 1},
	{regexp.MustCompile(`^/tasks/acme/slug/\d+/runs/\d+/raw$`), "/tasks/acme/slug/N/runs/N/raw", 1},
	{regexp.MustCompile(`^/acme/slug/pull/\d+/(\w+)$`), "/acme/slug/pull/N/$1", 1},
	{regexp.MustCompile(`^/acme/slug/(commit|tree|blob|runs)/.*$`), "/acme/slug/$1/X", 1},
	{regexp.MustCompile(`^/(ada|grace|eve|acme|errand-bot|errand\[bot\])$`), "/LOGIN", 1},
}

// plain matches pages that are not HTML; they only have to answer.
var plain = regexp.MustCompile(`^/(status\.json|vms\.json|metrics)$|/summary\.json$|/raw(/|$)|/at/\d+$`)

func shape(path string) (name string, most int) {
	for _, s := range shapes {
		if s.find.MatchString(path) {
			return s.find.ReplaceAllString(path, s.put), s.most
		}
	}
	return path, 1
}

// run checks all pages that can be reached from a page.
func (c *crawl) run(starts ...string) {
	c.b.t.Helper()
	c.known = map[string]int{}
	for _, s := range starts {
		u, err := url.Parse(s)
		check(c.b.t, err)
		c.hosts = append(c.hosts, u.Host)
		c.add(s)
	}
	for len(c.queue) > 0 {
		next := c.queue[0]
		c.queue = c.queue[1:]
		c.visit(next)
	}
	slices.Sort(c.pages)
}

// add queues an address unless enough of its shape were queued.
func (c *crawl) add(address string) {
	u, err := url.Parse(address)
	if err != nil || !slices.Contains(c.hosts, u.Host) {
		return
	}
	u.Fragment = ""
	name, most := shape(u.Path)
	for key := range u.Query() {
		name += "?" + key
	}
	key := u.Host + name
	if c.known[key] >= most || c.known[u.String()] > 0 {
		return
	}
	c.known[key]++
	c.known[u.String()]++
	c.queue = append(c.queue, u.String())
	c.pages = append(c.pages, name)
}

func (c *crawl) visit(address string) {
	c.b.t.Helper()
	u, err := url.Parse(address)
	check(c.b.t, err)
	if plain.MatchString(u.Path) {
		c.fetch(address)
		return
	}
	c.b.open(address, 200)
	for _, link := range must[[]string](c.b, "[...document.querySelectorAll('a[href]')].map((a) => a.href)") {
		c.add(link)
	}
	name, _ := shape(u.Path)
	c.b.judge("page" + strings.ReplaceAll(name, "/", "_") + "-" + lastOf(u.Path))
}

// fetch requests an address that is not HTML, as a program does, and expects it to answer.
func (c *crawl) fetch(address string) {
	c.b.t.Helper()
	req, err := http.NewRequestWithContext(c.b.ctx, http.MethodGet, address, nil)
	check(c.b.t, err)
	req.Header.Set("Authorization", "Bearer "+demo.AdminToken)
	resp, err := webtest.Client().Do(req)
	check(c.b.t, err)
	check(c.b.t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		c.b.t.Errorf("%s answered %s, want 200", address, resp.Status)
	}
}

func lastOf(path string) string { return path[strings.LastIndex(path, "/")+1:] }
