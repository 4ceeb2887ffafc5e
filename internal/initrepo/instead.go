package initrepo

import (
	"context"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/scan"
	"github.com/errand-bot/errand/internal/workflow/workspace"
)

// checkInstead tries the usual commands of languages for which targets of the project were proposed that failed, and proposes those that
// succeed. Those that fail as well are shown.
func (t *trial) checkInstead(ctx context.Context, opener *workspace.Opener) error {
	list, installs := replacements(t.report)
	if len(list) == installs {
		return nil
	}
	if err := t.check(ctx, opener, "instead", list); err != nil {
		return err
	}
	for _, c := range list[installs:] {
		if c.Outcome != nil && c.Outcome.Status != scan.Untried && len(t.report.Check) < maxChecks {
			t.report.Check = append(t.report.Check, c)
		}
	}
	return nil
}

// maxChecks is the number of commands that a list may have.
const maxChecks = 20

// replacements returns the commands to try in the place of failed targets, after those that install what checks need.
func replacements(r *scan.Report) (list []scan.Command, installs int) {
	var failed []string
	for _, c := range r.Check {
		switch {
		case c.Outcome == nil:
		case c.Outcome.Status == scan.Failed:
			failed = append(failed, c.Run)
		case c.Install && c.Outcome.Status == scan.Succeeded:
			c.Outcome = nil
			list = append(list, c)
		}
	}
	installs = len(list)
	for _, c := range r.Instead {
		if !slices.ContainsFunc(c.By, func(run string) bool { return !slices.Contains(failed, run) }) {
			c.Origin += ", because this failed: " + strings.Join(c.By, ", ")
			list = append(list, c.Command)
		}
	}
	return list, installs
}
