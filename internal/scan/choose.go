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
	// weak reports that a command of CI may not be all there is of its kind.
	weak bool
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
func choose(all []proposal, ci []ciCommand) (setup, check []Command, instead []Replaced) {
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
	tests, _ := ofKind(kindTest, all, ci)
	for _, p := range tests {
		tested[p.language] = true
	}
	var rest []Command
	for _, k := range []kind{kindLint, kindBuild, kindTest} { // tests may need what a build makes
		list, replaced := ofKind(k, all, ci)
		if k != kindBuild {
			instead = append(instead, replaced...)
		}
		for _, p := range list {
			if k == kindBuild && !inCI(p, ci) && testsBuild(p.language, tested) {
				continue
			}
			rest = add(rest, withCI(p, ci))
		}
	}
	if len(rest) == 0 {
		return setup, nil, nil
	}
	return setup, append(check, rest...), instead
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

// A part is a part of a project: a language in a folder. The whole project is the root without a language.
type part struct{ language, dir string }

// ofKind returns the proposals of a kind: of each part those of CI, or else the best; and the usual commands that targets replace.
func ofKind(k kind, all []proposal, ci []ciCommand) (list []proposal, replaced []Replaced) {
	covered := map[part]bool{} // parts whose commands CI runs
	for _, c := range ci {
		if c.kind == k && len(list) < maxCommands {
			covered[part{c.language, c.dir}] = covered[part{c.language, c.dir}] || !c.weak
			list = append(list, c.proposal)
		}
	}
	var own, general []proposal // of languages, and of the whole project
	missed := false             // a language has only its usual command, which a target of the project replaces
	for _, p := range all {
		switch {
		case p.kind != k || covered[part{p.language, p.dir}] || covered[part{"", "."}] || p.rank < bestRank(k, p, all):
		case p.language == "":
			general = append(general, p)
		default:
			missed = missed || p.rank < script
			own = append(own, p)
		}
	}
	if len(general) > 0 && (missed || len(list)+len(own) == 0) {
		var by []string
		for _, p := range general {
			by = append(by, p.run)
		}
		own = slices.DeleteFunc(own, func(p proposal) bool {
			if p.rank < script {
				replaced = append(replaced, Replaced{p.command(), by})
			}
			return p.rank < script
		})
		return append(append(list, own...), general...), replaced
	}
	return append(list, own...), nil
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
