package simhetzner

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	perPageDefault = 25
	perPageMax     = 50
)

type wirePagination struct {
	Page         int  `json:"page"`
	PerPage      int  `json:"per_page"`
	PreviousPage *int `json:"previous_page"`
	NextPage     *int `json:"next_page"`
	LastPage     *int `json:"last_page"`
	TotalEntries *int `json:"total_entries"`
}

type wireMeta struct {
	Pagination wirePagination `json:"pagination"`
}

// queryNumber parses a positive number in the query.
func queryNumber(c *call, name string, def int) (int, error) {
	raw := c.query.Get(name)
	if raw == "" {
		return def, nil
	}
	n, err := strconv.Atoi(raw)
	if err != nil || n < 1 {
		return 0, newFieldError(name, "has to be a positive number")
	}
	return n, nil
}

// paginate returns the requested page.
func paginate[T any](c *call, key string, all []T, wire func(T) any) (answer, error) {
	page, err := queryNumber(c, "page", 1)
	if err != nil {
		return answer{}, err
	}
	per, err := queryNumber(c, "per_page", perPageDefault)
	if err != nil {
		return answer{}, err
	}
	per = min(per, perPageMax)
	total, last := len(all), max((len(all)+per-1)/per, 1)
	p := wirePagination{Page: page, PerPage: per, LastPage: &last, TotalEntries: &total}
	if prev := page - 1; prev >= 1 {
		p.PreviousPage = &prev
	}
	if next := page + 1; next <= last {
		p.NextPage = &next
	}
	from := min((page-1)*per, total)
	list := []any{}
	for _, v := range all[from:min(from+per, total)] {
		list = append(list, wire(v))
	}
	return answer{http.StatusOK, map[string]any{key: list, "meta": wireMeta{p}}}, nil
}

// object is the interface of all listed resources.
type object interface {
	about() (id int64, name string, created time.Time, labels map[string]string)
}

// list serves a list of one kind, filtered by name, label and keep, and sorted.
func list[T object](c *call, key string, all map[int64]T, keep func(T) bool, wire func(T) any) (answer, error) {
	sel, err := parseSelector(c.query.Get("label_selector"))
	if err != nil {
		return answer{}, err
	}
	name := c.query.Get("name")
	found := []T{}
	for _, v := range all {
		id, n, _, labels := v.about()
		if c.fault.hides(id, n) {
			continue
		}
		if (name == "" || n == name) && sel.matches(labels) && (keep == nil || keep(v)) {
			found = append(found, v)
		}
	}
	if err := sortBy(found, c.query["sort"]); err != nil {
		return answer{}, err
	}
	return paginate(c, key, found, wire)
}

// sortBy sorts by the query's order, then by ID.
func sortBy[T object](all []T, by []string) error {
	slices.SortFunc(all, func(a, b T) int {
		x, _, _, _ := a.about()
		y, _, _, _ := b.about()
		return cmp.Compare(x, y)
	})
	for _, b := range slices.Backward(by) {
		field, dir, _ := strings.Cut(b, ":")
		if !slices.Contains([]string{"id", "name", "created", "status", "command", "progress", "started", "finished"}, field) ||
			!slices.Contains([]string{"", "asc", "desc"}, dir) {
			return newFieldError("sort", "%q is none", b)
		}
		slices.SortStableFunc(all, func(a, b T) int {
			n := compare(a, b, field)
			if dir == "desc" {
				return -n
			}
			return n
		})
	}
	return nil
}

func compare[T object](a, b T, field string) int {
	ai, an, at, _ := a.about()
	bi, bn, bt, _ := b.about()
	switch field {
	case "id":
		return cmp.Compare(ai, bi)
	case "name", "command":
		return cmp.Compare(an, bn)
	case "created", "started":
		return at.Compare(bt)
	}
	return 0
}

// anyOf reports whether a repeatable parameter is absent or contains the value.
func anyOf(c *call, name, value string) bool {
	want := c.query[name]
	return len(want) == 0 || slices.Contains(want, value)
}

// pathObject returns the object in a path.
func pathObject[T any](c *call, kind string, all map[int64]T) (T, error) {
	v, ok := all[c.id]
	if !ok {
		return v, notFound(kind, c.id)
	}
	return v, nil
}

// checkNameFree returns an error if another object of the kind has the name.
func checkNameFree[T object](all map[int64]T, kind, name string, self int64) error {
	for _, v := range all {
		if id, n, _, _ := v.about(); n == name && id != self {
			return newError("uniqueness_error", "%s name is already used", kind)
		}
	}
	return nil
}
