package client

import (
	"github.com/google/go-github/v66/github"
)

// MaxPages limits every loop over pages. With 100 entries each, it is more than any issue has.
const MaxPages = 100

// Pages calls one with the numbers of pages until it returns 0 as the next one.
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

// All returns the entries of all pages, each of which one reads with a method of go-github.
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
