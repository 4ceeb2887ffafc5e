package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/tools/layers"
	"github.com/errand-bot/errand/state/vm"
)

const vmHead = `# The lifecycle of a VM

<!-- Made by ` + "`make generate`" + ` from the transition table in state/vm. -->

A VM has its own row in the store, from before the first call to the provider until a day after its end. When an event assigns
the VM to a task's run, or ends the run, the row becomes *busy* or *parked* in the same transaction as the task.

`

// vmLifecycle returns docs/vm-lifecycle.md.
func vmLifecycle(s *source) (string, error) {
	docs, err := s.load(layers.Module + "state/vm")
	if err != nil {
		return "", err
	}
	b := &strings.Builder{}
	b.WriteString(vmHead)
	vmDiagram(b)
	b.WriteString("\nNot drawn: every phase until *sleeping* leads to *failed* when the VM becomes unusable, and every phase to\n*deleting* when it is no longer needed.\n\n")
	for _, p := range vm.Phases() {
		doc := docs.consts[strings.ToUpper(string(p[:1]))+string(p[1:])]
		if doc == "" {
			return "", fmt.Errorf("VM phase %s has no doc comment", p)
		}
		fmt.Fprintf(b, "- **`%s`** — %s\n", p, after(doc))
	}
	b.WriteString("\n| From | Event | If | To | What happens |\n|---|---|---|---|---|\n")
	for _, r := range vm.Table() {
		fmt.Fprintf(b, "| %s | `%s` | %s | %s | %s |\n", vmPhases(r.From), r.On, cell(r.If), vmPhases([]vm.Phase{r.To}), cell(r.Doc))
	}
	return b.String(), nil
}

// vmDiagram draws the transitions of VMs except those to their deletion.
func vmDiagram(b *strings.Builder) {
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> intended\n")
	seen := map[[2]vm.Phase]bool{}
	for _, r := range vm.Table() {
		for _, from := range r.From {
			way := [2]vm.Phase{from, r.To}
			many := len(r.From) > 5 && from != vm.Parked && from != vm.Failed
			if r.To == vm.Same || r.To == from || seen[way] || many {
				continue
			}
			seen[way] = true
			fmt.Fprintf(b, "    %s --> %s\n", from, r.To)
		}
	}
	b.WriteString("    gone --> [*]\n```\n")
}

// vmPhases returns a list of phases. A list of nearly all is written as the missing ones.
func vmPhases(list []vm.Phase) string {
	words := func(list []vm.Phase) string {
		var out []string
		for _, p := range list {
			out = append(out, "`"+string(p)+"`")
		}
		return strings.ReplaceAll(strings.Join(out, ", "), "`same`", "*same*")
	}
	if all := vm.Phases(); len(list) > len(all)/2 {
		return "any but " + words(slices.DeleteFunc(all, func(p vm.Phase) bool { return slices.Contains(list, p) }))
	}
	return words(list)
}
