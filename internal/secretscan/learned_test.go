package secretscan_test

import (
	"fmt"
	"testing"

	"github.com/errand-bot/errand/internal/secretscan"
)

// TestLearnedValuesAreFound: learned values are found in all forms, and the newest are kept.
func TestLearnedValuesAreFound(t *testing.T) {
	t.Parallel()
	s := secretscan.New(nil, "known-from-the-start")
	name := func(i int) string { return fmt.Sprintf("renewed-token-%03d", i) }
	if got := s.Find(name(1)); len(got) != 0 {
		t.Fatalf("before: got findings %v", got)
	}
	for i := range 100 {
		s.Learn(name(i), name(0))
	}
	for text, want := range map[string]int{
		name(99) + " and known-from-the-start": 2, name(60): 1, name(0): 1, name(1): 0, "72656e657765642d746f6b656e2d303939": 1,
	} {
		if got := s.Find(text); len(got) != want {
			t.Errorf("%s: got findings %v", text, got)
		}
	}
}
