package comment

import (
	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// vmText returns a VM's name, provider and isolation.
func vmText(vm *state.VM) string {
	s := markdown.Code(vm.Name)
	if s == "" {
		s = "unnamed"
	}
	s += " (" + markdown.Line(vm.Provider, 20)
	if vm.Provider == "" {
		s += "unknown provider"
	}
	what, apart := words.VM(vm.Kind)
	if what != "" {
		s += ", " + markdown.Line(what, 30)
	}
	switch {
	case vm.Kind == "plain":
		s += ": **" + apart + "**"
	case apart != "":
		s += ": " + apart
	}
	return s + ")"
}
