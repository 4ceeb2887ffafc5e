package client

import (
	"github.com/google/go-github/v66/github"
)

// MaxPages bounds every loop over pages: 100 × 100 things are more than any issue has.
const MaxPages = 100

// Pages calls one with page numbers until it returns 0 as the next one.
func Pages(one func(page int) (next int, err error)) error {
	page := 1
	for range MaxPages {
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

// All gathers a list of all pages that go-github's method one returns.
func All[T any](one func(o github.ListOptions) ([]T, *github.Response, error)) ([]T, error) {
	var list []T
	err := Pages(func(page int) (int, error) {
		part, resp, err := one(github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return 0, err
		}
		list = append(list, part...)
		return resp.NextPage, nil
	})
	return list, err
}
