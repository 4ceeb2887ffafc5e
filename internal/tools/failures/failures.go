package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxTotal    = 150 // lines of all tests
	maxLines    = 10  // lines of a test below its name
	maxMessages = 5   // of a test; its lines are shared among them
	maxRunes    = 300 // of a line
)

// event is a line of the output of `go test -json`.
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
}

// A subject is what can fail: a test, or with Test empty a package without its tests, or with Package empty a build.
type subject struct{ Package, Test, ImportPath string }

func (s subject) String() string {
	if s.Package == "" {
		return "build " + s.ImportPath
	}
	return strings.TrimSpace(s.Package + " " + s.Test)
}

// output is what a subject printed last.
type output struct {
	subject
	failed   bool
	messages [][]string // with their first lines
	other    []string   // lines before the first message
}

var (
	// message matches the first line of a message: of the package testing, of testscript, or of the runtime.
	message = regexp.MustCompile(`^\s*([\w.-]+\.go:\d+: |FAIL: |panic: |fatal error: |WARNING: DATA RACE)`)
	// noise matches lines that say nothing about a failure.
	noise = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME) .*|--- (FAIL|PASS|SKIP): .*|([\w.-]+\.go:\d+: )?PROOF: .*|FAIL(\t.*)?|exit status \d+|)$`)
)

func (o *output) add(line string) {
	line = strings.TrimRight(line, " \t\r\n")
	switch n := len(o.messages); {
	case noise.MatchString(line):
	case message.MatchString(line):
		o.messages = append(o.messages[max(0, n+1-maxMessages):], []string{line})
	case n == 0:
		o.other = append(o.other[max(0, len(o.other)+1-maxLines):], line)
	case len(o.messages[n-1]) < maxLines:
		o.messages[n-1] = append(o.messages[n-1], line)
	}
}

// lines returns the first lines of the messages, or the last other lines if there is no message; at most the given number.
func (o *output) lines(limit int) (list []string) {
	if len(o.messages) == 0 {
		return o.other[max(0, len(o.other)-limit):]
	}
	shown := o.messages[max(0, len(o.messages)-limit):]
	for i, m := range shown {
		share := (limit - len(list)) / (len(shown) - i) // shorter messages leave more for the next ones
		list = append(list, m[:min(len(m), share)]...)
	}
	return list
}

// read returns the output of what failed, in the order of the failures, then that of tests that had not ended when their package failed.
func read(r io.Reader) ([]*output, error) {
	var failed, begun []*output
	current, packages := map[subject]*output{}, map[string]bool{}
	for lines, err := bufio.NewReader(r), error(nil); err == nil; {
		var line []byte
		if line, err = lines.ReadBytes('\n'); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the output of tests: %w", err)
		}
		var e event
		if json.Unmarshal(line, &e) != nil || e.FailedBuild != "" {
			continue // the last line is cut if the disk is full; the build has its own events
		}
		s := subject{e.Package, e.Test, e.ImportPath}
		o := current[s]
		if o == nil {
			o = &output{subject: s}
			current[s] = o
		}
		switch e.Action {
		case "run":
			begun = append(begun, o)
		case "output", "build-output":
			o.add(e.Output)
		case "pass", "skip":
			o.messages, o.other, o.failed = nil, nil, false
		case "fail", "build-fail":
			o.failed, packages[e.Package] = true, true
			failed = append(failed, o)
		}
	}
	for _, o := range begun {
		if !o.failed && len(o.messages) > 0 && packages[o.Package] {
			failed = append(failed, o)
		}
	}
	return failed, nil
}

// list prints what failed. It omits a test or package without messages if something in it is listed.
func list(w io.Writer, r io.Reader) error {
	all, err := read(r)
	if err != nil {
		return err
	}
	shown := slices.DeleteFunc(slices.Clone(all), func(o *output) bool {
		return len(o.lines(1)) == 0 && slices.ContainsFunc(all, func(p *output) bool { return p != o && o.holds(p.subject) })
	})
	var text []string
	for _, o := range shown {
		text = append(text, o.String())
		for _, line := range o.lines(min(maxLines, max(1, maxTotal/len(shown)-1))) {
			text = append(text, "    "+cut(strings.TrimLeft(line, " ")))
		}
	}
	if more := len(text) - maxTotal; more > 0 {
		text = append(text[:maxTotal-1], fmt.Sprintf("… and %d more lines", more+1))
	}
	for _, line := range text {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether the subject is the package of another one, or a test with it as a subtest.
func (s subject) holds(o subject) bool {
	return s.Package != "" && s.Package == o.Package && (s.Test == "" || strings.HasPrefix(o.Test, s.Test+"/"))
}

func cut(line string) string {
	if utf8.RuneCountInString(line) > maxRunes {
		line = string([]rune(line)[:maxRunes]) + "…"
	}
	return line
}
