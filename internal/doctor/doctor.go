// Package doctor finds out why an installation of errand does not work, or soon will not: it checks the GitHub App, its webhook and
// its installations, the VM provider, the models and this host, and says for each problem how to fix it.
//
// It changes nothing, and nothing that it does costs money. Start with [Run] and the constructors of checks: [GitHubCheck],
// [HostCheck], [VMCheck], [ModelCheck], [ProgramCheck] and [PauseCheck].
package doctor

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/words"
)

// Status is the result of a check.
type Status string

// The results, the most urgent first.
const (
	Failed  Status = "failed"  // tasks fail, or will
	Warning Status = "warning" // something does not work as well as it could
	Skipped Status = "skipped" // it could not be checked
	Note    Status = "note"    // worth knowing
	OK      Status = "ok"
)

// Finding is what a check found.
type Finding struct {
	Check   string `json:"check"` // such as github.webhook
	Status  Status `json:"status"`
	Found   string `json:"found"`             // one sentence
	Meaning string `json:"meaning,omitempty"` // the consequence of a problem
	Fix     string `json:"fix,omitempty"`     // the one command or click that fixes a problem
	// Chmod is set if the problem is the mode of a file of errand's, which can be corrected safely.
	Chmod *Chmod `json:"chmod,omitempty"`
}

// Chmod is a correction of a file's mode.
type Chmod struct {
	Path string      `json:"path"`
	Mode fs.FileMode `json:"mode"`
}

// Check is a group of findings that are made one after the other. A check bounds its own time by the context.
type Check func(context.Context) []Finding

// Report is the result of all checks.
type Report struct {
	Version string `json:"version"`
	// Serving reports whether a running errand made the checks.
	Serving bool `json:"serving"`
	// Started is when the running errand started.
	Started  time.Time `json:"started,omitzero"`
	Findings []Finding `json:"findings"` // the most urgent first
}

// timeout bounds each check.
const timeout = 45 * time.Second

// Run runs checks, several at a time, and returns their findings with the most urgent first. Equally urgent ones keep the order of
// the checks: an earlier problem is often the cause of a later one.
func Run(ctx context.Context, checks ...Check) []Finding {
	lists := make([][]Finding, len(checks))
	var g errgroup.Group
	g.SetLimit(8)
	for i, check := range checks {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			lists[i] = check(ctx)
			return nil
		})
	}
	_ = g.Wait() // the checks return findings, not errors
	list := slices.Concat(lists...)
	Sort(list)
	return list
}

// maxText is the maximum length of a text in a finding, in characters: GitHub, other programs and other people wrote parts of them.
const maxText = 1000

// Clean shortens texts and removes characters that control a terminal.
func (r *Report) Clean() {
	r.Version = clean(r.Version)
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Status = Status(clean(string(f.Status)))
		for _, text := range []*string{&f.Check, &f.Found, &f.Meaning, &f.Fix} {
			*text = clean(*text)
		}
	}
}

func clean(text string) string {
	text = logview.Plain(text)
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText]) + "…"
	}
	return text
}

// Sort puts the most urgent findings first, and otherwise keeps their order.
func Sort(list []Finding) {
	order := []Status{Failed, Warning, Skipped, Note, OK}
	slices.SortStableFunc(list, func(a, b Finding) int { return slices.Index(order, a.Status) - slices.Index(order, b.Status) })
}

// Count returns the number of findings with a status.
func (r Report) Count(s Status) int {
	n := 0
	for _, f := range r.Findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

// Write writes the report for people: problems with their meaning and their fix first, and a line for everything else.
func (r Report) Write(w io.Writer) error {
	var b strings.Builder
	where := "checked without a running errand"
	if r.Serving {
		where = "checked by the running errand"
	}
	fmt.Fprintf(&b, "errand %s, %s: %d failed, %s, %d skipped, %d ok\n", r.Version, where, r.Count(Failed), words.Many(r.Count(Warning), "warning"), r.Count(Skipped), r.Count(OK))
	brief := false
	for _, f := range r.Findings {
		problem := f.Status == Failed || f.Status == Warning
		if problem || !brief {
			b.WriteByte('\n')
		}
		brief = !problem
		fmt.Fprintf(&b, "%-8s %-20s %s\n", f.Status, f.Check, indent(f.Found))
		for _, line := range []struct{ label, text string }{{"", f.Meaning}, {"Fix: ", f.Fix}} {
			if line.text != "" {
				fmt.Fprintf(&b, "%-8s %-20s %s\n", "", "", line.label+indent(line.text))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// indent aligns the lines of a text under its first one.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", 30))
}
