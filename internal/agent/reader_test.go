package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/google/go-cmp/cmp"
)

func TestReader(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	spec := fullSpec()
	spec.Schema, spec.Resume = nil, "s1"
	r := agent.NewReader(newAdapter(t, agent.Config{}), spec)
	lines := []runlog.Line{
		{Seq: 1, Time: at, Stream: runlog.StreamRunner, Text: "set-up done"},
		{Seq: 2, Time: at, Stream: runlog.StreamStdout, Text: `{"type":"assistant","message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`},
		{Seq: 2, Time: at, Stream: runlog.StreamStdout, Text: `{"type":"assistant","message":{"content":"told twice"}}`},
		{Seq: 3, Time: at, Stream: runlog.StreamStderr, Text: "careful"},
		{Seq: 4, Time: at, Stream: runlog.StreamStdout, Text: `{"type":"user","mess`, Cut: 7},
		{Seq: 5, Time: at, Stream: runlog.StreamStdout, Text: result("")},
	}
	var got []runlog.Event
	for _, l := range lines {
		got = append(got, r.Line(l)...)
	}
	want := []runlog.Event{
		{Seq: 1, Time: at, Kind: runlog.KindNotice, Text: "set-up done"},
		{Seq: 2, Time: at, Kind: runlog.KindText, Text: "a"},
		{Seq: 2, Time: at, Kind: runlog.KindText, Text: "b"},
		{Seq: 3, Time: at, Kind: runlog.KindNotice, Text: "careful"},
		{Seq: 4, Time: at, Kind: runlog.KindNotice, Text: "a line was too long; 7 bytes of it are missing"},
		{Seq: 5, Time: at, Kind: runlog.KindUsage, Usage: &runlog.Usage{}},
		{Seq: 5, Time: at, Kind: runlog.KindResult, Text: "Done.", Session: "s1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if res := r.Exit(runlog.Exit{Cause: runlog.CauseExited}, false); res.Status != agent.StatusOK || res.Session != "s1" {
		t.Errorf("result %+v", res)
	}
}

// TestReaderJudgesByStderr has only stderr to judge by, and far too much of it.
func TestReaderJudgesByStderr(t *testing.T) {
	t.Parallel()
	spec := fullSpec()
	spec.Resume = "s1"
	r := agent.NewReader(newAdapter(t, agent.Config{}), spec)
	for i := range 100 {
		r.Line(runlog.Line{Seq: int64(i + 1), Stream: runlog.StreamStderr, Text: strings.Repeat("ä", 500)})
	}
	r.Line(runlog.Line{Seq: 101, Stream: runlog.StreamStderr, Text: "error: unknown option"})
	exit := runlog.Exit{Cause: runlog.CauseExited, Code: 1}
	if res := r.Exit(exit, false); res.Status != agent.StatusInvalid || res.Message != "error: unknown option" {
		t.Errorf("result %+v", res)
	}
	if res := r.Exit(exit, true); res.Status != agent.StatusInterrupted {
		t.Errorf("after a stop: %+v", res)
	}
	if res := agent.NewReader(newAdapter(t, agent.Config{}), spec).Exit(runlog.Exit{Cause: runlog.CauseLost}, false); res.Status != agent.StatusLost {
		t.Errorf("after a loss: %+v", res)
	}
}
