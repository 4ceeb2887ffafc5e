package watch

import "github.com/errand-bot/errand/internal/forge"

// Assigned reports whether an issue is assigned to one of our accounts.
func (s *Sweeper) Assigned(i forge.Issue) bool { return s.assigned(i) }
