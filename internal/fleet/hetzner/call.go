package hetzner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
)

// An api makes requests for one deployment. All other parts of a Provider use it.
type api struct {
	cfg    Config
	client *hcloud.Client
	budget *budget
}

// request is one API call.
type request struct {
	method string
	path   string
	query  url.Values
	body   any
	// low marks a call that can wait when requests run short.
	low bool
}

const (
	perPage  = 50  // the API's maximum
	maxPages = 200 // limit well above any account's quota
)

// readRetryPauses returns the pauses before a read is retried.
func readRetryPauses() []time.Duration { return []time.Duration{200 * time.Millisecond, time.Second} }

// call makes one request and decodes its response. All API requests go through it. Known errors are converted to those
// of package fleet.
func call[T any](ctx context.Context, a *api, r request) (T, *hcloud.Response, error) {
	out, resp, err := callOnce[T](ctx, a, r)
	if r.method != http.MethodGet {
		if err != nil {
			a.cfg.Log.Warn().Str("call", r.method+" "+r.path).Err(err).Msg("Hetzner call")
		}
		return out, resp, err
	}
	for _, wait := range readRetryPauses() {
		if err == nil || !errors.Is(err, errTemporary) || ctx.Err() != nil {
			break
		}
		if a.cfg.Sleep(ctx, wait) != nil {
			break
		}
		out, resp, err = callOnce[T](ctx, a, r)
	}
	return out, resp, err
}

func callOnce[T any](ctx context.Context, a *api, r request) (T, *hcloud.Response, error) {
	var out T
	if err := a.budget.reserveRequest(r.low); err != nil {
		return out, nil, err
	}
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := a.newRequest(within, r)
	if err != nil {
		return out, nil, err
	}
	var into any
	if _, none := any(out).(nothing); !none {
		into = &out
	}
	resp, err := a.client.Do(req, into)
	if resp != nil && resp.Response != nil {
		refused := resp.StatusCode == http.StatusTooManyRequests || hcloud.IsError(err, hcloud.ErrorCodeRateLimitExceeded)
		a.budget.updateFromHeaders(resp.Header, refused)
	}
	if err != nil {
		return out, resp, translateError(err, resp, r.method != http.MethodGet)
	}
	return out, resp, nil
}

// nothing is the type of ignored responses.
type nothing struct{}

func (a *api) newRequest(ctx context.Context, r request) (*http.Request, error) {
	path := r.path
	if len(r.query) > 0 {
		path += "?" + r.query.Encode()
	}
	if r.body == nil {
		return a.client.NewRequest(ctx, r.method, path, nil)
	}
	data, err := json.Marshal(r.body)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", r.method, r.path, err)
	}
	return a.client.NewRequest(ctx, r.method, path, bytes.NewReader(data))
}

// listAll reads every page of a list. The result is complete, or an error: lists that change meanwhile are read again.
func listAll[R, T any](ctx context.Context, a *api, r request, items func(R) []T, id func(T) int64) ([]T, error) {
	var err error
	for range 3 {
		var out []T
		if out, err = listPages(ctx, a, r, items, id); !errors.Is(err, errPartial) {
			return out, err
		}
	}
	return nil, err
}

func listPages[R, T any](ctx context.Context, a *api, r request, items func(R) []T, id func(T) int64) ([]T, error) {
	var out []T
	seen := map[int64]bool{}
	for page := 1; page <= maxPages; page++ {
		query := url.Values{}
		for key, values := range r.query {
			query[key] = values
		}
		query.Set("page", strconv.Itoa(page))
		query.Set("per_page", strconv.Itoa(perPage))
		one := r
		one.query = query
		answer, resp, err := call[R](ctx, a, one)
		if err != nil {
			return nil, err
		}
		for _, item := range items(answer) {
			if !seen[id(item)] {
				seen[id(item)] = true
				out = append(out, item)
			}
		}
		meta := resp.Meta.Pagination
		switch {
		case meta == nil || meta.Page != page:
			return nil, fmt.Errorf("list %s: %w: page %d has no page number", r.path, errPartial, page)
		case meta.NextPage != 0:
			continue
		case meta.TotalEntries != 0 && meta.TotalEntries != len(out): // 0: not reported
			return nil, fmt.Errorf("list %s: %w: %d of %d", r.path, errPartial, len(out), meta.TotalEntries)
		}
		return out, nil
	}
	return nil, fmt.Errorf("list %s: %w: more than %d pages", r.path, errPartial, maxPages)
}

func formatPath(format string, ids ...any) string { return fmt.Sprintf(format, ids...) }
