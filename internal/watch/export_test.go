package watch

import "github.com/errand-bot/errand/internal/forge"

// Assigned exposes isAssigned.
func (s *Sweeper) Assigned(i forge.Issue) bool { return s.isAssigned(i) }
