package work_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/errand-bot/errand/internal/gates"
	"github.com/errand-bot/errand/internal/runner/work"
)

// TestCheckGates runs commands that write reports, as programs of a repository do, and such that would fool a gate.
func TestCheckGates(t *testing.T) {
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	script(t, dir, `printf 'one\ntwo\nthree\n' > 'a new.sh'; echo '* binary' > .gitattributes; git add .; git commit -qm Work`)
	head := git(t, dir, "rev-parse", "HEAD")
	const half = `printf 'SF:a new.sh\nDA:1,1\nDA:2,0\nend_of_record\n' > lcov.info`
	const name = "coverage of changed lines: "
	missed := work.CheckResult{Name: name + "50 % (gate 60 %)", Code: 1, Gate: true,
		Tail: "Tests cover 1 of the 2 changed lines with code; at least 60 % are required. Add tests for these lines:\na new.sh: 2"}
	command := func(list ...string) (out []work.CheckCommand) {
		for _, c := range list {
			name, run, _ := strings.Cut(c, ": ")
			out = append(out, work.CheckCommand{Name: strings.TrimPrefix(name, "late "), Command: run, BeforePR: strings.HasPrefix(name, "late ")})
		}
		return out
	}
	tests := map[string]struct {
		commands []work.CheckCommand
		base     string // of gates
		want     []work.CheckResult
	}{
		"attributes hide nothing": {command("a: " + half), "", []work.CheckResult{{Name: "a"}, missed}},
		"late commands come last": {command("late b: test -e first && "+half, "a: touch first"), "", []work.CheckResult{{Name: "a"}, {Name: "b"}, missed}},
		"nothing late after a failure": {command("late b: "+half, "a: exit 3", "c: true"), "", []work.CheckResult{
			{Name: "a", Code: 3}, {Name: "c"}, {Name: "b", Skipped: "another check failed"}, {Name: "coverage of changed lines (gate 60 %)", Gate: true, Skipped: "another check failed"}}},
		"a command that changes the repository": {command("a: git add -A; git commit -qm more; git config diff.external true; rm -rf .git; " + half), "", []work.CheckResult{{Name: "a"}, missed}},
		"a link out of the checkout": {command("a: " + half + `; mv lcov.info "$HOME"; ln -s "$HOME/lcov.info" .`), "", []work.CheckResult{{Name: "a"},
			{Name: name + "unknown (gate 60 %)", Code: 1, Gate: true, Tail: "No command of check wrote a report"}}},
		"a folder that is a link": {command("a: " + half + `; mkdir "$HOME/x"; mv lcov.info "$HOME/x"; ln -s "$HOME/x" .`), "", []work.CheckResult{{Name: "a"},
			{Name: name + "unknown (gate 60 %)", Code: 1, Gate: true, Tail: "No command of check wrote a report"}}},
		"a pipe": {command("a: mkfifo lcov.info"), "", []work.CheckResult{{Name: "a"},
			{Name: name + "unknown (gate 60 %)", Code: 1, Gate: true, Tail: "No command of check wrote a report"}}},
		"nothing to run on": {command("a: cat {affected_modules}", "late b: ls {affected_modules}"), "", []work.CheckResult{{Name: "a", Skipped: "no module is affected"}, {Name: "b", Skipped: "no module is affected"},
			{Name: "coverage of changed lines (gate 60 %)", Gate: true, Skipped: "there is no report, because commands had nothing to run on"}}},
		"nothing to run on for one": {command("a: true", "b: ls {affected_modules}"), "", []work.CheckResult{{Name: "a"}, {Name: "b", Skipped: "no module is affected"},
			{Name: name + "unknown (gate 60 %)", Code: 1, Gate: true, Tail: "No command of check wrote a report"}}},
		"nothing to run on at first": {command("a: ls {affected_modules}", "b: true"), "", []work.CheckResult{{Name: "a", Skipped: "no module is affected"}, {Name: "b"},
			{Name: name + "unknown (gate 60 %)", Code: 1, Gate: true, Tail: "No command of check wrote a report"}}},
		"another base": {command("a: " + half), head, []work.CheckResult{{Name: "a"}, {Name: name + "the reports list no changed line (gate 60 %)", Gate: true}}},
		"a base that is not there": {command("a: " + half), strings.Repeat("1", 40), []work.CheckResult{{Name: "a"},
			{Name: name + "unknown (gate 60 %)", Code: 1, Gate: true, Tail: "The changes cannot be compared with the base: "}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, done, log, err := checked(t, t.TempDir(), work.CheckSpec{
				Dir: dir, Head: head, Base: o.head, GateBase: tt.base, Isolation: "subreaper", Commands: tt.commands, Gates: gates.Gates{Coverage: 60},
			})
			if err != nil {
				t.Fatalf("%v: %s", err, log)
			}
			ok := true
			for i := range got {
				ok = ok && got[i].Code == 0
				if !got[i].Gate {
					got[i].Tail = ""
				} else if want := tt.want[len(tt.want)-1].Tail; strings.HasPrefix(got[i].Tail, want) && want != "" {
					got[i].Tail = want
				}
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(work.CheckResult{}, "Type", "Duration")); diff != "" || done.OK != ok {
				t.Errorf("done %+v, results (-want +got):\n%s", done, diff)
			}
		})
	}
}
