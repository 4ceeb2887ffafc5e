package watch_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/watch"
)

// fullDisk is a transcript whose writes fail for a while.
type fullDisk struct {
	watch.Transcript
	d *supervision
}

func (f fullDisk) Add(l runlog.Line, events []runlog.Event) error {
	if f.d.full.Add(-1) >= 0 {
		return syscall.ENOSPC
	}
	return f.Transcript.Add(l, events)
}

// TestUnwritableLineIsInterpretedOnce: while the transcript's disk is full the line is retried, and its events
// appear once when there is space.
func TestUnwritableLineIsInterpretedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newSupervision(t)
		run := d.begin()
		d.supervise()
		d.v.says("start")
		advance(time.Second)
		d.full.Store(3)
		d.v.says("one", "two")
		advance(time.Minute)
		d.v.exits()
		advance(time.Second)
		if got := d.task().NewestPlan(); got == nil || got.Text != "[start one two]" {
			t.Errorf("plan %+v", got)
		}
		if diff := cmp.Diff([]string{"1 start", "2 one", "3 two"}, d.transcript(run.ID)); diff != "" {
			t.Errorf("transcript (-want +got):\n%s", diff)
		}
	})
}
