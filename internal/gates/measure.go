package gates

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// measurement is what the reports say about the changed lines.
type measurement struct {
	changed  Changes
	bases    map[string][]string // changed files, in order, by the last elements of their paths
	names    *names              // of the report that is being read
	late     func() bool         // whether the time to read reports is over
	files    *files
	patterns []string
	lines    map[string][]lineState // parallel to the lines of Changes
	mutants  struct {
		total, detected int
		missed          []mutant
	}
	// By kind:
	read     [kindMutation + 1]int    // reports
	resolved [kindMutation + 1]int    // names of files of the repository in them
	failures [kindMutation + 1]string // why a gate cannot be judged, in a sentence; at 0 why none can

	stale     []string // candidates that are part of the commit
	irregular []string // candidates that are links, folders or devices
}

// lineState says whether a changed line has code, and whether it ran.
type lineState byte

const (
	lineUnlisted lineState = iota
	lineMissed
	lineCovered
)

// mutant is one that the tests do not detect.
type mutant struct {
	file string
	line int
	text string
}

// maxMissed is how many mutants are kept to be shown.
const maxMissed = 1000

func newMeasurement(in Input, late func() bool) *measurement {
	m := &measurement{changed: in.Changed, late: late, files: newFiles(in, late), patterns: in.Gates.Reports, lines: map[string][]lineState{},
		bases: map[string][]string{}}
	if len(m.patterns) == 0 {
		m.patterns = DefaultReports()
	}
	for name, l := range in.Changed {
		m.lines[name] = make([]lineState, len(l.numbers))
		m.bases[path.Base(name)] = append(m.bases[path.Base(name)], name)
	}
	for _, list := range m.bases {
		slices.Sort(list)
	}
	return m
}

// mark notes that a line has code. What one report calls covered stays covered.
func (m *measurement) mark(file string, line int, covered bool) {
	if i, ok := m.changed[file].index(line); ok {
		m.markAt(file, i, covered)
	}
}

func (m *measurement) markAt(file string, i int, covered bool) {
	state := lineMissed
	if covered {
		state = lineCovered
	}
	m.lines[file][i] = max(m.lines[file][i], state)
}

// addMutant notes a mutant on a changed line.
func (m *measurement) addMutant(x mutant, detected bool) {
	if _, ok := m.changed[x.file].index(x.line); !ok {
		return
	}
	m.mutants.total++
	if detected {
		m.mutants.detected++
	} else if len(m.mutants.missed) < maxMissed {
		m.mutants.missed = append(m.mutants.missed, x)
	}
}

// count returns how many lines or mutants there are, and how many are covered or detected.
func (m *measurement) count(k kind) (total, good int) {
	if k == kindMutation {
		return m.mutants.total, m.mutants.detected
	}
	for _, list := range m.lines {
		for _, s := range list {
			if s != lineUnlisted {
				total++
			}
			if s == lineCovered {
				good++
			}
		}
	}
	return total, good
}

// Limits on texts, in bytes: of a result, of one of its lines, and of a name.
const (
	maxText = 6000
	maxRow  = 600
	maxName = 200
)

// shortfall says what a gate lacks, files with the most missed lines first.
func (m *measurement) shortfall(g gate, good, total int) string {
	required := fmt.Sprintf("at least %d %% are required", g.least)
	if g.kind == kindMutation {
		head := fmt.Sprintf("Tests detect %d of the %d mutants on changed lines; %s. Add tests that fail with these mutants:", good, total, required)
		return render(head, "mutant", m.mutantRows(), total-good)
	}
	head := fmt.Sprintf("Tests cover %d of the %d changed lines with code; %s. Add tests for these lines:", good, total, required)
	return render(head, "line", m.lineRows(), total-good)
}

// row is one line of a list. It stands for so many missed lines or mutants.
type row struct {
	text  string
	count int
}

func (m *measurement) lineRows() []row {
	var rows []row
	for name, list := range m.lines {
		var missed []int
		for i, s := range list {
			if s == lineMissed {
				missed = append(missed, m.changed[name].numbers[i])
			}
		}
		if len(missed) > 0 {
			rows = append(rows, row{quoted(name) + ": " + ranges(missed), len(missed)})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.text, b.text)) })
	return rows
}

func (m *measurement) mutantRows() []row {
	list := slices.Clone(m.mutants.missed)
	slices.SortStableFunc(list, func(a, b mutant) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
	var rows []row
	for _, x := range list {
		rows = append(rows, row{cut(fmt.Sprintf("%s:%d: %s", quoted(x.file), x.line, x.text), maxRow), 1})
	}
	return rows
}

// render writes as many rows as fit, and how many lines or mutants the others have.
func render(head, unit string, rows []row, total int) string {
	var b strings.Builder
	b.WriteString(head)
	for _, r := range rows {
		if b.Len()+len(r.text) > maxText-100 {
			break
		}
		b.WriteString("\n" + r.text)
		total -= r.count
	}
	if total == 1 {
		b.WriteString("\nand 1 more " + unit)
	} else if total > 1 {
		fmt.Fprintf(&b, "\nand %d more %ss", total, unit)
	}
	return b.String()
}

// ranges writes numbers in ascending order, such as "3-7, 9".
func ranges(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		end := i
		for end+1 < len(list) && list[end+1] == list[end]+1 {
			end++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxRow {
			b.WriteString("…")
			break
		}
		if end > i {
			fmt.Fprintf(&b, "%d-%d", list[i], list[end])
		} else {
			fmt.Fprintf(&b, "%d", list[i])
		}
		i = end + 1
	}
	return b.String()
}
