package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of `go test -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build that failed
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// result is how one test ended.
type result struct {
	name    string // package and test
	why     string // of a skip
	seconds float64
}

// tally counts what go test reports.
type tally struct {
	out                     io.Writer
	passed, failed, skipped int
	earlier                 int // of passed, in packages whose run Go remembers: nothing that it read has changed

	inPackage map[string]int      // passed, by package
	output    map[string][]string // of tests that run, by package and test
	hurt      map[string]bool     // packages with a failed test
	broken    []string            // failed tests and packages
	skips     []result
	times     []result
	proofs    []string // what tests say that they proved, each line once
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, output: map[string][]string{}, hurt: map[string]bool{}, inPackage: map[string]int{}}
}

// read takes all events. Lines that are no event are printed as they are.
func (t *tally) read(from io.Reader) error {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				_, _ = t.out.Write(line)
			} else {
				t.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what go test says: %w", err)
		}
	}
}

// take counts one event.
func (t *tally) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		t.print(e.Output)
	case "output":
		t.prove(e.Output)
		if e.Test == "" && isVerdict(e.Output) {
			t.print(e.Output)
			if strings.HasSuffix(strings.TrimSpace(e.Output), "(cached)") {
				t.earlier += t.inPackage[e.Package]
			}
			return
		}
		t.output[key] = append(t.output[key], e.Output)
	case "pass", "fail", "skip":
		t.end(e, key)
		delete(t.output, key)
	}
}

// end counts the end of a test, or of a package.
func (t *tally) end(e event, key string) {
	r := result{name: strings.TrimSpace(key), seconds: e.Elapsed}
	if e.Action == "fail" {
		t.broken = append(t.broken, r.name)
		// Of a package whose tests failed only the word is left, which the closing list has, too.
		if out := strings.Join(t.output[key], ""); strings.TrimSpace(out) != "" && strings.TrimSpace(out) != "FAIL" {
			t.print("--- " + r.name + " failed:\n" + out)
		}
	}
	if e.Test == "" {
		// A package is no test, unless it failed by itself: it did not build, or panicked.
		if e.Action == "fail" && !t.hurt[e.Package] {
			t.failed++
		}
		return
	}
	t.times = append(t.times, r)
	switch e.Action {
	case "pass":
		t.passed++
		t.inPackage[e.Package]++
	case "fail":
		t.failed++
		t.hurt[e.Package] = true
	case "skip":
		t.skipped++
		r.why = reason(t.output[key])
		t.skips = append(t.skips, r)
	}
}

// proof begins what a test says that it proved: one line with its numbers and, where it drew by chance, the
// seed to draw the same again. t.Log puts the test's file and line before it.
const proof = "PROOF: "

// prove keeps a line that says what a test proved.
func (t *tally) prove(line string) {
	where, what, found := strings.Cut(line, proof)
	where = strings.TrimSpace(where)
	if !found || where != "" && !(strings.HasSuffix(where, ":") && strings.Contains(where, ".go:")) {
		return // it only speaks of one
	}
	if what = strings.TrimSpace(what); !slices.Contains(t.proofs, what) {
		t.proofs = append(t.proofs, what)
	}
}

// isVerdict reports whether a package's line says how it ended.
func isVerdict(line string) bool {
	for _, prefix := range []string{"ok ", "ok\t", "FAIL\t", "?   "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// reason is what a test said when it skipped itself.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return cmp.Or(strings.Join(said, " "), "no reason given")
}

// report prints the skips, the slowest tests, what was proved, what failed, and the closing line.
func (t *tally) report(slowest int) {
	for _, s := range t.skips {
		t.print(fmt.Sprintf("SKIP %s: %s\n", s.name, s.why))
	}
	slices.SortFunc(t.times, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, r := range t.times[:min(slowest, len(t.times))] {
		t.print(fmt.Sprintf("SLOW %6.2fs %s\n", r.seconds, r.name))
	}
	slices.Sort(t.proofs)
	for _, what := range t.proofs {
		t.print(proof + what + "\n")
	}
	for _, name := range t.broken {
		t.print("FAIL " + name + "\n")
	}
	if t.earlier > 0 {
		t.print(fmt.Sprintf("%d of those that passed did so in an earlier run, since which nothing that they read has changed\n", t.earlier))
	}
	t.print(fmt.Sprintf("%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped))
}

func (t *tally) print(s string) { _, _ = io.WriteString(t.out, s) }
