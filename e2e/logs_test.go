package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/logview"
)

// logs prints the log of the story's task, as `errand logs` does: logs [events] [summary] [LEVEL]. It waits for a
// current summary, which is written shortly after the task changes.
func logs(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	summary := slices.Contains(args, "summary")
	q := logview.Query{Dir: s.dir + "/data", Task: fmt.Sprintf("%s#%d", s.full, s.issue), Level: logview.Info}
	for _, arg := range args {
		if arg == "events" || arg == "summary" {
			q.Events = q.Events || arg == "events"
			continue
		}
		level, err := logview.ParseLevel(arg)
		ts.Check(err)
		q.Level = level
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out strings.Builder
	if summary {
		s.awaitSummary(ctx, ts, q)
		ts.Check(logview.Summaries(&out, q))
	} else {
		ts.Check(logview.Show(ctx, &out, q))
	}
	_, err := fmt.Fprint(ts.Stdout(), out.String())
	ts.Check(err)
}

// awaitSummary waits until the summary matches the task in the store.
func (s *story) awaitSummary(ctx context.Context, ts *testscript.TestScript, q logview.Query) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	q.Events = true
	for {
		t := s.task(s.issue)
		var out strings.Builder
		if err := logview.Summaries(&out, q); err == nil && t != nil && strings.Contains(out.String(), fmt.Sprintf(`"life":%d,"phase":%q`, t.Gen, t.Phase)) {
			return
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("the summary does not match the task's current state: %s", out.String())
		case <-tick.C:
		}
	}
}
