package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/tools/layers"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

const lifecycleHead = `# The lifecycle of a task

<!-- Made by ` + "`make generate`" + ` from the transition table in state/machine. -->

A task is errand's work on one issue. It is always in one of these phases, and only events change it: a webhook, a reaction, the end of
a run, the result of a job, or an expired time. [transitions.md](transitions.md) lists every transition.

`

// lifecycle returns docs/lifecycle.md.
func lifecycle(s *source) (string, error) {
	docs, err := s.load(layers.Module + "state")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(lifecycleHead)
	diagram(&b, machine.Table())
	b.WriteString("\n## Phases\n\n")
	for _, p := range state.Phases() {
		doc, err := constDoc(docs, p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "- **`%s`** — %s\n", p, doc)
	}
	b.WriteString("\n## Jobs\n\nShort jobs do the work between two phases. A worker claims a job under a lease with an increasing number (its epoch); the " +
		"result of a lost lease changes nothing. The states of a job:\n\n")
	fmt.Fprintf(&b, "- **`%s`** — %s\n", state.JobQueued, after(docs.consts["JobQueued"]))
	fmt.Fprintf(&b, "- **`%s`** — %s\n", state.JobClaimed, after(docs.consts["JobClaimed"]))
	return b.String(), nil
}

const transitionsHead = `# Every transition of a task

<!-- Made by ` + "`make generate`" + ` from the transition table in state/machine. -->

This is how the [phases of a task](lifecycle.md) change. The first matching row applies to an event; without one nothing changes. An empty
*From* means that there is no task yet; *same* does not change the phase.

`

// transitions returns docs/transitions.md.
func transitions(*source) (string, error) {
	var b strings.Builder
	b.WriteString(transitionsHead)
	b.WriteString("| From | Event | If | To | What happens |\n|---|---|---|---|---|\n")
	for _, r := range machine.Table() {
		on := "`" + string(r.On) + "`"
		if r.Verb != "" {
			on += " `" + string(r.Verb) + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", phases(r.From), on, cell(r.If), phases(r.To), cell(r.Doc))
	}
	return b.String(), nil
}

// constDoc returns the doc comment of a phase, whose constant is named after it: "Phase" + "PROpen" for
// pr_open.
func constDoc(docs *comments, p state.Phase) (string, error) {
	want := "phase" + strings.ReplaceAll(string(p), "_", "")
	for name, doc := range docs.consts {
		if strings.ToLower(name) == want && doc != "" {
			return link(after(doc)), nil
		}
	}
	return "", fmt.Errorf("phase %s has no doc comment", p)
}

// after removes "Name: " from a doc comment.
func after(doc string) string {
	if _, rest, ok := strings.Cut(doc, ": "); ok {
		return strings.ToUpper(rest[:1]) + rest[1:]
	}
	return doc
}

// link replaces the names of constants by their values, which people see.
func link(doc string) string {
	for _, p := range slices.Backward(state.Phases()) {
		var name strings.Builder
		for word := range strings.SplitSeq(string(p), "_") {
			if word == "pr" {
				word = "PR"
			}
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		doc = strings.ReplaceAll(doc, "Phase"+name.String(), "`"+string(p)+"`")
	}
	return doc
}

// diagram draws the transitions between phases. Transitions of nearly every phase would hide the others, so
// a sentence lists them.
func diagram(b *strings.Builder, table []machine.Row) {
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	seen := map[way]bool{}
	for _, r := range table {
		for _, w := range ways(r) {
			if !seen[w] && w.from != w.to {
				seen[w] = true
				fmt.Fprintf(b, "    %s --> %s\n", w.from, w.to)
			}
		}
	}
	fmt.Fprintf(b, "    %s --> [*]\n", state.PhaseDone)
	b.WriteString("```\n\nNot drawn, because nearly every phase has them: transitions to `cancelled` (unassigned, closed, `cancel`), to `failed` (`retry` " +
		"returns), to `interrupted` (returns automatically), to `awaiting_answer` (an answer returns), and by `replan` to a new plan.\n")
}

// way is an arrow of the diagram.
type way struct{ from, to state.Phase }

// ways returns the arrows of one row. If several phases lead to as many others, the first leads to the first,
// and so on: both lists are in the order of a task's life.
func ways(r machine.Row) []way {
	aside := []state.Phase{machine.Same, state.PhaseCancelled, state.PhaseFailed, state.PhaseInterrupted, state.PhaseAwaitingAnswer}
	skip := func(p state.Phase) bool { return slices.Contains(aside, p) }
	from, to := slices.DeleteFunc(slices.Clone(r.From), skip), slices.DeleteFunc(slices.Clone(r.To), skip)
	switch {
	case r.Verb == state.VerbReplan, len(from) > 6 && len(to) > 1:
		return nil
	case r.From == nil:
		from = []state.Phase{"[*]"}
	case len(from) > 6: // nearly every phase: the usual one represents all
		from = []state.Phase{state.PhasePROpen}
	}
	var list []way
	for i, f := range from {
		if f.Terminal() {
			continue
		}
		for j, t := range to {
			if len(from) == 1 || len(to) == 1 || len(from) == len(to) && i == j {
				list = append(list, way{f, t})
			}
		}
	}
	return list
}

// phases returns a list of phases. A list of nearly all is written as the missing ones.
func phases(list []state.Phase) string {
	all := state.Phases()
	switch {
	case len(list) == 0:
		return ""
	case len(list) == len(all):
		return "any"
	case len(list) > len(all)/2:
		var but []string
		for _, p := range all {
			if !slices.Contains(list, p) {
				but = append(but, "`"+string(p)+"`")
			}
		}
		return "any but " + strings.Join(but, ", ")
	}
	var out []string
	for _, p := range list {
		out = append(out, "`"+string(p)+"`")
	}
	return strings.ReplaceAll(strings.Join(out, ", "), "`same`", "*same*")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
