package command

import (
	_ "embed"
	"slices"
)

// presetAider, as the first word of the command adapter's command, stands for aider.sh; further words are passed to
// Aider as arguments.
const presetAider = "{aider}"

//go:embed aider.sh
var aiderScript string

// preset returns the command to run for a configured command, which may begin with a preset's name.
func preset(command []string) []string {
	if len(command) == 0 || command[0] != presetAider {
		return slices.Clone(command)
	}
	return append([]string{"sh", "-c", aiderScript, "aider"}, command[1:]...)
}
