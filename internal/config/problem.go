package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one error in a file.
type Problem struct {
	// Line counts from 1; 0 means that no line of the file causes the problem.
	Line int
	// Key is the path of the key, such as "github.app_id"; empty if the problem concerns the whole file.
	Key string
	// Text describes the mistake or the correction.
	Text string
}

// String returns "line 3: github.app_id: write …".
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Invalid is the error of a file that is not valid. It lists all problems in the order of the file.
type Invalid struct {
	Problems []Problem
}

// Error returns one problem per line.
func (e *Invalid) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// maxProblems is the maximum number of problems in an error.
const maxProblems = 20

// invalid returns an error with the problems, or nil if there are none. It looks up lines by key.
func invalid(problems []Problem, line func(key string) int) error {
	if len(problems) == 0 {
		return nil
	}
	for i := range problems {
		if problems[i].Line == 0 {
			problems[i].Line = line(problems[i].Key)
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	problems = slices.Compact(problems)
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems:maxProblems], Problem{Text: fmt.Sprintf("and %d more", more)})
	}
	return &Invalid{Problems: problems}
}

// report collects problems by key.
type report []Problem

// unless records a problem if ok is false.
func (r *report) unless(ok bool, key, format string, args ...any) {
	if !ok {
		*r = append(*r, Problem{Key: key, Text: fmt.Sprintf(format, args...)})
	}
}

// fail records err as a problem if it is not nil.
func (r *report) fail(key string, err error) {
	if err != nil {
		*r = append(*r, Problem{Key: key, Text: err.Error()})
	}
}
