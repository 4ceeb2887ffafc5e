package forge

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/state"
)

// use is one call under way: its client, its context, and the maker of its errors.
type use struct {
	*call
	ctx    context.Context
	client *github.Client
}

// reads begins a call that changes nothing. name is for metrics, about says which thing it is.
func (f *Forge) reads(ctx context.Context, installation int64, name, about string) (*use, error) {
	return f.begin(ctx, &call{name: name, kind: kindRead, installation: installation}, about)
}

// writes begins a call that people see the effect of.
func (f *Forge) writes(ctx context.Context, installation int64, name, about string) (*use, error) {
	return f.begin(ctx, &call{name: name, kind: kindWrite, installation: installation, priority: priorityOf(ctx, PriorityAnswer)}, about)
}

// begin makes a use of a call. Installation 0 stands for the App itself.
func (f *Forge) begin(ctx context.Context, c *call, about string) (*use, error) {
	c.op, c.now = strings.TrimSpace(c.name+" "+about), f.cfg.Now
	u := &use{call: c, ctx: c.in(ctx), client: f.app}
	if c.installation != 0 {
		client, err := f.creator().NewInstallationClient(c.installation)
		if err != nil {
			return nil, c.wrap(fmt.Errorf("make client: %w", err))
		}
		began := f.cfg.Now()
		u.client, c.renew, c.regrant = client, f.renew, func() bool { return f.regrant(began) }
	}
	return u, nil
}

// get fetches one page of path (relative to the REST address) into out and returns the next page's
// number, 0 at the end.
func (u *use) get(path string, out any) (next int, err error) {
	req, err := u.client.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return 0, fmt.Errorf("make request: %w", err)
	}
	resp, err := u.client.Do(u.ctx, req, out)
	if err != nil {
		return 0, err
	}
	return resp.NextPage, nil
}

// maxPages bounds every loop over pages: 100 × 100 things are more than any issue has.
const maxPages = 100

// pages calls one with page numbers until it returns 0 as the next one.
func pages(one func(page int) (next int, err error)) error {
	page := 1
	for range maxPages {
		next, err := one(page)
		if err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		page = next
	}
	return nil
}

// all gathers a list of all pages that go-github's method one returns.
func all[T any](one func(o github.ListOptions) ([]T, *github.Response, error)) ([]T, error) {
	var list []T
	err := pages(func(page int) (int, error) {
		part, resp, err := one(github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return 0, err
		}
		list = append(list, part...)
		return resp.NextPage, nil
	})
	return list, err
}

// person maps an account; nil is the ghost of a deleted one.
func person(u *github.User) state.Person {
	if u == nil {
		return state.Person{Login: "ghost"}
	}
	return state.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}
