package kvtest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/state/kv"
)

func testOwnWrites(t *testing.T, db kv.DB) {
	put(t, db, "kept", "1", "gone", "1")
	var read [3]string
	err := db.Update(testContext(t), func(tx kv.Tx) error {
		value := []byte("new")
		err := errors.Join(tx.Put("fresh", value), tx.Delete("gone"))
		copy(value, "XXX") // the value was copied
		fresh, errFresh := tx.Get("fresh")
		kept, errKept := tx.Get("kept")
		_, errGone := tx.Get("gone")
		read = [3]string{string(fresh), string(kept), "there"}
		if errors.Is(errGone, kv.ErrNotFound) {
			read[2] = "gone"
		}
		return errors.Join(err, errFresh, errKept)
	})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "reads inside", [3]string{"new", "1", "gone"}, read)
	diff(t, "contents after", []string{"fresh=new", "kept=1"}, contents(t, db, ""))
}

func testOwnRanges(t *testing.T, db kv.DB) {
	put(t, db, Declared+"a", "1", Declared+"b", "1", Declared+"c", "1", Declared+"d", "1")
	var all, two []string
	err := db.Update(testContext(t), func(tx kv.Tx) error {
		err := tx.Delete(Declared + "a")
		pairs, errTwo := tx.Range(Declared, "", 2)
		two = flatten(pairs)
		err = errors.Join(err, tx.Put(Declared+"b", []byte("2")), tx.Put(Declared+"bb", []byte("2")),
			tx.Put("elsewhere", nil), tx.Put(Declared+"e", []byte("2")))
		pairs, errAll := tx.Range(Declared, "", 0)
		all = flatten(pairs)
		return errors.Join(err, errAll, errTwo)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{Declared + "b=2", Declared + "bb=2", Declared + "c=1", Declared + "d=1", Declared + "e=2"}
	diff(t, "range over own writes", want, all)
	diff(t, "limited range behind an own deletion", []string{Declared + "b=1", Declared + "c=1"}, two)
	diff(t, "contents after", want, contents(t, db, Declared))
}

func testUndeclaredRange(t *testing.T, db kv.DB) {
	for _, prefix := range []string{"", "n/", strings.TrimSuffix(Declared, "/")} {
		err := db.Update(testContext(t), func(tx kv.Tx) error {
			_, _ = tx.Range(prefix, "", 0) // the refusal must fail the update although it is ignored here
			return tx.Put("written", nil)
		})
		wantErr(t, "range "+strconv.Quote(prefix), err, kv.ErrRange)
	}
	diff(t, "number of pairs", 0, len(contents(t, db, "")))
}

func testRollback(t *testing.T, db kv.DB) {
	put(t, db, "a", "1")
	boom := errors.New("boom")
	err := db.Update(testContext(t), func(tx kv.Tx) error {
		return errors.Join(tx.Put("a", []byte("2")), tx.Put("b", nil), boom)
	})
	wantErr(t, "failing update", err, boom)
	diff(t, "contents", []string{"a=1"}, contents(t, db, ""))
}

func testLimits(t *testing.T, db kv.DB) {
	big := bytes.Repeat([]byte("x"), kv.MaxValueBytes)
	many := func(n int, do func(tx kv.Tx, key string)) func(kv.Tx) error {
		return func(tx kv.Tx) error {
			for i := range n {
				do(tx, numbered(i))
			}
			return nil
		}
	}
	putOne := func(tx kv.Tx, key string) { _ = tx.Put(key, nil) }
	deleteOne := func(tx kv.Tx, key string) { _ = tx.Delete(key) }
	getOne := func(tx kv.Tx, key string) { _, _ = tx.Get(key) }
	same := func(tx kv.Tx, _ string) { _, _ = tx.Get("same"); _ = tx.Put("same", big) }
	putBig := func(tx kv.Tx, key string) { _ = tx.Put(key, big[:100<<10]) }
	cases := map[string]struct {
		fn   func(kv.Tx) error
		want error
	}{
		"writes":                  {many(kv.MaxWrites, putOne), nil},
		"too many puts":           {many(kv.MaxWrites+1, putOne), kv.ErrTooManyWrites},
		"too many deletes":        {many(kv.MaxWrites+1, deleteOne), kv.ErrTooManyWrites},
		"reads":                   {many(kv.MaxReads, getOne), nil},
		"too many reads":          {many(kv.MaxReads+1, getOne), kv.ErrTooManyReads},
		"one key again and again": {many(kv.MaxWrites+5, same), nil},
		"bytes":                   {many(10, putBig), nil},
		"too many bytes":          {many(11, putBig), kv.ErrTooLarge},
		"value":                   {func(tx kv.Tx) error { return tx.Put("a", big) }, nil},
		"too long value":          {func(tx kv.Tx) error { return tx.Put("a", append(big, 'x')) }, kv.ErrTooLarge},
		"empty key":               {func(tx kv.Tx) error { return tx.Put("", nil) }, kv.ErrInvalidKey},
		"key":                     {func(tx kv.Tx) error { return tx.Put(strings.Repeat("k", kv.MaxKeyBytes), nil) }, nil},
		"too long key":            {func(tx kv.Tx) error { return tx.Put(strings.Repeat("k", kv.MaxKeyBytes+1), nil) }, kv.ErrInvalidKey},
	}
	for name, c := range cases {
		before := contents(t, db, "")
		err := db.Update(testContext(t), c.fn)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got error %v, want %v", name, err, c.want)
		}
		if c.want != nil {
			diff(t, name+": contents", before, contents(t, db, ""))
		}
	}
}

// increment returns a closure that adds one to a counter.
func increment(key string) func(kv.Tx) error {
	return func(tx kv.Tx) error {
		value, err := tx.Get(key)
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		n, _ := strconv.Atoi(string(value))
		return tx.Put(key, []byte(strconv.Itoa(n+1)))
	}
}

func testCounters(t *testing.T, db kv.DB) {
	const writers, rounds = 16, 20
	inParallel(writers, func(i int) {
		for range rounds {
			if err := retry(testContext(t), db, increment("counter/"+strconv.Itoa(i%2))); err != nil {
				t.Errorf("increment: %v", err)
			}
		}
	})
	half := strconv.Itoa(writers * rounds / 2)
	diff(t, "counters", []string{"counter/0=" + half, "counter/1=" + half}, contents(t, db, ""))
}

// testIsolation moves amounts between keys: no reader may see a sum other than the whole.
func testIsolation(t *testing.T, db kv.DB) {
	const whole, movers, rounds = 100, 4, 25
	put(t, db, "bank/a", strconv.Itoa(whole), "bank/b", "0")
	inParallel(movers*2, func(i int) {
		for range rounds {
			if i%2 == 0 {
				if err := retry(testContext(t), db, move("bank/a", "bank/b", i+1)); err != nil {
					t.Errorf("move: %v", err)
				}
				continue
			}
			sum := 0
			err := db.View(testContext(t), func(r kv.Reader) error {
				a, errA := r.Get("bank/a")
				pairs, errRange := r.Range("bank/b", "", 0)
				sum = number(a) + number(pairs[0].Value)
				return errors.Join(errA, errRange)
			})
			if err != nil || sum != whole {
				t.Errorf("sum %d, error %v; want %d", sum, err, whole)
			}
		}
	})
}

func move(from, to string, amount int) func(kv.Tx) error {
	return func(tx kv.Tx) error {
		a, errA := tx.Get(from)
		b, errB := tx.Get(to)
		return errors.Join(errA, errB,
			tx.Put(from, []byte(strconv.Itoa(number(a)-amount))),
			tx.Put(to, []byte(strconv.Itoa(number(b)+amount))))
	}
}

func number(value []byte) int {
	n, _ := strconv.Atoi(string(value))
	return n
}

// retry repeats an update that conflicts with others, as callers do.
func retry(ctx context.Context, db kv.DB, fn func(kv.Tx) error) error {
	for {
		err := db.Update(ctx, fn)
		if !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
}

func inParallel(n int, do func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { do(i) })
	}
	group.Wait()
}
