package agent

import (
	"strings"

	"github.com/errand-bot/errand/internal/runlog"
)

// stderrTail is how much of stderr is kept for the judgement.
const stderrTail = 8 << 10

// Reader reads a run's log through an adapter's parser: it numbers and dates the events like the
// lines that they come from, and collects what the judgement needs. It is for one goroutine. A log
// may be read again from its first line by a new Reader, with the same events and the same result;
// it must not be begun in its middle, because the parser would miss what came before.
type Reader struct {
	parser Parser
	want   Wants
	stderr string
	seq    int64
}

// Wants is what was asked of a run, as far as its judgement depends on it.
type Wants struct {
	// Session is the session that was to be resumed, empty if none.
	Session string
	// Schema: a structured answer was asked for.
	Schema bool
}

// Wants returns what a run of the spec will be judged by. A fork has an id that nobody knows before.
func (s Spec) Wants() Wants {
	w := Wants{Session: s.Resume, Schema: len(s.Schema) > 0}
	if s.Fork {
		w.Session = s.Session
	}
	return w
}

// NewReader returns a Reader for one run of the spec.
func NewReader(a Adapter, spec Spec) *Reader {
	return &Reader{parser: a.NewParser(), want: spec.Wants()}
}

// Line returns the events of one line. A line that was read already is ignored, so that a follower
// may repeat some after it was cut off. Remarks of the runner, and lines of stderr, are notices.
func (r *Reader) Line(l runlog.Line) []runlog.Event {
	if l.Seq != 0 && l.Seq <= r.seq {
		return nil
	}
	r.seq = l.Seq
	var events []runlog.Event
	switch l.Stream {
	case runlog.StreamStderr:
		r.stderr += l.Text + "\n"
		if cut := len(r.stderr) - stderrTail; cut > 0 {
			r.stderr = strings.ToValidUTF8(r.stderr[cut:], "")
		}
		if p, ok := r.parser.(StderrParser); ok {
			p.StderrLine(l.Text)
		}
		if strings.TrimSpace(l.Text) != "" {
			events = []runlog.Event{notice(l.Text)}
		}
	case runlog.StreamRunner:
		Missing(r.parser, l)
		events = []runlog.Event{notice(l.Text)}
	default:
		events = Parse(r.parser, l)
	}
	for i := range events {
		events[i].Seq, events[i].Time = l.Seq, l.Time
	}
	return events
}

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

// Exit judges the run, after its last line. stopRequested says that we asked for its end.
func (r *Reader) Exit(exit runlog.Exit, stopRequested bool) Result {
	return r.parser.Exit(Ended{
		Exit: exit, StopRequested: stopRequested, Stderr: r.stderr, WantSession: r.want.Session, WantSchema: r.want.Schema,
	})
}
