package kvtest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state/kv"
)

// testRandom makes updates with random writes, some of which fail, and compares random ranges inside and after them
// with a map.
func testRandom(t *testing.T, db kv.DB) {
	const updates = 150
	model := map[string]string{}
	boom := errors.New("boom")
	for n := range updates {
		seed := rand.NewPCG(7, uint64(n))
		var inside map[string]string
		fail := n%5 == 0
		err := db.Update(testContext(t), func(tx kv.Tx) error {
			inside = maps.Clone(model)
			random := rand.New(seed)
			seed.Seed(7, uint64(n)) // the closure is repeatable
			for range random.IntN(30) {
				if err := randomWrite(random, tx, inside); err != nil {
					return err
				}
				if random.IntN(4) == 0 {
					compareRange(t, random, tx, inside)
				}
			}
			if fail {
				return boom
			}
			return nil
		})
		if fail != errors.Is(err, boom) || !fail && err != nil {
			t.Fatalf("update %d: %v", n, err)
		}
		if !fail {
			model = inside
		}
		random := rand.New(seed)
		err = db.View(testContext(t), func(r kv.Reader) error {
			compareRange(t, random, r, model)
			return nil
		})
		if err != nil || t.Failed() {
			t.Fatalf("after update %d: %v", n, err)
		}
	}
	diff(t, "contents at the end", len(model), len(contents(t, db, Declared)))
}

func randomKey(random *rand.Rand) string {
	return fmt.Sprintf("%s%c/%c", Declared, 'a'+random.IntN(4), 'a'+random.IntN(8))
}

func randomWrite(random *rand.Rand, tx kv.Tx, model map[string]string) error {
	key := randomKey(random)
	if random.IntN(3) == 0 {
		delete(model, key)
		return tx.Delete(key)
	}
	model[key] = strings.Repeat("v", random.IntN(2000))
	return tx.Put(key, []byte(model[key]))
}

// compareRange reads a random range and checks it against the model.
func compareRange(t *testing.T, random *rand.Rand, r kv.Reader, model map[string]string) {
	prefix := Declared + []string{"", "a", "b/", "c/d"}[random.IntN(4)]
	from := []string{"", randomKey(random)}[random.IntN(2)]
	limit := random.IntN(6)
	var want []string
	for _, key := range slices.Sorted(maps.Keys(model)) {
		if strings.HasPrefix(key, prefix) && key >= from && (limit == 0 || len(want) < limit) {
			want = append(want, key+"="+model[key])
		}
	}
	pairs, err := r.Range(prefix, from, limit)
	if got := flatten(pairs); err != nil || !slices.Equal(got, want) {
		t.Errorf("range %q from %q, at most %d: %d pairs, %v; want %d", prefix, from, limit, len(got), err, len(want))
	}
}
