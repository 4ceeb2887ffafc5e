package kvtest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/errand-bot/errand/state/kv"
)

// The tests in this file run many concurrent updates that read each other's writes.

const contenders, contentions = 32, 15

// testFirstComer checks that exactly one of many concurrent updates finds that a key does not exist.
func testFirstComer(t *testing.T, db kv.DB) {
	for round := range contentions {
		key := "first/" + strconv.Itoa(round)
		var won atomic.Int32
		var winner atomic.Int64
		inParallel(contenders, func(i int) {
			isNew := false
			err := retry(testContext(t), db, func(tx kv.Tx) error {
				isNew = false
				if _, err := tx.Get(key); !errors.Is(err, kv.ErrNotFound) {
					return err
				}
				isNew = true
				return tx.Put(key, []byte(strconv.Itoa(i)))
			})
			if err != nil {
				t.Errorf("put: %v", err)
			}
			if isNew {
				won.Add(1)
				winner.Store(int64(i))
			}
		})
		if won.Load() != 1 {
			t.Errorf("got %d updates that created the key, want 1", won.Load())
		}
		diff(t, "value of the first update", strconv.FormatInt(winner.Load(), 10), get(t, db, key))
	}
}

// testLastOnes checks that concurrent updates take exactly the available amount from a stock.
func testLastOnes(t *testing.T, db kv.DB) {
	const stock = contenders * contentions / 2
	put(t, db, "stock", strconv.Itoa(stock))
	errEmpty := errors.New("nothing is left")
	var got atomic.Int32
	inParallel(contenders, func(int) {
		for range contentions {
			err := retry(testContext(t), db, func(tx kv.Tx) error {
				left, err := tx.Get("stock")
				if err != nil {
					return err
				}
				if number(left) == 0 {
					return errEmpty
				}
				return tx.Put("stock", []byte(strconv.Itoa(number(left)-1)))
			})
			switch {
			case err == nil:
				got.Add(1)
			case !errors.Is(err, errEmpty):
				t.Errorf("take: %v", err)
			}
		}
	})
	diff(t, "successful updates", int32(stock), got.Load())
	diff(t, "remaining stock", "0", get(t, db, "stock"))
}

// testLists checks concurrent updates that append to a list, which they read as a range.
func testLists(t *testing.T, db kv.DB) {
	inParallel(contenders, func(i int) {
		err := retry(testContext(t), db, func(tx kv.Tx) error {
			list, err := tx.Range(Declared+"list/", "", 0)
			if err != nil {
				return err
			}
			return tx.Put(fmt.Sprintf("%slist/%03d", Declared, len(list)), []byte(strconv.Itoa(i)))
		})
		if err != nil {
			t.Errorf("append: %v", err)
		}
	})
	diff(t, "length of the list", contenders, len(contents(t, db, Declared+"list/")))
}

// testDeletions checks concurrent updates that delete and create a key. Each must see the result of the one before.
func testDeletions(t *testing.T, db kv.DB) {
	var deleted, created atomic.Int32
	inParallel(contenders, func(int) {
		for range contentions {
			existed := false
			err := retry(testContext(t), db, func(tx kv.Tx) error {
				_, err := tx.Get("flip")
				existed = err == nil
				switch {
				case err == nil:
					return tx.Delete("flip")
				case errors.Is(err, kv.ErrNotFound):
					return tx.Put("flip", nil)
				}
				return err
			})
			if err != nil {
				t.Errorf("flip: %v", err)
			}
			if existed {
				deleted.Add(1)
			} else {
				created.Add(1)
			}
		}
	})
	diff(t, "deletions", int32(contenders*contentions/2), deleted.Load())
	diff(t, "creations", int32(contenders*contentions/2), created.Load())
}

// testOwnValues checks that a closure may modify the values that it reads without effect on others or itself.
func testOwnValues(t *testing.T, db kv.DB) {
	put(t, db, "digits", "0")
	inParallel(contenders, func(int) {
		for range contentions {
			err := retry(testContext(t), db, func(tx kv.Tx) error {
				value, err := tx.Get("digits")
				if err != nil {
					return err
				}
				next := []byte(strconv.Itoa(number(value) + 1))
				copy(value, bytes.Repeat([]byte("9"), len(value)))
				return tx.Put("digits", next)
			})
			if err != nil {
				t.Errorf("increment: %v", err)
			}
		}
	})
	diff(t, "sum", strconv.Itoa(contenders*contentions), get(t, db, "digits"))
}
