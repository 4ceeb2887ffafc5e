// Package kvtest provides the conformance suite for backends of package kv, and Faulty, a DB that fails on demand, for
// crash tests.
//
// A backend calls Run with a function that opens it. The suite checks the contract in the doc comments of package kv:
// reads and order, atomicity and isolation (also under contention), the limits, notifications, and that committed data
// is there after the database was closed and reopened.
//
// Start with Run.
package kvtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state/kv"
)

// Declared is the prefix under which the suite reads ranges inside updates. The backend must be opened with it.
const Declared = "versioned/"

// Backend opens databases of the backend under test.
type Backend struct {
	// Open opens the database with the given name, empty at first: opening it again after Close must give the same
	// data. The suite closes it. If check is set, updates with closures that are not repeatable are refused.
	Open func(t *testing.T, name string, check bool) kv.DB
}

const deadline = 10 * time.Second

// Run runs the suite as parallel subtests of t.
func Run(t *testing.T, b Backend) {
	t.Helper()
	cases := map[string]func(*testing.T, kv.DB){
		"reads":            testReads,
		"ranges":           testRanges,
		"scan":             testScan,
		"scan and write":   testScanWhileWriting,
		"own writes":       testOwnWrites,
		"own ranges":       testOwnRanges,
		"undeclared range": testUndeclaredRange,
		"rollback":         testRollback,
		"limits":           testLimits,
		"counters":         testCounters,
		"isolation":        testIsolation,
		"first comer":      testFirstComer,
		"last ones":        testLastOnes,
		"lists":            testLists,
		"deletions":        testDeletions,
		"own values":       testOwnValues,
		"snapshot":         testSnapshot,
		"panic":            testPanic,
		"ended context":    testEndedContext,
		"wake-ups":         testWakeUps,
		"closed":           testClosed,
		"random":           testRandom,
	}
	for name, test := range cases {
		for how, check := range map[string]bool{"checked": true, "unchecked": false} {
			t.Run(name+"/"+how, func(t *testing.T) { // a backend may behave differently without the check
				t.Parallel()
				db := b.Open(t, t.Name(), check)
				t.Cleanup(func() { closeDB(t, db) })
				test(t, db)
			})
		}
	}
	t.Run("durability", func(t *testing.T) { t.Parallel(); testDurability(t, b) })
	t.Run("close under load", func(t *testing.T) { t.Parallel(); testCloseUnderLoad(t, b) })
	t.Run("repeatability", func(t *testing.T) { t.Parallel(); testRepeatability(t, b) })
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

func closeDB(t *testing.T, db kv.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// put writes pairs in one update.
func put(t *testing.T, db kv.DB, pairs ...string) {
	t.Helper()
	err := db.Update(testContext(t), func(tx kv.Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := tx.Put(pairs[i], []byte(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("put %q: %v", pairs, err)
	}
}

// get returns a value, or "-" for a key that does not exist.
func get(t *testing.T, db kv.DB, key string) string {
	t.Helper()
	value := "-"
	err := db.View(testContext(t), func(r kv.Reader) error {
		got, err := r.Get(key)
		if errors.Is(err, kv.ErrNotFound) {
			return nil
		}
		value = string(got)
		return err
	})
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	return value
}

// contents returns all pairs as "key=value", in the order of a scan.
func contents(t *testing.T, db kv.DB, prefix string) []string {
	t.Helper()
	var all []string
	err := db.Scan(testContext(t), prefix, "", 0, func(p kv.Pair) error {
		all = append(all, flat(p))
		return nil
	})
	if err != nil {
		t.Fatalf("scan %q: %v", prefix, err)
	}
	return all
}

func flat(p kv.Pair) string { return p.Key + "=" + string(p.Value) }

func flatten(pairs []kv.Pair) []string {
	var all []string
	for _, p := range pairs {
		all = append(all, flat(p))
	}
	return all
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// wantErr checks that err is want.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func numbered(i int) string { return fmt.Sprintf("n/%04d", i) }
