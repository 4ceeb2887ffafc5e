package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/errand-bot/errand/internal/forge"
	forgeclient "github.com/errand-bot/errand/internal/forge/client"
)

// entry is one request to GitHub.
type entry struct {
	purpose forge.Purpose // forGit for requests of a VM through the tether
	kind    string        // without names
}

// forGit is the purpose of requests of git's protocol, which are not subject to the limits of GitHub's API.
const forGit forge.Purpose = "git"

// ledger holds all requests to GitHub in the order in which they were sent.
type ledger struct {
	mu    sync.Mutex
	order []entry
}

// countRequests counts all requests that pass through next.
func (l *ledger) countRequests(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		kind, err := kindOf(req)
		if err != nil {
			return nil, err
		}
		e := entry{forgeclient.PurposeOf(req.Context()), kind}
		if strings.HasPrefix(kind, "git ") {
			e.purpose = forGit
		}
		l.mu.Lock()
		l.order = append(l.order, e)
		l.mu.Unlock()
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// list returns the requests so far.
func (l *ledger) list() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.order)
}

// counts returns the number of requests per kind for a purpose, and their sum.
func counts(list []entry, p forge.Purpose) (by map[string]int, sum int) {
	by = map[string]int{}
	for _, e := range list {
		if e.purpose == p {
			by[e.kind]++
			sum++
		}
	}
	return by, sum
}

// table prints counts, the most frequent first.
func table(counts map[string]int) string {
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "%4d  %s\n", counts[k], k)
	}
	return b.String()
}

// The patterns replace names in an address.
var (
	repoName = regexp.MustCompile(`^/repos/[^/]+/[^/]+`)
	sha      = regexp.MustCompile(`/[0-9a-f]{40}\b`)
	number   = regexp.MustCompile(`/\d+`)
	users    = regexp.MustCompile(`/(collaborators|users)/[^/]+`)
	refs     = regexp.MustCompile(`/(heads|contents)/.*`)
	firstOf  = regexp.MustCompile(`^\s*(query|mutation)[^{]*\{\s*(\w+)`)
)

// kindOf returns a request's kind, without names: `GET /repos/…/issues/N`, `graphql: nodes`.
func kindOf(req *http.Request) (string, error) {
	path := req.URL.Path
	switch {
	case strings.Contains(path, ".git/"):
		return "git " + path[strings.Index(path, ".git/")+5:], nil
	case strings.HasSuffix(path, "/graphql"):
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return "", err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		return "graphql " + graphQLKind(string(body)), nil
	}
	path = strings.TrimPrefix(path, "/api/v3")
	path = repoName.ReplaceAllString(path, "")
	path = refs.ReplaceAllString(path, "/$1/…")
	path = users.ReplaceAllString(path, "/$1/…")
	path = sha.ReplaceAllString(path, "/SHA")
	path = number.ReplaceAllString(path, "/N")
	return req.Method + " " + path, nil
}

// graphQLKind returns the kind of a query by its beginning.
func graphQLKind(body string) string {
	body = strings.ReplaceAll(strings.TrimPrefix(body, `{"query":"`), `\n`, "\n")
	m := firstOf.FindStringSubmatch(body)
	if m == nil {
		return "other"
	}
	kind := m[1] + " " + m[2]
	for mark, what := range map[string]string{"reviewThreads": "review threads", "updateRefs": "branch", "minimizeComment": "fold"} {
		if strings.Contains(body, mark) {
			return kind + " (" + what + ")"
		}
	}
	return kind
}
