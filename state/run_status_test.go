package state

import (
	"strings"
	"testing"
)

// TestEveryRunStatusHasAClause: people read how a run ended as a phrase, never as an identifier.
func TestEveryRunStatusHasAClause(t *testing.T) {
	t.Parallel()
	seen := map[string]RunStatus{}
	for s := range RunStatuses() {
		c := s.Clause()
		if strings.Contains(c, "ended with status") || seen[c] != "" {
			t.Errorf("status %s is stated as %q, like %q", s, c, seen[c])
		}
		seen[c] = s
	}
}
