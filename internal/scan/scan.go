// Package scan proposes the settings of a repository, its `.errand.yml`, from the names of its files and the contents of a few
// small ones.
//
// It decides only, and runs nothing: every text comes from the repository and is untrusted. A command is proposed if a file
// names it (a script, a target, a step of CI), or if it is the usual one of a language whose manifest is there. Each
// proposal names its origin. Commands that CI runs take precedence over scripts, and scripts over the usual commands.
//
// Start with Wanted, which names the files to read, and Scan.
package scan

import (
	"path"
	"slices"
	"strings"
)

// A Tree is the tree of a commit.
type Tree struct {
	// Paths are those of all files, symbolic links included.
	Paths []string
	// Files are the contents of the files that Wanted names, by path. One that is missing counts as unreadable.
	Files map[string]string
	// Messages are those of the newest commits, without merges.
	Messages []string
}

// SettingsFile is the file with a repository's settings.
const SettingsFile = ".errand.yml"

// A Report is what was found in a tree, and the settings that follow from it. Texts of the repository are on one line, without
// control characters.
type Report struct {
	Languages []Language `json:"languages"`
	Versions  []Version  `json:"versions"`
	// Modules are the folders with a manifest that the commands cover, the root first.
	Modules []Module `json:"modules"`
	Layout  []Fact   `json:"layout"` // of a repository with several modules
	CI      []Fact   `json:"ci"`
	Rules   []Fact   `json:"rules"` // about contributions
	// Setup and Check are the proposed commands, in order.
	Setup []Command `json:"setup"`
	Check []Command `json:"check"`
	// Instead are the usual checks of languages that were left out for targets of the project.
	Instead []Replaced `json:"-"`
	// SignOff proposes signoff: contributions need a Signed-off-by line.
	SignOff bool `json:"signoff"`
	// Guides are the files with instructions that agents read by default, and the guide for contributors; empty without the latter.
	Guides []string `json:"guides"`
	Notes  []string `json:"notes"`
	// HasSettings reports that the tree has a SettingsFile.
	HasSettings bool `json:"has_settings"`
}

// Language is a language and the number of its files.
type Language struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
}

// Version is a tool's version that a file requires.
type Version struct {
	Tool    string `json:"tool"`
	Version string `json:"version"`
	Origin  string `json:"origin"`
}

// Module is a folder with a manifest.
type Module struct {
	Dir    string `json:"dir"` // "." is the root
	Kind   string `json:"kind"`
	Origin string `json:"origin"`
}

// Fact is something found, and the file in which it was.
type Fact struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
}

// A Command is a proposed command.
type Command struct {
	Run string `json:"run"`
	// Origin names the file, and where in it the command was found or why it follows from it.
	Origin string `json:"origin"`
	// InCI names the workflow that runs the same command, if it is not the origin.
	InCI string `json:"in_ci,omitempty"`
	// Install reports that the command only installs what others need.
	Install bool `json:"install,omitempty"`
	// Tool is the program that the command needs, such as npm.
	Tool string `json:"tool"`
	// Modules replace ModulesPlaceholder if the command is tried without a change.
	Modules []string `json:"-"`
	// Outcome is what happened when the command was tried; nil if it was not.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Replaced is the usual command of a language, and the targets of the project that are proposed in its place.
type Replaced struct {
	Command
	By []string
}

// A Status is how a command ended that was tried.
type Status string

// The statuses.
const (
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Untried   Status = "untried" // this host cannot try it
)

// An Outcome is the result of trying a command.
type Outcome struct {
	Status Status `json:"status"`
	// Reason is a clause for people if the command did not succeed, such as "exit code 1".
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`
	// Output is the end of the command's output if it did not succeed.
	Output string `json:"output,omitempty"`
}

// OnTrial returns the command as it is run without a change: with all modules in place of those that changed.
func (c Command) OnTrial() string {
	return strings.ReplaceAll(c.Run, ModulesPlaceholder, strings.Join(c.Modules, " "))
}

// ModulesPlaceholder stands for the changed modules in a check.
const ModulesPlaceholder = "{affected_modules}"

// Limits on what is proposed.
const (
	maxCommands = 20  // in one list, as in the settings
	maxRun      = 300 // bytes of a command
	maxModules  = 8   // of one language that get commands of their own
	maxFacts    = 30
	maxText     = 200 // characters of a text of the repository
	maxRemark   = 600 // characters of the remark about a command
)

// Scan examines a tree.
func Scan(t Tree) Report {
	x := newIndex(t)
	r := Report{
		Languages: x.languages(), Versions: x.versions(), HasSettings: x.has(SettingsFile),
		Layout: x.layout(), CI: x.ci(),
	}
	r.Rules, r.SignOff, r.Guides = x.rules()
	var all []proposal
	for _, find := range []func(*index) []proposal{
		golang, node, python, jvm, rust, ruby, php, dotnet, elixir, native, targets,
	} {
		all = append(all, find(x)...)
	}
	for i := range all {
		if len(all[i].modules) == 0 {
			r.addModule(all[i].dir, all[i].language, all[i].origin)
		}
	}
	r.Setup, r.Check, r.Instead = choose(all, x.ciCommands())
	if len(r.Setup) > maxCommands || len(r.Check) > maxCommands {
		r.Notes = append(r.Notes, "There are more commands than a list may have; the others were left out.")
		r.Setup, r.Check = r.Setup[:min(len(r.Setup), maxCommands)], r.Check[:min(len(r.Check), maxCommands)]
	}
	r.Notes = append(r.Notes, x.notes...)
	if len(r.Check) == 0 {
		r.Notes = append(r.Notes, "No command for tests was found: with the proposed file, errand would publish changes that nothing has checked.")
	}
	return r
}

func (r *Report) addModule(dir, kind, origin string) {
	if kind == "" || slices.ContainsFunc(r.Modules, func(m Module) bool { return m.Dir == dir && m.Kind == kind }) {
		return
	}
	file, _, _ := strings.Cut(origin, ": ")
	r.Modules = append(r.Modules, Module{Dir: dir, Kind: kind, Origin: file})
}

// Clean makes a text of the repository one line without control characters, and cuts it.
func Clean(text string) string { return clean(text) }

// clean makes a text of the repository one line without control characters, and cuts it.
func clean(text string) string { return cleanTo(maxText, text) }

// cleanTo is clean with a limit in characters.
func cleanTo(limit int, text string) string {
	text = strings.Map(func(c rune) rune {
		if isHidden(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "…"
	}
	return text
}

// at returns where something was found.
func at(file, where string) string {
	if where == "" {
		return clean(file)
	}
	return clean(file) + ": " + clean(where)
}

// join returns a path below a folder.
func join(dir, name string) string { return path.Join(dir, name) }
