package agent

import (
	"fmt"

	"github.com/errand-bot/errand/internal/runlog"
)

// Parse passes a line of stdout to a parser, as a complete or a truncated one.
func Parse(p Parser, l runlog.Line) []runlog.Event {
	if l.Cut > 0 {
		return append(p.Cut([]byte(l.Text), l.Cut), runlog.Event{Kind: runlog.KindNotice, Text: cutNotice(l.Cut)})
	}
	return p.Line([]byte(l.Text))
}

// ParseMissing passes to a parser the runner's remark that output was dropped. An answer, or a part of one, may have been in
// it.
func ParseMissing(p Parser, remark runlog.Line) {
	if remark.Cut > 0 {
		p.Cut(nil, remark.Cut)
	}
}

// cutNotice describes a truncated line.
func cutNotice(missing int) string {
	return fmt.Sprintf("a line was too long; %d bytes of it are missing", missing)
}
