// Package gates judges the changed lines of a commit by the reports of a repository's tests: how many of them the tests
// cover, and how many mutants on them the tests detect.
//
// Reports are LCOV, Cobertura, JaCoCo, Go cover profiles and PIT. The repository's programs write them, so they may be
// of any size and content: reading is bounded, and a report that is missing, broken or about other files fails its gate
// with a reason. Lines that did not change never count.
//
// Start with [Evaluate].
package gates

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"time"
)

// Gates are a repository's gates on changed code.
type Gates struct {
	// Coverage and Mutation are the lowest accepted percentages, 1 to 100: of covered lines, and of detected mutants. Zero
	// means no gate.
	Coverage int `json:"coverage,omitempty"`
	Mutation int `json:"mutation,omitempty"`
	// Reports are patterns of the paths of reports; empty means [DefaultReports].
	Reports []string `json:"reports,omitempty"`
}

// Enabled reports whether there is a gate.
func (g Gates) Enabled() bool { return g.Coverage > 0 || g.Mutation > 0 }

// Count returns the number of gates, which is the number of results of [Evaluate].
func (g Gates) Count() int {
	n := 0
	for _, gate := range g.list() {
		if gate.least > 0 {
			n++
		}
	}
	return n
}

// DefaultReports returns the patterns of the paths at which reports are searched if a repository names none.
func DefaultReports() []string {
	return []string{
		"**/lcov.info", "**/coverage.xml", "**/cobertura*.xml", "**/coverage.cobertura.xml", "**/jacoco*.xml",
		"**/coverage.out", "**/cover.out", "**/mutations.xml",
	}
}

// Input is what [Evaluate] judges.
type Input struct {
	Gates Gates
	// Changed has the lines that the commit added or changed, compared with its base.
	Changed Changes
	// Tracked lists all files of the commit. A report is none of them.
	Tracked []string
	// Tree is the checkout of the commit in which the repository's commands ran. It must not lead out of itself by links.
	Tree fs.FS
	// Roots are the absolute paths of Tree by which reports may name its files.
	Roots []string
	// Unrun reports whether commands that may write reports were skipped, because nothing that they are about has changed.
	Unrun bool
}

// Result is the result of one gate.
type Result struct {
	// Name has the figure, such as "coverage of changed lines: 91 % (gate 85 %)".
	Name string
	// Failed reports whether the gate was missed, or could not be judged.
	Failed bool
	// Skipped is the reason why the gate was not judged, without being failed.
	Skipped string
	// Text says why the gate failed, in at most 6,000 bytes: its first line is the reason, further ones list lines of files.
	Text string
}

// gate is one gate with its words.
type gate struct {
	kind  kind
	least int
	name  string // of the figure
}

// kind is the kind of a report.
type kind int

const (
	kindCoverage kind = iota + 1
	kindMutation
)

func (g Gates) list() []gate {
	return []gate{{kindCoverage, g.Coverage, "coverage of changed lines"}, {kindMutation, g.Mutation, "detected mutants on changed lines"}}
}

// maxTime bounds the time in which reports are read.
const maxTime = 2 * time.Minute

// Evaluate returns one result for each gate, coverage first. It takes little more than two minutes.
func Evaluate(ctx context.Context, in Input) []Result {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	m := newMeasurement(in, func() bool { return ctx.Err() != nil })
	m.readReports(in.Tree)
	if m.late() {
		text := fmt.Sprintf("The reports were not read to their end, because that takes longer than %.0f minutes.", maxTime.Minutes())
		return Fail(in.Gates, text)
	}
	var out []Result
	for _, g := range in.Gates.list() {
		if g.least > 0 {
			out = append(out, m.judge(g, in.Unrun))
		}
	}
	return out
}

// Skip returns the results of gates that are not judged, for a reason.
func Skip(g Gates, reason string) []Result {
	var out []Result
	for _, one := range g.list() {
		if one.least > 0 {
			out = append(out, Result{Name: one.title(), Skipped: reason})
		}
	}
	return out
}

// Fail returns the results of gates that cannot be judged, for a reason.
func Fail(g Gates, reason string) []Result {
	var out []Result
	for _, one := range g.list() {
		if one.least > 0 {
			out = append(out, one.failed(reason))
		}
	}
	return out
}

func (g gate) title() string { return fmt.Sprintf("%s (gate %d %%)", g.name, g.least) }

func (g gate) titleWith(figure string) string {
	return fmt.Sprintf("%s: %s (gate %d %%)", g.name, figure, g.least)
}

func (g gate) failed(reason string) Result {
	return Result{Name: g.titleWith("unknown"), Failed: true, Text: cut(reason, maxText)}
}

// judge compares what was measured with a gate.
func (m *measurement) judge(g gate, unrun bool) Result {
	switch reason := cmp.Or(m.failures[0], m.failures[g.kind]); {
	case reason != "":
		return g.failed(reason)
	case m.read[g.kind] == 0 && len(m.stale) == 0 && unrun:
		return Result{Name: g.title(), Skipped: "there is no report, because commands had nothing to run on"}
	case m.read[g.kind] == 0:
		return g.failed(m.missing(g.kind))
	case m.resolved[g.kind] == 0:
		return g.failed("The reports name no file of the repository.")
	}
	total, good := m.count(g.kind)
	if total == 0 {
		return Result{Name: g.titleWith("the reports list no changed line")}
	}
	r := Result{Name: g.titleWith(fmt.Sprintf("%d %%", good*100/total))}
	if good*100 < g.least*total {
		r.Failed, r.Text = true, m.shortfall(g, good, total)
	}
	return r
}

// missing says why there is no report of a kind.
func (m *measurement) missing(k kind) string {
	what := "coverage (LCOV, Cobertura, JaCoCo or a Go cover profile)"
	if k == kindMutation {
		what = "mutants (PIT)"
	}
	text := "No command of check wrote a report about " + what + "; searched for " + listOf(m.patterns) + "."
	if len(m.stale) > 0 {
		text += " " + quoted(m.stale[0]) + " does not count: it is part of the commit, so it may be about other code."
	}
	if len(m.irregular) > 0 {
		text += " " + quoted(m.irregular[0]) + " does not count: it is not a regular file."
	}
	return text
}
