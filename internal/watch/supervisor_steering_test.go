package watch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// toolEvents interprets a line of a fake run about its tools: "use ID …" and "result ID …".
func toolEvents(line string) (list []runlog.Event) {
	what, ids, _ := strings.Cut(line, " ")
	kind, ok := map[string]runlog.Kind{"use": runlog.KindToolUse, "result": runlog.KindToolResult}[what]
	if !ok {
		return nil
	}
	for id := range strings.FieldsSeq(ids) {
		list = append(list, runlog.Event{Kind: kind, ToolID: id, ToolName: "bash"})
	}
	return list
}

// TestRunIsInterruptedBetweenTools: a run for which a message waits is interrupted when none of its tools is executed, also if
// errand was restarted while one was.
func TestRunIsInterruptedBetweenTools(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []string // lines before the message is ready, and afterwards
		restart       bool
		want          bool
	}{
		"no tool":                    {[]string{"start", "use a", "result a"}, nil, false, true},
		"a tool is executed":         {[]string{"start", "use a"}, nil, false, false},
		"a tool ends":                {[]string{"start", "use a"}, []string{"result a"}, false, true},
		"one of two ends":            {[]string{"start", "use a b"}, []string{"result b"}, false, false},
		"both end":                   {[]string{"start", "use a b"}, []string{"result b", "result a"}, false, true},
		"the next one begins":        {[]string{"start", "use a"}, []string{"result a b", "use c"}, false, true},
		"a restart while one runs":   {[]string{"start", "use a"}, nil, true, false},
		"a restart, then it ends":    {[]string{"start", "use a"}, []string{"result a"}, true, true},
		"a result of an unknown one": {[]string{"start", "use a"}, []string{"result x"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				d := newSupervision(t)
				run := d.begin()
				stop := d.supervise()
				d.v.says(c.before...)
				advance(6 * time.Second)
				d.message(run.ID)
				if c.restart {
					stop()
					d.supervise()
				}
				advance(6 * time.Second)
				d.v.says(c.after...)
				advance(time.Second)
				got := d.task().Run
				if interrupted := got.ID != run.ID; interrupted != c.want {
					t.Errorf("interrupted: %v, want %v; run %+v", interrupted, c.want, got)
				}
				if c.want && (got.Session != "s-1" || got.State != state.RunLaunching) {
					t.Errorf("got run %+v, want the same session to continue", got)
				}
			})
		})
	}
}

// message has two writers tell the active run something, and makes the messages ready for delivery.
func (d *supervision) message(run string) {
	d.t.Helper()
	for id, by := range map[int64]state.Person{50: ada, 51: {ID: 6, Login: "grace"}} {
		d.happen(event.Event{By: by, Permission: state.PermissionWrite, At: time.Now(), Payload: event.Commented{
			Comment: &state.Comment{ID: id, Mention: true, Body: "Use a map."}, Orders: []state.Order{{Verb: state.VerbMessage, Text: "Use a map."}},
		}})
	}
	advance(10 * time.Second)
	d.happen(event.Event{Payload: event.NewDue(state.DueSteer, run)})
	if s := d.task().Run.Steering; s == nil || !s.Ready {
		d.t.Fatalf("got %+v, want the messages to be ready", s)
	}
}
