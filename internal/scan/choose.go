package scan

import (
	"slices"
	"strings"
)

// A kind is the purpose of a command.
type kind int

const (
	kindInstall kind = iota // of dependencies
	kindBuild
	kindLint
	kindTest
)

// A rank is how well a command is known to be the right one.
type rank int

const (
	usual  rank = iota // the usual one of its language
	script             // the project defines it
)

// A proposal is a possible command.
type proposal struct {
	language string // "" for targets that are not of one language, such as those of a Makefile
	kind     kind
	dir      string
	run      string
	origin   string
	rank     rank
	// fresh reports that an installation has to be repeated in the fresh checkout and home in which checks run.
	fresh bool
	// modules are those for which the command is repeated.
	modules []string
}

func (p proposal) command() Command {
	return Command{Run: p.run, Origin: p.origin, Install: p.kind == kindInstall, Tool: tool(p.run), Modules: p.modules}
}

// tool returns the program that a command starts, as far as its text shows.
func tool(run string) string {
	for word := range strings.FieldsSeq(strings.NewReplacer("(", " ", ")", " ").Replace(run)) {
		switch {
		case strings.Contains(word, "="): // a variable
		case word == "cd" || word == "for":
			_, rest, _ := strings.Cut(run, "&& ")
			return tool(rest)
		default:
			return word
		}
	}
	return ""
}

// A ciCommand is a command that CI runs.
type ciCommand struct {
	proposal
	workflow string
}

// choose selects the commands for the two lists. Of each kind and language, it prefers what CI runs, then the project's own scripts.
func choose(all []proposal, ci []ciCommand) (setup, check []Command) {
	for _, p := range all {
		if p.kind == kindInstall {
			c := withCI(p, ci)
			setup = add(setup, c)
			if p.fresh {
				check = add(check, c)
			}
		}
	}
	tested := map[string]bool{}
	for _, p := range ofKind(kindTest, all, ci) {
		tested[p.language] = true
	}
	var rest []Command
	for _, k := range []kind{kindLint, kindBuild, kindTest} { // tests may need what a build makes
		for _, p := range ofKind(k, all, ci) {
			if k == kindBuild && !inCI(p, ci) && testsBuild(p.language, tested) {
				continue
			}
			rest = add(rest, withCI(p, ci))
		}
	}
	if len(rest) == 0 {
		return setup, nil
	}
	return setup, append(check, rest...)
}

// testsBuild reports whether the tests of a language, or of the whole project, also build it.
func testsBuild(language string, tested map[string]bool) bool {
	switch language {
	case "":
		return len(tested) > 0
	case "JavaScript", "Python", "Ruby", "PHP": // the build is a script of its own
		return false
	}
	return tested[language] || tested[""]
}

// ofKind returns the proposals of a kind: of each language those of CI, or else the best.
func ofKind(k kind, all []proposal, ci []ciCommand) (list []proposal) {
	covered := map[string]bool{} // languages whose commands CI runs
	for _, c := range ci {
		if c.kind == k && len(list) < maxCommands {
			covered[c.language] = true
			list = append(list, c.proposal)
		}
	}
	general := slices.ContainsFunc(all, func(p proposal) bool { return p.kind == k && p.language == "" })
	for _, p := range all {
		switch {
		case p.kind != k || covered[p.language] || covered[""] || p.rank < bestRank(k, p, all):
		case general && p.language != "" && p.rank < script: // a target of the project takes care of it
		case p.language == "" && len(list) > 0: // CI runs the commands of languages instead
		default:
			list = append(list, p)
		}
	}
	return list
}

func bestRank(k kind, p proposal, all []proposal) (best rank) {
	for _, other := range all {
		if other.kind == k && other.language == p.language && other.dir == p.dir {
			best = max(best, other.rank)
		}
	}
	return best
}

func inCI(p proposal, ci []ciCommand) bool {
	return slices.ContainsFunc(ci, func(c ciCommand) bool { return c.run == p.run })
}

// withCI returns the command of a proposal with the workflow that runs it, too.
func withCI(p proposal, ci []ciCommand) Command {
	c := p.command()
	for _, other := range ci {
		if other.run == p.run && !strings.HasPrefix(c.Origin, other.workflow) {
			c.InCI = other.workflow
			break
		}
	}
	return c
}

// add adds a command unless it is there already, too long, or not one visible line.
func add(list []Command, c Command) []Command {
	if c.Run == "" || len(c.Run) > maxRun || strings.ContainsFunc(c.Run, isHidden) ||
		slices.ContainsFunc(list, func(other Command) bool { return other.Run == c.Run }) {
		return list
	}
	return append(list, c)
}

// scriptKind returns the purpose of a script or target by its name. Those that change files, never end or need more than a
// checkout have none.
func scriptKind(name string) (kind, bool) {
	switch strings.ToLower(name) {
	case "test", "tests", "unit", "unittest", "unit-test", "test:unit", "test-unit", "unit-tests", "test:ci", "test-ci", "check", "verify":
		return kindTest, true
	case "lint", "vet", "typecheck", "type-check", "types", "tsc", "fmt-check", "format-check", "format:check", "fmt:check", "check-format", "lint:check", "check-types", "check:types":
		return kindLint, true
	case "build", "compile":
		return kindBuild, true
	}
	return 0, false
}

// named chooses the scripts to run: all for linting, and one for tests and the build each.
func named(names []string) (chosen []string) {
	have := func(name string) bool { return slices.Contains(names, name) }
	for _, n := range names {
		if k, ok := scriptKind(n); ok && k == kindLint {
			chosen = append(chosen, n)
		}
	}
	for _, list := range [][]string{
		{"test", "tests", "test:unit", "test-unit", "unit-test", "unit-tests", "unit", "unittest", "test:ci", "test-ci", "check", "verify"}, {"build", "compile"},
	} {
		if i := slices.IndexFunc(list, have); i >= 0 {
			chosen = append(chosen, list[i])
		}
	}
	return chosen
}
