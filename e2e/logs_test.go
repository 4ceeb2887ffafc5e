package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/logview"
)

// logs prints the log of the story's task, as `errand logs` does: logs [events] [LEVEL].
func logs(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	q := logview.Query{Dir: s.dir + "/data", Task: fmt.Sprintf("%s#%d", s.full, s.issue), Level: logview.Info}
	for _, arg := range args {
		if arg == "events" {
			q.Events = true
			continue
		}
		level, err := logview.ParseLevel(arg)
		ts.Check(err)
		q.Level = level
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out strings.Builder
	ts.Check(logview.Show(ctx, &out, q))
	_, err := fmt.Fprint(ts.Stdout(), out.String())
	ts.Check(err)
}
