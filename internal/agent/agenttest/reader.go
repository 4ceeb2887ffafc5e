package agenttest

import (
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
)

// stderrTail is the number of bytes of stderr that are kept for the judgment.
const stderrTail = 8 << 10

// Reader passes a run's log to an adapter's parser, as package workflow does. It must be used from one goroutine.
type Reader struct {
	parser agent.Parser
	want   wants
	stderr string
}

// wants holds the parts of a run's request on which the judgment depends.
type wants struct {
	session string // session to resume, empty if none
	schema  bool
}

// wanted returns the wants of a run of the spec.
func wanted(s agent.Spec) wants { return wants{session: s.Resume, schema: len(s.Schema) > 0} }

// NewReader returns a Reader for one run of the spec.
func NewReader(a agent.Adapter, spec agent.Spec) *Reader {
	return &Reader{parser: a.NewParser(), want: wanted(spec)}
}

// Line returns the events of one line, with the line's number and time.
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
		agent.ParseMissing(r.parser, l)
	default:
		events = agent.Parse(r.parser, l)
	}
	for i := range events {
		events[i].Seq, events[i].Time = l.Seq, l.Time
	}
	return events
}

// Exit judges the run after its last line. stopRequested reports that errand requested the stop.
func (r *Reader) Exit(exit runlog.Exit, stopRequested bool) agent.Result {
	return r.parser.Exit(agent.Ended{
		Exit: exit, StopRequested: stopRequested, Stderr: r.stderr, WantSession: r.want.session, WantSchema: r.want.schema,
	})
}
