package agenttest

import (
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
)

// stderrTail is how many bytes of stderr are kept for the judgement.
const stderrTail = 8 << 10

// Reader gives a run's log to an adapter's parser, as package workflow does for the service. It is for one goroutine.
type Reader struct {
	parser agent.Parser
	want   wants
	stderr string
}

// wants is what was asked of a run, as far as its judgement depends on it.
type wants struct {
	session string // to be resumed, empty if none
	schema  bool
}

// wanted returns what a run of the spec is judged by. A fork has an id that nobody knows before.
func wanted(s agent.Spec) wants {
	w := wants{session: s.Resume, schema: len(s.Schema) > 0}
	if s.Fork {
		w.session = s.Session
	}
	return w
}

// NewReader returns a Reader for one run of the spec.
func NewReader(a agent.Adapter, spec agent.Spec) *Reader {
	return &Reader{parser: a.NewParser(), want: wanted(spec)}
}

// Line returns the events of one line, numbered and dated like the line.
func (r *Reader) Line(l runlog.Line) []runlog.Event {
	var events []runlog.Event
	switch l.Stream {
	case runlog.StreamStderr:
		r.stderr += l.Text + "\n"
		if cut := len(r.stderr) - stderrTail; cut > 0 {
			r.stderr = strings.ToValidUTF8(r.stderr[cut:], "")
		}
		if p, ok := r.parser.(agent.StderrParser); ok {
			p.StderrLine(l.Text)
		}
	case runlog.StreamRunner:
		agent.Missing(r.parser, l)
	default:
		events = agent.Parse(r.parser, l)
	}
	for i := range events {
		events[i].Seq, events[i].Time = l.Seq, l.Time
	}
	return events
}

// Exit judges the run, after its last line. stopRequested says that errand asked for its end.
func (r *Reader) Exit(exit runlog.Exit, stopRequested bool) agent.Result {
	return r.parser.Exit(agent.Ended{
		Exit: exit, StopRequested: stopRequested, Stderr: r.stderr, WantSession: r.want.session, WantSchema: r.want.schema,
	})
}
