package kvtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/errand-bot/errand/state/kv"
)

func testReads(t *testing.T, db kv.DB) {
	diff(t, "missing key", "-", get(t, db, "a"))
	put(t, db, "a", "1", "empty", "")
	diff(t, "put key", "1", get(t, db, "a"))
	diff(t, "empty value", "", get(t, db, "empty"))
	diff(t, "key that is a prefix of another", "-", get(t, db, "emp"))
	put(t, db, "a", "2")
	diff(t, "overwritten key", "2", get(t, db, "a"))
	err := db.Update(testContext(t), func(tx kv.Tx) error {
		return errors.Join(tx.Delete("a"), tx.Delete("nonexistent"))
	})
	if err != nil {
		t.Errorf("delete: %v", err)
	}
	diff(t, "deleted key", "-", get(t, db, "a"))

	var kept []byte
	err = db.View(testContext(t), func(r kv.Reader) (err error) {
		kept, err = r.Get("empty")
		return err
	})
	if err != nil || kept == nil {
		t.Errorf("got an empty value as %v, error %v; want empty, not nil", kept, err)
	}
}

// testRanges depends on the order of bytes: "b/" < "b/\xff" < "b0". No neighboring key may be returned.
func testRanges(t *testing.T, db kv.DB) {
	put(t, db, "a", "0", "b", "1", "b/", "2", "b/1", "3", "b/10", "4", "b/2", "5", "b/\xff", "6", "b0", "7", "c", "8")
	cases := map[string]struct {
		prefix, from string
		limit        int
		want         []string
	}{
		"prefix":            {prefix: "b/", want: []string{"b/=2", "b/1=3", "b/10=4", "b/2=5", "b/\xff=6"}},
		"from inclusive":    {prefix: "b/", from: "b/10", want: []string{"b/10=4", "b/2=5", "b/\xff=6"}},
		"from after":        {prefix: "b/", from: kv.After("b/10"), want: []string{"b/2=5", "b/\xff=6"}},
		"from before":       {prefix: "b/", from: "a", limit: 1, want: []string{"b/=2"}},
		"from behind":       {prefix: "b/", from: "c", want: nil},
		"limit":             {prefix: "b/", limit: 2, want: []string{"b/=2", "b/1=3"}},
		"limit over":        {prefix: "b/2", limit: 9, want: []string{"b/2=5"}},
		"everything":        {limit: 3, want: []string{"a=0", "b=1", "b/=2"}},
		"nothing":           {prefix: "d", want: nil},
		"key as the prefix": {prefix: "b0", want: []string{"b0=7"}},
	}
	for name, c := range cases {
		var got []string
		err := db.View(testContext(t), func(r kv.Reader) error {
			pairs, err := r.Range(c.prefix, c.from, c.limit)
			got = flatten(pairs)
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		diff(t, name, c.want, got)
	}
}

// fill writes n numbered keys, as many per update as the limits allow.
func fill(t *testing.T, db kv.DB, n int) {
	t.Helper()
	var pairs []string
	for i := range n {
		pairs = append(pairs, numbered(i), "x")
	}
	for chunk := range slices.Chunk(pairs, 2*kv.MaxWrites) {
		put(t, db, chunk...)
	}
}

func testScan(t *testing.T, db kv.DB) {
	const n = 600 // more than a page of any backend
	fill(t, db, n)
	put(t, db, "m", "before", "o", "after")
	diff(t, "number of pairs", n, len(contents(t, db, "n/")))

	var seen []string
	err := db.Scan(testContext(t), "n/", numbered(3), 300, func(p kv.Pair) error {
		seen = append(seen, p.Key)
		return nil
	})
	if err != nil || len(seen) != 300 || seen[0] != numbered(3) || seen[299] != numbered(302) {
		t.Errorf("scan of 300 from the third: got %d pairs, error %v", len(seen), err)
	}
	seen = nil
	stopAtSecond := func(reason error) func(kv.Pair) error {
		return func(p kv.Pair) error {
			seen = append(seen, p.Key)
			if len(seen) == 2 {
				return reason
			}
			return nil
		}
	}
	err = db.Scan(testContext(t), "n/", "", 0, stopAtSecond(kv.ErrStop))
	if err != nil || len(seen) != 2 {
		t.Errorf("stopped scan: %d pairs, error %v; want 2 and none", len(seen), err)
	}
	seen = nil
	boom := errors.New("boom")
	wantErr(t, "failed scan", db.Scan(testContext(t), "n/", "", 0, stopAtSecond(boom)), boom)
}

// testScanWhileWriting deletes keys that it has seen and writes keys after its position. Neither may block, or make the
// scan skip or repeat keys.
func testScanWhileWriting(t *testing.T, db kv.DB) {
	const n = 300
	fill(t, db, n)
	var seen, want []string
	err := db.Scan(testContext(t), "n/", "", 0, func(p kv.Pair) error {
		seen = append(seen, p.Key)
		if len(seen)%50 != 0 || len(seen) > n {
			return nil
		}
		return db.Update(testContext(t), func(tx kv.Tx) error {
			return errors.Join(tx.Delete(p.Key), tx.Put("n/later", nil))
		})
	})
	if err != nil {
		t.Errorf("scan: %v", err)
	}
	for i := range n {
		want = append(want, numbered(i))
	}
	diff(t, "keys seen", append(want, "n/later"), seen)
}

// testSnapshot checks that a view does not change during reads.
func testSnapshot(t *testing.T, db kv.DB) {
	put(t, db, "a", "1")
	updated := make(chan error, 1)
	err := db.View(testContext(t), func(r kv.Reader) error {
		if _, err := r.Get("a"); err != nil { // fixes the state of this view
			return err
		}
		go func() {
			updated <- db.Update(testContext(t), func(tx kv.Tx) error { return tx.Put("a", []byte("2")) })
		}()
		if err := <-updated; err != nil {
			return err
		}
		got, err := r.Get("a")
		diff(t, "value inside the view", "1", string(got))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "value after the view", "2", get(t, db, "a"))
}
