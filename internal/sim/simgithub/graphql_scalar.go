package simgithub

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/graph-gophers/graphql-go"
)

// dateTime is GitHub's DateTime.
type dateTime struct{ time.Time }

// ImplementsGraphQLType names the scalar.
func (dateTime) ImplementsGraphQLType(name string) bool { return name == "DateTime" }

// UnmarshalGraphQL reads an argument.
func (d *dateTime) UnmarshalGraphQL(in any) error {
	text, ok := in.(string)
	if !ok {
		return fmt.Errorf("DateTime must be a string")
	}
	t, err := time.Parse(time.RFC3339, text)
	d.Time = t
	return err
}

// MarshalJSON encodes the time in whole seconds and UTC.
func (d dateTime) MarshalJSON() ([]byte, error) { return json.Marshal(stamp(d.Time)) }

// when returns a nullable DateTime. The zero time is null.
func when(t time.Time) *dateTime {
	if t.IsZero() {
		return nil
	}
	return &dateTime{t}
}

// word is a scalar that is a plain string: URI, GitObjectID or GitRefname.
type word string

// ImplementsGraphQLType names the scalars.
func (word) ImplementsGraphQLType(name string) bool {
	return name == "URI" || name == "GitObjectID" || name == "GitRefname"
}

// UnmarshalGraphQL reads an argument.
func (w *word) UnmarshalGraphQL(in any) error {
	text, ok := in.(string)
	if !ok {
		return fmt.Errorf("must be a string")
	}
	*w = word(text)
	return nil
}

// MarshalJSON encodes a string.
func (w word) MarshalJSON() ([]byte, error) { return json.Marshal(string(w)) }

func gid(v string) graphql.ID { return graphql.ID(v) }

func i32(v int64) *int32 {
	n := int32(v)
	return &n
}

// lineNumber is null for 0.
func lineNumber(v int) *int32 {
	if v == 0 {
		return nil
	}
	return i32(int64(v))
}

func nullable(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

// paging has the arguments of a connection.
type paging struct {
	First  *int32
	After  *string
	Last   *int32
	Before *string
}

// connection is a page of a list.
type connection[T any] struct {
	list     []*T
	from, to int
	total    int
}

// connect returns a page of a list. GitHub requires first or last, with at most 100.
func connect[T any](all []*T, p paging) (*connection[T], error) {
	if p.First == nil && p.Last == nil {
		return nil, errUnprocessable("You must provide a `first` or `last` value to properly paginate the connection.")
	}
	for _, n := range []*int32{p.First, p.Last} {
		if n != nil && (*n < 0 || *n > 100) {
			return nil, errUnprocessable("Requesting %d records on the connection exceeds the `first` limit of 100 records.", *n)
		}
	}
	from, to := 0, len(all)
	if p.After != nil {
		from = min(cursorIndex(*p.After), to)
	}
	if p.Before != nil {
		to = max(from, min(to, cursorIndex(*p.Before)-1))
	}
	if p.First != nil {
		to = min(to, from+int(*p.First))
	}
	if p.Last != nil {
		from = max(from, to-int(*p.Last))
	}
	return &connection[T]{list: all[from:to], from: from, to: to, total: len(all)}, nil
}

// Cursors count elements from 1.
func cursor(n int) string {
	return base64.StdEncoding.EncodeToString([]byte("cursor:v2:" + strconv.Itoa(n)))
}

func cursorIndex(c string) int {
	b, err := base64.StdEncoding.DecodeString(c)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimPrefix(string(b), "cursor:v2:"))
	if err != nil {
		return 0
	}
	return max(0, n)
}

// Nodes are the elements of the page.
func (c *connection[T]) Nodes() *[]*T { return &c.list }

// TotalCount is the number of all elements, not only of this page.
func (c *connection[T]) TotalCount() int32 { return int32(c.total) }

// PageInfo has the cursors of the page.
func (c *connection[T]) PageInfo() *pageInfo {
	p := &pageInfo{next: c.to < c.total, prev: c.from > 0}
	if c.to > c.from {
		p.start, p.end = nullable(cursor(c.from+1)), nullable(cursor(c.to))
	}
	return p
}

type pageInfo struct {
	start, end *string
	next, prev bool
}

// StartCursor is the cursor of the first element.
func (p *pageInfo) StartCursor() *string { return p.start }

// EndCursor is the cursor of the last element.
func (p *pageInfo) EndCursor() *string { return p.end }

// HasNextPage reports whether there are later elements.
func (p *pageInfo) HasNextPage() bool { return p.next }

// HasPreviousPage reports whether there are earlier elements.
func (p *pageInfo) HasPreviousPage() bool { return p.prev }
