package likeness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// said names the folder of what simgithub said in the tests before.
const said = "ERRAND_SAID"

// TestLikeness judges all that simgithub said while the other tests ran.
func TestLikeness(t *testing.T) {
	t.Parallel()
	dir := os.Getenv(said)
	if dir == "" {
		t.Skipf("what simgithub says is judged after all other tests: `make test-full` does it and sets %s", said)
	}
	api, err := newREST(readJSON(t, need(t, "openapi/generated/api.github.com.json")))
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	answers, allowed := 0, newAllowances(exceptions())
	seen := map[string]int{}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var rec simgithub.Recorded
		if err := json.Unmarshal(raw, &rec); err != nil {
			t.Fatal(err)
		}
		if rec.Kind != "rest" {
			continue
		}
		answers++
		found, err := api.judge(rec)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, u := range found {
			if allowed.allows(u) {
				continue
			}
			if seen[u.String()]++; seen[u.String()] == 1 {
				t.Errorf("%s (%s)", u, filepath.Base(name))
			}
		}
	}
	t.Logf("likeness: %d answers of %d routes; %d unlike", answers, len(api.used), len(seen))
}
