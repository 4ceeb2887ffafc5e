package workflow

import (
	"strings"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// commitMessage is for what an agent left uncommitted, and for squashed commits.
func (s *Steps) commitMessage(t *state.Task) string {
	prefix := s.commitPrefix(t)
	if t.Round > 0 {
		words := "Address review feedback"
		if t.Work != nil && t.Work.Summary != "" {
			words += " — " + firstLine(t.Work.Summary)
		}
		return prefix + words
	}
	msg, err := comment.Expand(t.Settings.Commit, s.vars(t, t.Ticket))
	if err != nil {
		return prefix + t.Frozen.Title
	}
	return msg
}

// commitPrefix is what the repository's template puts before the words.
func (s *Steps) commitPrefix(t *state.Task) string {
	v := s.vars(t, t.Ticket)
	v.Task = "\x00"
	msg, err := comment.Expand(t.Settings.Commit, v)
	if err != nil {
		return ""
	}
	prefix, _, _ := strings.Cut(msg, "\x00")
	return prefix
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return runlog.Cut(line, 72)
}
