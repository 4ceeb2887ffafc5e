package scan

import (
	"regexp"
	"slices"
	"strings"
)

// idle are flags, for every tool, with which a command tests nothing, never ends, changes files instead, or needs what a fresh
// checkout lacks. A choice of modules leaves out the others, and properties of Gradle select a variant.
var idle = []string{
	"--help", "-h", "--version", "--dry-run", "--dryrun", "--list", "--list-tests", "--listtests", "--collect-only", "--co", "--watch", "--watchall", "--no-run",
	"--fix", "--offline", "--fail-never", "--passwithnotests",
}

// idleOf are more such flags of single tools.
var idleOf = map[string][]string{
	"go": {"-c", "-n", "-list", "-fuzz", "-bench"}, "cargo": {"--frozen"}, "mvn": {"-o", "-fn", "-v", "-pl", "--projects", "-rf", "--resume-from"}, "gradle": {"-m", "-v"}, "dotnet": {"-t"}, "pytest": {"-V"},
}

// isIdle reports whether a command's flags keep it from checking anything.
func isIdle(words []string) bool {
	tool := plainTool(words[0])
	return slices.ContainsFunc(words[1:], func(w string) bool {
		flag, _, _ := strings.Cut(w, "=")
		if tool == "go" { // one dash or two
			flag = strings.Replace(flag, "--", "-", 1)
		}
		lower := strings.ToLower(w)
		return slices.Contains(idle, strings.ToLower(flag)) || slices.Contains(idleOf[tool], flag) ||
			tool == "gradle" && (strings.HasPrefix(w, "-P") || strings.HasPrefix(w, "--project-prop")) ||
			tool == "mvn" && (strings.Contains(lower, "skiptests") || strings.Contains(lower, "test.skip") || strings.Contains(lower, "failure.ignore"))
	})
}

// plainTool returns a program's name without its wrapper.
func plainTool(name string) string {
	switch name {
	case "./mvnw":
		return "mvn"
	case "./gradlew":
		return "gradle"
	}
	return name
}

// publishes reports whether a command also publishes something, as far as its words show. A build for release does not.
func publishes(words []string) bool {
	for i, w := range words {
		w = strings.ToLower(w)
		switch words[0] {
		case "cargo":
			if w == "--release" {
				continue
			}
		case "dotnet":
			setting := i > 0 && (words[i-1] == "-c" || words[i-1] == "--configuration")
			if setting && w == "release" || slices.Contains([]string{"-c:release", "-c=release", "--configuration:release", "--configuration=release", "-p:configuration=release", "/p:configuration=release"}, w) {
				continue
			}
		}
		for _, part := range []string{"deploy", "publish", "release", "upload", "sonar"} {
			if strings.Contains(w, part) {
				return true
			}
		}
	}
	return false
}

// gradleTasks returns the tasks that Gradle runs, and false if it leaves out its tests.
func gradleTasks(words []string) (tasks []string, ok bool) {
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w == "-x" || w == "--exclude-task":
			i++
			if i == len(words) {
				return nil, false
			}
			w = "-x" + words[i]
			fallthrough
		case strings.HasPrefix(w, "-x") || strings.HasPrefix(w, "--exclude-task="):
			_, task, _ := strings.Cut(w, "--exclude-task=")
			task = strings.TrimPrefix(w, "-x") + task
			if slices.Contains([]string{"test", "check", "build"}, task[strings.LastIndex(task, ":")+1:]) {
				return nil, false
			}
		case !strings.HasPrefix(w, "-"):
			tasks = append(tasks, w)
		}
	}
	return tasks, true
}

var (
	testEnvironment = regexp.MustCompile(`^(py|py3|py\d+(\.\d+)?|pypy3?\d*|tests?|unit|unittests?|cov|coverage|tests?-(unit|py\d*|\d(\.\d+)?))$`)
	lintEnvironment = regexp.MustCompile(`^(lint|style|typing|types?|typecheck|type-check|mypy|flake8|ruff|pylint|pyright|format-check)$`)
)

// classifySessions returns the purpose of the arguments of tox or nox: of all environments, or of some with well-known names.
func classifySessions(name string, args []string) (kind, bool) {
	k, chosen := kindLint, false
	for i := 0; i < len(args); i++ {
		w := args[i]
		list := ""
		switch {
		case i == 0 && name == "tox" && slices.Contains([]string{"run", "r", "run-parallel", "p"}, w):
			continue
		case slices.Contains([]string{"-v", "-vv", "-q", "-r", "-p", "--parallel", "--recreate", "-R", "--skip-missing-interpreters"}, w):
			continue
		case i > 0 && w == "auto" && (args[i-1] == "-p" || args[i-1] == "--parallel"):
			continue
		case slices.Contains([]string{"-e", "-s", "--session", "--sessions"}, w) && i+1 < len(args):
			i++
			list = args[i]
		case name == "tox" && strings.HasPrefix(w, "-e"):
			list = strings.TrimPrefix(w, "-e")
		case name == "nox" && chosen && !strings.HasPrefix(w, "-"): // -s takes several
			list = w
		default:
			return 0, false
		}
		for _, env := range strings.Split(list, ",") {
			switch {
			case testEnvironment.MatchString(env):
				k = kindTest
			case !lintEnvironment.MatchString(env):
				return 0, false
			}
		}
		chosen = true
	}
	if !chosen {
		k = kindTest
	}
	return k, true
}

// runnerFlags are the flags of uv run and similar commands, and whether a value follows.
var runnerFlags = map[string]bool{
	"--frozen": false, "--locked": false, "--isolated": false, "--dev": false, "--no-dev": false, "--no-default-groups": false, "--exact": false, "--no-group": true, "--only-group": true, "--all-extras": false, "--all-groups": false, "--all-packages": false,
	"--extra": true, "--group": true, "--with": true, "--python": true, "-p": true, "--package": true,
}

// afterRun returns the command that uv run and similar commands start.
func afterRun(words []string) []string {
	if len(words) == 0 || words[0] != "run" {
		return nil
	}
	for i := 1; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "-") {
			return words[i:]
		}
		flag, _, joined := strings.Cut(words[i], "=")
		valued, known := runnerFlags[flag]
		if !known {
			return nil
		}
		if valued && !joined {
			i++
		}
	}
	return nil
}
