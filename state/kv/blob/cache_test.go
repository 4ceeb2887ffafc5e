package blob

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A value that was decoded before is returned unchanged, even if callers modified the results, and the cache is
// bounded.
func TestCacheReturnsUnmodifiedValues(t *testing.T) {
	t.Parallel()
	type list struct {
		Seen []string `json:"seen"`
	}
	type sum struct {
		N int64 `json:"n"`
	}
	p, err := New(NewCloner(reflect.TypeFor[list]()))
	if err != nil {
		t.Fatal(err)
	}
	first := []byte(`{"seen":["a","b"]}`)
	second := []byte(`{"seen":["c"]}`)
	for range 3 {
		for _, c := range []struct {
			data []byte
			want []string
		}{{first, []string{"a", "b"}}, {first, []string{"a", "b"}}, {second, []string{"c"}}} {
			var task list
			if err := p.Decode("list/1", c.data, &task); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, task.Seen); diff != "" {
				t.Fatalf("value (-want +got):\n%s", diff)
			}
			task.Seen[0] = "spoiled"
		}
	}
	for i := range 3 * maxEntries {
		var s sum
		if err := p.Decode(fmt.Sprintf("sum/%d", i), []byte(`{"n":5}`), &s); err != nil || s.N != 5 {
			t.Fatalf("got %+v, error %v", s, err)
		}
	}
	if n := len(p.cache.entries); n != maxEntries {
		t.Errorf("got %d cached values", n)
	}
}
