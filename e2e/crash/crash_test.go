package crash

import (
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecord(t *testing.T) {
	for range 2 {
		s := newScript()
		begun := time.Now()
		o, err := live(t.Context(), t, s)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("took %s", time.Since(begun))
		t.Log(cmp.Diff(outcome{}, o))
		var ops []string
		sum := 0
		for op, n := range s.seen() {
			ops = append(ops, op)
			sum += n
		}
		sort.Strings(ops)
		for _, op := range ops {
			t.Logf("%3d %s", s.seen()[op], op)
		}
		t.Logf("%3d in all", sum)
	}
}
