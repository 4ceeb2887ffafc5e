package e2e

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// mergeActs are the acts of people that merge pull requests, now or later.
func mergeActs() map[string]act {
	return map[string]act{
		"merge": func(p *performer, a []string) error { return p.Merge(p.s.full, p.number(a, 0), simgithub.Merge{}) },
		"auto-merge": func(p *performer, a []string) error {
			return p.EnableAutoMerge(p.s.full, p.number(a, 0), strings.Join(a[1:], ""))
		},
		"no-auto-merge": func(p *performer, a []string) error { return p.DisableAutoMerge(p.s.full, p.number(a, 0)) },
		"enqueue": func(p *performer, a []string) error {
			return p.Enqueue(p.s.full, p.number(a, 0), len(a) > 1 && a[1] == "jump")
		},
		"dequeue": func(p *performer, a []string) error { return p.Dequeue(p.s.full, p.number(a, 0)) },
	}
}

// ruleCmd changes the rules about merging into the default branch, or runs its merge queue: repo require [CHECK …] | up-to-date [no] |
// merges METHOD … (those that are allowed) | auto-merge [no] (can be enabled) | merge-queue [no] |
// merge-queue run [REASON] (merges the first pull request in the queue, or removes it for a reason such as CI_FAILURE; prints its number).
func ruleCmd(ts *testscript.TestScript, args []string) {
	s := of(ts)
	g, base, on := s.w.GitHub, s.repo().DefaultBranch, len(args) < 2 || args[1] != "no"
	switch args[0] {
	case "require":
		var list []simgithub.RequiredCheck
		for _, name := range args[1:] {
			list = append(list, simgithub.RequiredCheck{Context: name})
		}
		ts.Check(g.RequireChecks(s.full, base, list...))
	case "up-to-date":
		ts.Check(g.RequireUpToDate(s.full, base, on))
	case "merges":
		ts.Check(g.AllowMerges(s.full, args[1:]...))
	case "auto-merge":
		ts.Check(g.AllowAutoMerge(s.full, on))
	case "merge-queue":
		if len(args) < 2 || args[1] != "run" {
			ts.Check(g.RequireMergeQueue(s.full, base, on))
			return
		}
		n, err := g.RunMergeQueue(s.full, base, strings.Join(args[2:], ""))
		ts.Check(err)
		fmt.Fprintln(ts.Stdout(), n)
	default:
		ts.Fatalf("unknown argument %q", args[0])
	}
}
