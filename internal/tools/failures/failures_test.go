package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said returns the events of a test that begins and prints lines.
func said(pkg, test string, lines ...string) (list []event) {
	list = append(list, event{Action: "run", Package: pkg, Test: test}, event{Action: "output", Package: pkg, Test: test, Output: "=== RUN   " + test + "\n"})
	for line := range strings.SplitSeq(strings.Join(lines, "\n"), "\n") {
		list = append(list, event{Action: "output", Package: pkg, Test: test, Output: line + "\n"})
	}
	return list
}

func end(action, pkg, test string) []event {
	return []event{{Action: action, Package: pkg, Test: test}}
}

func many(n int, format string) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf(format, i+1))
	}
	return list
}

func TestList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events [][]event
		want   string
	}{
		"nothing failed": {[][]event{said("p", "TestA", "    a_test.go:1: a log"), end("pass", "p", "TestA"), end("skip", "p", "TestB"), end("pass", "p", "")}, ""},
		"two tests at once": {
			[][]event{
				said("p", "TestA", "    a_test.go:1: bad:", "        got 1", "PROOF: none"), said("p", "TestB", "    b_test.go:2: worse <b>"), said("p", "TestC", "    c_test.go:3: well"),
				end("fail", "p", "TestB"), end("pass", "p", "TestC"), end("fail", "p", "TestA"), end("fail", "p", ""),
			},
			"p TestB\n    b_test.go:2: worse <b>\np TestA\n    a_test.go:1: bad:\n    got 1\n",
		},
		"a subtest": {
			[][]event{said("p", "TestA"), said("p", "TestA/x", "    a_test.go:1: bad"), said("p", "TestAB"), end("fail", "p", "TestA/x"), end("fail", "p", "TestA"), end("fail", "p", "TestAB")},
			"p TestA/x\n    a_test.go:1: bad\np TestAB\n",
		},
		"a long last message": {
			[][]event{said("p", "TestA", append([]string{"    a_test.go:1: log", "    a_test.go:2: bad:"}, many(20, "        line %d")...)...), end("fail", "p", "TestA")},
			"p TestA\n    a_test.go:1: log\n    a_test.go:2: bad:\n" + strings.Join(many(8, "    line %d\n"), ""),
		},
		"many messages": {
			[][]event{said("p", "TestA", many(7, "    a_test.go:%d: log\n        b\n        c")...), end("fail", "p", "TestA")},
			"p TestA\n" + strings.Join(many(7, "    a_test.go:%d: log\n    b\n")[2:], ""),
		},
		"a panic ends the program": {
			[][]event{said("p", "TestA", "    a_test.go:1: log"), said("p", "TestB"), said("p", "TestC", "panic: boom", "", "goroutine 1"), end("fail", "p", "TestC"), end("fail", "p", "")},
			"p TestC\n    panic: boom\n    goroutine 1\np TestA\n    a_test.go:1: log\n",
		},
		"a package fails outside of its tests": {
			[][]event{said("p", "TestA"), end("pass", "p", "TestA"), {{Action: "output", Package: "p", Output: "no disk\n"}, {Action: "output", Package: "p", Output: "FAIL\tp\t1s\n"}}, end("fail", "p", "")},
			"p\n    no disk\n",
		},
		"a build": {
			[][]event{
				{{Action: "build-output", ImportPath: "p [p.test]", Output: "a.go:1:2: undefined: y\n"}, {Action: "build-fail", ImportPath: "p [p.test]"}},
				{{Action: "fail", Package: "p", FailedBuild: "p [p.test]"}},
			},
			"build p [p.test]\n    a.go:1:2: undefined: y\n",
		},
		"a long line": {
			[][]event{said("p", "TestA", "    a_test.go:1: "+strings.Repeat("é", 400)), end("fail", "p", "TestA")},
			"p TestA\n    a_test.go:1: " + strings.Repeat("é", 300-len("a_test.go:1: ")) + "…\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, listed(t, c.events...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestListIsShort: when many tests fail, each has fewer lines, and some are left out.
func TestListIsShort(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{15: 15 * 10, 50: 50 * 3, 200: 150} {
		var events [][]event
		for i := range n {
			test := fmt.Sprintf("Test%d", i)
			events = append(events, said("p", test, append([]string{"    a_test.go:1: bad"}, many(20, "        %d")...)...), end("fail", "p", test))
		}
		if got := strings.Count(listed(t, events...), "\n"); got != want {
			t.Errorf("%d failed tests make %d lines, want %d", n, got, want)
		}
	}
}

func listed(t *testing.T, events ...[]event) string {
	t.Helper()
	var in, out strings.Builder
	in.WriteString("not JSON\n")
	for _, some := range events {
		for _, e := range some {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			in.Write(append(line, '\n'))
		}
	}
	if err := list(&out, strings.NewReader(in.String())); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
