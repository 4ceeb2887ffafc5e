package kvtest

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/state/kv"
)

// testPanic checks that a panic surfaces in its caller and leaves the database usable.
func testPanic(t *testing.T, db kv.DB) {
	var recovered any
	func() {
		defer func() { recovered = recover() }()
		_ = db.Update(testContext(t), func(tx kv.Tx) error {
			_ = tx.Put("a", []byte("half"))
			panic("boom")
		})
	}()
	diff(t, "recovered", any("boom"), recovered)
	diff(t, "contents after the panic", 0, len(contents(t, db, "")))
	put(t, db, "a", "1")
	diff(t, "next update", "1", get(t, db, "a"))
}

func testEndedContext(t *testing.T, db kv.DB) {
	put(t, db, "a", "1")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ran := false
	touch := func(tx kv.Tx) error { ran = true; return tx.Put("a", []byte("2")) }
	wantErr(t, "update", db.Update(ctx, touch), context.Canceled)
	wantErr(t, "view", db.View(ctx, func(kv.Reader) error { ran = true; return nil }), context.Canceled)
	wantErr(t, "scan", db.Scan(ctx, "", "", 0, func(kv.Pair) error { ran = true; return nil }), context.Canceled)
	if ran {
		t.Error("got a call of a closure whose context had ended, want none")
	}
	diff(t, "contents", []string{"a=1"}, contents(t, db, ""))
}

func testWakeUps(t *testing.T, db kv.DB) {
	ctx, cancel := context.WithCancel(testContext(t))
	jobs, all := db.Notify(ctx, "jobs/"), db.Notify(ctx, "")
	put(t, db, "tasks/1", "")
	received(t, "all after a write elsewhere", all)
	silent(t, "jobs after a write elsewhere", jobs)

	put(t, db, "jobs/1", "")
	put(t, db, "jobs/2", "")
	received(t, "jobs", jobs)
	silent(t, "jobs after a coalesced wake-up", jobs)

	boom := errors.New("boom")
	wantErr(t, "failing update", db.Update(ctx, func(tx kv.Tx) error {
		return errors.Join(tx.Put("jobs/3", nil), boom)
	}), boom)
	silent(t, "jobs after a failed update", jobs)

	if err := db.Update(ctx, func(tx kv.Tx) error { return tx.Delete("jobs/1") }); err != nil {
		t.Fatal(err)
	}
	received(t, "jobs after a deletion", jobs)
	cancel()
}

func received(t *testing.T, what string, woken <-chan struct{}) {
	t.Helper()
	select {
	case <-woken:
	case <-time.After(deadline):
		t.Errorf("%s: no wake-up", what)
	}
}

// silent checks that no notification is pending. Notifications are sent before Update returns, or soon after by a
// backend that watches. So the check may miss a wrong notification, but never fails without one.
func silent(t *testing.T, what string, woken <-chan struct{}) {
	t.Helper()
	select {
	case <-woken:
		t.Errorf("%s: unexpected wake-up", what)
	default:
	}
}

func testClosed(t *testing.T, db kv.DB) {
	put(t, db, "a", "1")
	closeDB(t, db)
	closeDB(t, db)
	wantErr(t, "update", db.Update(testContext(t), increment("a")), kv.ErrClosed)
	wantErr(t, "view", db.View(testContext(t), func(kv.Reader) error { return nil }), kv.ErrClosed)
	wantErr(t, "scan", db.Scan(testContext(t), "", "", 0, func(kv.Pair) error { return nil }), kv.ErrClosed)
}

func testDurability(t *testing.T, b Backend) {
	name := t.Name()
	db := b.Open(t, name, false)
	fill(t, db, 300)
	put(t, db, numbered(7), "seven")
	want := contents(t, db, "")
	closeDB(t, db)
	again := b.Open(t, name, false)
	defer closeDB(t, again)
	diff(t, "contents after opening again", want, contents(t, again, ""))
}

// testCloseUnderLoad closes the database while writers are busy. Each update must either succeed and be durable, or
// return ErrClosed and write nothing.
func testCloseUnderLoad(t *testing.T, b Backend) {
	const writers = 8
	name := t.Name()
	db := b.Open(t, name, false)
	var acknowledged [writers]int
	var total atomic.Int64
	enough := make(chan struct{})
	go func() {
		<-enough
		closeDB(t, db)
	}()
	inParallel(writers, func(i int) {
		for {
			err := retry(testContext(t), db, increment("counter/"+strconv.Itoa(i)))
			if err != nil {
				wantErr(t, "update", err, kv.ErrClosed)
				return
			}
			acknowledged[i]++
			if total.Add(1) == 10*writers {
				close(enough)
			}
		}
	})
	closeDB(t, db)
	again := b.Open(t, name, false)
	defer closeDB(t, again)
	for i, n := range acknowledged {
		want := strconv.Itoa(n)
		if n == 0 {
			want = "-"
		}
		diff(t, "counter "+strconv.Itoa(i), want, get(t, again, "counter/"+strconv.Itoa(i)))
	}
}

func testRepeatability(t *testing.T, b Backend) {
	db := b.Open(t, t.Name(), true)
	defer closeDB(t, db)
	runs := 0
	cases := map[string]func(kv.Tx) error{
		"other value": func(tx kv.Tx) error { runs++; return tx.Put("a", []byte(strconv.Itoa(runs))) },
		"other key":   func(tx kv.Tx) error { runs++; return tx.Put(numbered(runs), nil) },
		"other error": func(tx kv.Tx) error {
			if runs++; runs%2 == 0 {
				return errors.New("boom")
			}
			return nil
		},
	}
	for name, fn := range cases {
		wantErr(t, name, db.Update(testContext(t), fn), kv.ErrNotRepeatable)
	}
	diff(t, "contents", 0, len(contents(t, db, "")))
}
