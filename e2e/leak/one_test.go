package leak_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestOneSeed replays the seed in LEAK_SEED.
func TestOneSeed(t *testing.T) {
	t.Parallel()
	text := os.Getenv("LEAK_SEED")
	if text == "" {
		t.Skip("no LEAK_SEED")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	w, problems := play(t, seed, configureOddWorld(int(seed)))
	for _, r := range w.sim.Requests() {
		if r.Method != "GET" {
			t.Logf("%+v", r)
		}
	}
	if len(problems) > 0 {
		t.Errorf("leaks:\n%s", strings.Join(problems, "\n"))
	}
}
