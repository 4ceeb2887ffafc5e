package agent

import "github.com/errand-bot/errand/internal/runlog"

// Parse gives a line of stdout to a parser, as what it is: whole or cut.
func Parse(p Parser, l runlog.Line) []runlog.Event {
	if l.Cut > 0 {
		return append(p.Cut([]byte(l.Text), l.Cut), notice(cutNotice(l.Cut)))
	}
	return p.Line([]byte(l.Text))
}

// Missing tells a parser what a remark of the runner says of output that was left out: an answer may have been in it, or
// a part of one.
func Missing(p Parser, remark runlog.Line) {
	if remark.Cut > 0 {
		p.Cut(nil, remark.Cut)
	}
}
