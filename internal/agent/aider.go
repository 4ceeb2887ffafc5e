package agent

import (
	_ "embed"
	"slices"
)

// presetAider as the first word of the adapter command's command stands for Aider, as aider.sh calls it;
// words behind it are more arguments of the program.
const presetAider = "{aider}"

//go:embed aider.sh
var aiderScript string

// preset returns the command that is run for one that may begin with a preset's name.
func preset(command []string) []string {
	if len(command) == 0 || command[0] != presetAider {
		return slices.Clone(command)
	}
	return append([]string{"sh", "-c", aiderScript, "aider"}, command[1:]...)
}
