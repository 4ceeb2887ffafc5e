package simgithub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// full returns the name of the repository in the path.
func (c *call) full() string { return c.vars["owner"] + "/" + c.vars["repo"] }

// repository returns the repository in the path.
func (c *call) repository() (*Repo, error) { return c.repo(c.full()) }

// number returns a number in the path, or -1, which leads to a 404, if it is not a number.
func (c *call) number(name string) int {
	n, err := strconv.Atoi(c.vars[name])
	if err != nil {
		return -1
	}
	return n
}

func (c *call) id(name string) int64 { return int64(c.number(name)) }

// theIssue returns the issue in the path.
func (c *call) theIssue() (*Issue, error) {
	number := c.number("number")
	if err := c.left(number); err != nil {
		return nil, err
	}
	return c.issue(c.full(), number)
}

// thePull returns the pull request in the path.
func (c *call) thePull() (*Pull, error) { return c.pull(c.full(), c.number("number")) }

// decode decodes the body, which may be empty.
func (c *call) decode(into any) error {
	if len(strings.TrimSpace(string(c.body))) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.body, into); err != nil {
		return &Error{Status: http.StatusBadRequest, Message: "Problems parsing JSON"}
	}
	return nil
}

// created sets the status 201.
func (c *call) created(v any) (any, error) {
	c.status = http.StatusCreated
	return v, nil
}

func (c *call) query(name string) string { return c.r.URL.Query().Get(name) }

// queryTime returns a time in the query, or the zero time if there is none.
func (c *call) queryTime(name string) time.Time {
	t, err := time.Parse(time.RFC3339, c.query(name))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// page returns the requested page of a list and sets the Link header.
func page[T any](c *call, list []T) []T {
	per, n := pageSize(c), 1
	if v, err := strconv.Atoi(c.query("page")); err == nil && v > 0 {
		n = v
	}
	last := max(1, (len(list)+per-1)/per)
	var links []string
	link := func(to int, rel string) {
		u := *c.r.URL
		q := u.Query()
		q.Set("page", strconv.Itoa(to))
		q.Set("per_page", strconv.Itoa(per))
		u.RawQuery = q.Encode()
		links = append(links, fmt.Sprintf(`<%s%s>; rel="%s"`, c.s.base, u.RequestURI(), rel))
	}
	if n > 1 {
		link(1, "first")
		link(n-1, "prev")
	}
	if n < last {
		link(n+1, "next")
		link(last, "last")
	}
	if len(links) > 0 {
		c.header.Set("Link", strings.Join(links, ", "))
	}
	from, to := min((n-1)*per, len(list)), min(n*per, len(list))
	return list[from:to]
}

func pageSize(c *call) int {
	per, err := strconv.Atoi(c.query("per_page"))
	if err != nil || per < 1 {
		return 30
	}
	return min(per, 100)
}

// each encodes the elements of a list. An empty list is [], not null.
func each[T any](list []T, f func(T) obj) []any {
	out := make([]any, 0, len(list))
	for _, v := range list {
		out = append(out, f(v))
	}
	return out
}

// bucket counts the requests of one caller in an hour.
type bucket struct {
	used  int
	reset time.Time
}

// spend counts a request, unless it is free, and sets the headers of the rate limit.
func (q quota) spend(resource string, free bool, h http.Header) error {
	b := q.bucket(resource)
	over := b.used >= q.x.s.cfg.RateLimit
	if !free && !over {
		b.used++
	}
	b.write(h, q.x.s.cfg.RateLimit, resource)
	if over && !free {
		return &Error{Status: http.StatusForbidden, Message: "API rate limit exceeded for " + q.x.login() + ".",
			DocURL: "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}
	}
	return nil
}

// refund reverts spend: answers of "not modified" do not count.
func (q quota) refund(resource string, h http.Header) {
	b := q.bucket(resource)
	b.used = max(0, b.used-1)
	b.write(h, q.x.s.cfg.RateLimit, resource)
}

func (b *bucket) write(h http.Header, limit int, resource string) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(limit-b.used))
	h.Set("X-RateLimit-Used", strconv.Itoa(b.used))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(b.reset.Unix(), 10))
	h.Set("X-RateLimit-Resource", resource)
}

// caller returns the name by which requests are counted.
func (q quota) caller() string {
	switch {
	case q.x.viaApp():
		return "installation " + itoa(q.x.tok.install.ID)
	case q.x.jwt:
		return "app"
	case q.x.by != nil:
		return q.x.by.Login
	default:
		return "anonymous"
	}
}

// throttle returns an error if more than Config.ContentRate issues, comments and pull requests are created in a minute.
func (q quota) throttle(method, pattern string) error {
	limit := q.x.s.cfg.ContentRate
	if limit == 0 || method != http.MethodPost || !strings.Contains(pattern, "/issues") && !strings.Contains(pattern, "/pulls") {
		return nil
	}
	now := q.x.s.cfg.AuthNow()
	recent := slices.DeleteFunc(q.x.s.made[q.caller()], func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(recent) >= limit {
		wait := recent[0].Add(time.Minute).Sub(now)
		return &Error{
			Status:  http.StatusForbidden,
			Message: "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry your request again later.",
			Header:  http.Header{"Retry-After": {strconv.Itoa(int(wait/time.Second) + 1)}},
			DocURL:  "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
		}
	}
	q.x.s.made[q.caller()] = append(recent, now)
	return nil
}

func (q quota) bucket(resource string) *bucket {
	key := resource + " " + q.caller()
	now := q.x.s.cfg.AuthNow()
	b, ok := q.x.s.limits[key]
	if !ok || !now.Before(b.reset) {
		b = &bucket{reset: now.Add(time.Hour)}
		q.x.s.limits[key] = b
	}
	return b
}
