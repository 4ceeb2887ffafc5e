package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// PauseCheck finds the pauses that operators ordered: somebody may have forgotten to resume.
func PauseCheck(list func(context.Context) ([]state.Pause, error), now func() time.Time) Check {
	const check = "pause"
	return func(ctx context.Context) []Finding {
		pauses, err := list(ctx)
		switch {
		case err != nil:
			return []Finding{{Check: check, Status: Skipped, Found: fmt.Sprintf("The pauses cannot be read: %v", err)}}
		case len(pauses) == 0:
			return []Finding{{Check: check, Status: OK, Found: "Neither errand nor a repository is paused."}}
		}
		var found []Finding
		for _, p := range pauses {
			f := Finding{
				Check: check, Status: Warning, Found: "errand is paused", Meaning: "No new run starts, and tasks wait for the operator.", Fix: "`errand resume`",
			}
			if p.Repo != 0 {
				f.Found, f.Meaning, f.Fix = p.Name+" is paused", "No new run starts there, and its tasks wait for the operator.", "`errand resume "+p.Name+"`"
			}
			f.Found += fmt.Sprintf(" since %s (for %s), by %s", p.Since.UTC().Format("2006-01-02 15:04 UTC"), words.Span(now().Sub(p.Since)), p.By)
			if p.Reason != "" {
				f.Found += ": " + p.Reason
			}
			found = append(found, f)
		}
		return found
	}
}
