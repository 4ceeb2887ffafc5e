package logview

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// summarySuffix ends the names of the files with task summaries.
const summarySuffix = ".summary.json"

// Summaries prints the summaries of all lives of a task, the newest last: as text, or with q.Events as stored, one line
// of JSON each. It uses only Dir, Task and Events of the query.
func Summaries(w io.Writer, q Query) error {
	dir := filepath.Join(q.Dir, "transcripts")
	paths, err := filepath.Glob(filepath.Join(dir, "*"+summarySuffix))
	if err != nil {
		return fmt.Errorf("list summaries: %w", err)
	}
	var list []state.Summary
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was just pruned
		}
		var s state.Summary
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", filepath.Base(path), err)
		}
		if strings.EqualFold(s.Task, q.Task) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("there is no summary of this task: %s (looked in %s)", q.Task, dir)
	}
	slices.SortFunc(list, func(a, b state.Summary) int { return a.Life - b.Life })
	for i, s := range list {
		if err := printSummary(w, s, q.Events, i > 0); err != nil {
			return fmt.Errorf("print a summary: %w", err)
		}
	}
	return nil
}

func printSummary(w io.Writer, s state.Summary, asJSON, more bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(s)
	}
	var b strings.Builder
	if more {
		b.WriteString("\n")
	}
	writeSummary(&b, s)
	_, err := io.WriteString(w, Plain(b.String()))
	return err
}

// writeSummary formats a summary for people.
func writeSummary(b *strings.Builder, s state.Summary) {
	fmt.Fprintf(b, "%s: %s", s.Task, words.Phase(s.Phase))
	if s.Life > 1 {
		fmt.Fprintf(b, ", restart %d", s.Life-1)
	}
	fmt.Fprintf(b, "\nfrom %s to %s; agents worked for %s\n", stamp(s.Start), stamp(s.End), words.Span(s.Active))
	fmt.Fprintf(b, "%s, %s; %d tokens in, %d out, %s\n", words.Many(s.Iterations, "run"), words.Many(s.Rounds, "review round"),
		s.Money.InputTokens, s.Money.OutputTokens, words.Spent(s.Money))
	if end := strings.TrimSpace(s.Reason + "\n  " + s.Hint); end != "" {
		fmt.Fprintf(b, "because: %s\n", end)
	}
	if s.Pull != "" {
		fmt.Fprintf(b, "pull request: %s\n", s.Pull)
	}
	writeSteps(b, s.Steps)
	for _, m := range s.TokenMismatches {
		fmt.Fprintf(b, "\ntoken mismatch in run %d: %s\n", m.Run, m.Sentence())
	}
	heading := "\nphases\n"
	for _, p := range s.Phases {
		fmt.Fprintf(b, "%s%s  %s: %s\n", heading, stamp(p.At), words.Phase(p.Phase), p.Reason)
		heading = ""
	}
	heading = "\nverdicts\n"
	for _, v := range s.Verdicts {
		fmt.Fprintf(b, "%s%s  %s: %s", heading, stamp(v.At), words.Plain(v.Subject), words.Plain(v.Verdict))
		heading = ""
		if v.By != "" {
			fmt.Fprintf(b, " by %s", v.By)
		}
		if v.Message != "" {
			fmt.Fprintf(b, " (%s)", v.Message)
		}
		b.WriteString("\n")
	}
}

// writeSteps formats the usage of each step as a table, if there are any.
func writeSteps(b *strings.Builder, steps []state.StepSum) {
	if len(steps) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nstep\truns\ttook\tturns\ttokens\tcost\n")
	for _, step := range steps {
		fmt.Fprintf(t, "%s\t%d\t%s\t%d\t%d\t%s\n", words.Run(step.Step), step.Runs, words.Span(step.Took), step.Turns, step.Money.Tokens(), words.Spent(step.Money))
	}
	_ = t.Flush() // writing to a builder never fails
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return "now"
	}
	return at.UTC().Format("2006-01-02 15:04:05")
}
