package admin

import (
	"fmt"
	"net/url"
	"testing"
)

func TestPagesOfTheBoard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query       string
		first, many int
		wrong       bool
	}{
		"the first page":    {"", 0, defaultPage, false},
		"a smaller one":     {"limit=10", 0, 10, false},
		"the second":        {"offset=500", 500, defaultPage, false},
		"the last":          {"offset=1190&limit=500", 1190, 10, false},
		"beyond the end":    {"offset=5000", 0, 0, false},
		"the highest limit": {"limit=1000000", 0, 1200, false},
		"no number":         {"offset=x", 0, 0, true},
		"before the start":  {"offset=-1", 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &board{}
			for i := range 1200 {
				b.Tasks = append(b.Tasks, &card{Task: fmt.Sprint(i)})
			}
			q, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			if err := b.page(q); (err != nil) != c.wrong {
				t.Fatalf("got error %v", err)
			}
			if c.wrong {
				return
			}
			if len(b.Tasks) != c.many || c.many > 0 && b.Tasks[0].Task != fmt.Sprint(c.first) {
				t.Errorf("got %d tasks, first %+v", len(b.Tasks), b.Tasks[:min(1, len(b.Tasks))])
			}
		})
	}
}
