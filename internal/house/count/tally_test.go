package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTally(t *testing.T) {
	t.Parallel()
	type counts struct{ Passed, Failed, Skipped int }
	tests := map[string]struct {
		events string
		want   counts
		says   []string
		hides  []string
	}{
		"passed, with its output left out": {
			events: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":1}
{"Action":"output","Package":"p","Output":"ok  \tp\t1.0s\n"}
{"Action":"pass","Package":"p"}`,
			want:  counts{Passed: 1},
			says:  []string{"ok  \tp\t1.0s", "1 passed, 0 failed, 0 skipped"},
			hides: []string{"chatter"},
		},
		"failed, with its output": {
			events: `{"Action":"output","Package":"p","Test":"TestA/sub","Output":"    got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestA/sub"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`,
			want: counts{Failed: 2},
			says: []string{"got 1, want 2", "FAIL p TestA/sub\n", "FAIL p\n", "0 passed, 2 failed, 0 skipped"},
		},
		"passed in an earlier run, which is said": {
			events: `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"q","Test":"TestA"}
{"Action":"pass","Package":"q","Test":"TestB"}
{"Action":"output","Package":"p","Output":"ok  \tp\t1.0s\n"}
{"Action":"output","Package":"q","Output":"ok  \tq\t(cached)\n"}
{"Action":"pass","Package":"q"}`,
			want: counts{Passed: 3},
			says: []string{"q\t(cached)", "2 of those that passed did so in an earlier run", "3 passed, 0 failed, 0 skipped"},
		},
		"skipped, with its reason": {
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: no bwrap here\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestA"}`,
			want: counts{Skipped: 1},
			says: []string{"SKIP p TestA: a_test.go:3: no bwrap here\n"},
		},
		"proved, each line once, also in an earlier run": {
			events: `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: PROOF: walks: 100 played, seed 1\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"PROOF: controls: 3 planted, 3 noticed\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: PROOF: controls: 3 planted, 3 noticed\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: not a PROOF: at all\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t(cached)\n"}
{"Action":"pass","Package":"p"}`,
			want:  counts{Passed: 1},
			says:  []string{"p TestA\nPROOF: controls: 3 planted, 3 noticed\nPROOF: walks: 100 played, seed 1\n1 of those"},
			hides: []string{"at all", "b_test.go"},
		},
		"a package without tests is no skip": {
			events: `{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}
{"Action":"skip","Package":"q"}`,
			want: counts{},
			says: []string{"[no test files]"},
		},
		"a build that fails, and a line that is no event": {
			events: `{"ImportPath":"p","Action":"build-output","Output":"a.go:1: undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"fail","Package":"p","FailedBuild":"p"}
go: warning`,
			want: counts{Failed: 1},
			says: []string{"undefined: x", "FAIL p\n", "go: warning"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			tally := newTally(&out)
			if err := tally.read(strings.NewReader(tt.events)); err != nil {
				t.Fatal(err)
			}
			tally.report(1)
			if diff := cmp.Diff(tt.want, counts{tally.passed, tally.failed, tally.skipped}); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			for _, s := range tt.says {
				if !strings.Contains(out.String(), s) {
					t.Errorf("does not say %q:\n%s", s, out.String())
				}
			}
			for _, s := range tt.hides {
				if strings.Contains(out.String(), s) {
					t.Errorf("says %q:\n%s", s, out.String())
				}
			}
		})
	}
}

func TestRunNeedsATest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := run(t.Context(), []string{"test", "-json", "-run=NoTestHasThisName", "."}, 0, &out); code != 1 {
		t.Errorf("exit code %d of a run without tests, want 1:\n%s", code, out.String())
	}
}
