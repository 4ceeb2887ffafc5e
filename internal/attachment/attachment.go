// Package attachment finds the files that people attach to texts on GitHub, and downloads them.
//
// Texts come from strangers, and so do the files. A download goes only to GitHub's own hosts for attachments, also after a
// redirect, and carries no token, so files that require a session are not read. Downloads have limits on time and size, and
// the content of a file determines its type.
//
// Start here: [Client.Find] and [Client.Fetch].
package attachment

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// A Ref is the address of an attachment in a text.
type Ref struct {
	// ID identifies the attachment in all its addresses: a UUID, or "NUMBER-NAME" for a file that is not shown in the text.
	// The content behind an ID never changes. It consists of letters, digits, dots, dashes and underscores.
	ID  string
	URL string
	// Media reports that the attachment is an image or a video; only images can be read.
	Media bool
	named bool
}

// A site is a host that serves attachments, and the paths at which it does.
type site struct {
	scheme, host string // host includes the port, if any
	paths        []*regexp.Regexp
	// redirected reports that addresses there occur only in redirects. named reports that they only name attachments, which
	// are downloaded from elsewhere.
	redirected, named bool
}

// A Client finds and downloads the attachments of one GitHub server. It is safe for concurrent use.
type Client struct {
	sites   []site
	http    *http.Client
	timeout time.Duration // of one download
}

// New returns a Client for the GitHub server at a web address, such as https://github.com. Another server than github.com
// serves attachments itself, or on its subdomain media. A nil transport is the default one.
func New(web string, transport http.RoundTripper) (*Client, error) {
	u, err := url.Parse(web)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("address of GitHub %q: want https://HOST", web)
	}
	c := &Client{sites: sitesOf(u), timeout: 20 * time.Second}
	c.http = &http.Client{Transport: transport, CheckRedirect: c.checkRedirect}
	return c, nil
}

func sitesOf(web *url.URL) []site {
	const uuid = `([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`
	repository := `[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}`
	media := regexp.MustCompile(`^/(?:user-attachments/assets|` + repository + `/assets/[0-9]{1,14}|storage/user/[0-9]{1,14}/files)/` + uuid + `$`)
	file := regexp.MustCompile(`^/(?:user-attachments|` + repository + `)/files/([0-9]{1,14})/([^/]{1,200})$`)
	own := regexp.MustCompile(`^/user/[0-9]{1,14}/files/` + uuid + `$`)
	signed := regexp.MustCompile(`^/[0-9]{1,14}/[0-9]{1,14}-` + uuid + `(?:\.[a-z0-9]{2,5})?$`)
	host := strings.ToLower(web.Host)
	sites := []site{{scheme: web.Scheme, host: host, paths: []*regexp.Regexp{media, file}}}
	if host != "github.com" {
		return append(sites,
			site{scheme: web.Scheme, host: "media." + host, paths: []*regexp.Regexp{own}},
			site{scheme: "https", host: "github.com", paths: []*regexp.Regexp{media}, named: true}, // as package trust writes it
		)
	}
	bucket := regexp.MustCompile(`^/`)
	return append(sites,
		site{scheme: "https", host: "user-images.githubusercontent.com", paths: []*regexp.Regexp{signed}},
		site{scheme: "https", host: "private-user-images.githubusercontent.com", paths: []*regexp.Regexp{signed}},
		site{scheme: "https", host: "objects.githubusercontent.com", redirected: true,
			paths: []*regexp.Regexp{regexp.MustCompile(`^/github-production-(?:repository-file|user-asset)-[0-9a-f]{6}/`)}},
		site{scheme: "https", host: "github-production-user-asset-6210df.s3.amazonaws.com", redirected: true, paths: []*regexp.Regexp{bucket}},
		site{scheme: "https", host: "github-production-repository-file-5c1aeb.s3.amazonaws.com", redirected: true, paths: []*regexp.Regexp{bucket}},
	)
}

// match returns the site that serves an address, and the parts of its path; nil if there is none.
func (c *Client) match(u *url.URL) (*site, []string) {
	if u.User != nil || u.Opaque != "" {
		return nil, nil
	}
	for i := range c.sites {
		s := &c.sites[i]
		if u.Scheme != s.scheme || !strings.EqualFold(u.Host, s.host) {
			continue
		}
		for _, re := range s.paths {
			if m := re.FindStringSubmatch(u.Path); m != nil {
				return s, m
			}
		}
	}
	return nil, nil
}

// Limits of one text.
const (
	maxAddresses = 2000 // that are looked at
	maxRefs      = 100  // that are returned
	maxAddress   = 8192 // characters of an address
)

// address matches possible addresses in Markdown or HTML.
var address = regexp.MustCompile("https?://[^\\s\"'<>()\\[\\]{}\\\\^|`]+")

// Find returns the attachments in a text in Markdown, or in HTML without its entities, in the order of their first appearance: one for each ID. Of
// several addresses it returns the first one that is signed, or else the first.
func (c *Client) Find(text string) []Ref {
	var refs []Ref
	at := map[string]int{}
	for _, found := range address.FindAllString(text, maxAddresses) {
		ref, ok := c.parse(strings.TrimRight(found, ".,;:!?*_~"))
		if !ok {
			continue
		}
		i, known := at[ref.ID]
		switch {
		case !known && len(refs) < maxRefs:
			at[ref.ID] = len(refs)
			refs = append(refs, ref)
		case known && rank(ref) > rank(refs[i]):
			refs[i] = ref
		}
	}
	return refs
}

// rank orders the addresses of one attachment: signed ones are best.
func rank(r Ref) int {
	switch {
	case r.named:
		return 0
	case strings.Contains(r.URL, "?"):
		return 2
	}
	return 1
}

func (c *Client) parse(address string) (Ref, bool) {
	if len(address) > maxAddress {
		return Ref{}, false
	}
	u, err := url.Parse(address)
	if err != nil {
		return Ref{}, false
	}
	s, parts := c.match(u)
	if s == nil || s.redirected {
		return Ref{}, false
	}
	if len(parts) == 3 {
		return Ref{ID: parts[1] + "-" + fileName(parts[2]), URL: address}, true
	}
	return Ref{ID: parts[1], URL: address, Media: true, named: s.named}, true
}

// maxName limits a file's name in characters.
const maxName = 80

var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// fileName makes a file's name safe. It keeps the end, which tells the kind of the file.
func fileName(name string) string {
	name = unsafeInName.ReplaceAllString(name, "_")
	return name[max(0, len(name)-maxName):]
}
