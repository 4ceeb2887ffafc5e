package scan

import (
	"slices"
	"strings"
)

// classify returns the language and purpose of a command of CI, and false for one that is not known, or that is not for checking.
func classify(words []string) (language string, k kind, ok bool) {
	name, rest := words[0], words[1:]
	if publishes(words) || isIdle(words) {
		return "", 0, false
	}
	args := slices.DeleteFunc(slices.Clone(rest), func(w string) bool { return strings.HasPrefix(w, "-") })
	first := ""
	if len(args) > 0 {
		first = args[0]
	}
	switch name {
	case "go":
		k, ok = map[string]kind{"test": kindTest, "vet": kindLint, "build": kindBuild}[first]
		return "Go", k, ok
	case "npm", "pnpm", "yarn", "bun":
		k, ok = classifyScript(name, args)
		return "JavaScript", k, ok
	case "make", "just", "task":
		if len(args) == 1 && len(rest) == 1 {
			k, ok = scriptKind(first)
		}
		return "", k, ok
	case "pytest":
		return "Python", kindTest, true
	case "tox", "nox":
		k, ok = classifySessions(name, rest)
		return "Python", k, ok
	case "python", "python3":
		return "Python", kindTest, len(rest) > 1 && rest[0] == "-m" && (rest[1] == "pytest" || rest[1] == "unittest")
	case "uv", "poetry", "pdm", "pipenv", "hatch":
		k, ok = classifyPython(afterRun(rest))
		return "Python", k, ok
	case "cargo":
		k, ok = map[string]kind{"test": kindTest, "nextest": kindTest, "clippy": kindLint, "fmt": kindLint, "build": kindBuild, "check": kindLint}[first]
		return "Rust", k, ok && (first != "fmt" || slices.Contains(rest, "--check")) && (first != "nextest" || len(args) > 1 && args[1] == "run")
	case "mvn", "./mvnw":
		return "Java", kindTest, slices.ContainsFunc(args, func(w string) bool { return w == "test" || w == "verify" })
	case "gradle", "./gradlew":
		tasks, ok := gradleTasks(rest)
		return "Java", kindTest, ok && slices.ContainsFunc(tasks, func(w string) bool {
			return slices.Contains([]string{"test", "check", "build"}, w[strings.LastIndex(w, ":")+1:])
		})
	case "bundle":
		k, ok = classifyRuby(args)
		ok = ok && (args[1] != "rake" || len(rest) == len(args))
		return "Ruby", k, ok
	case "bin/rails", "rake":
		return "Ruby", kindTest, first == "test" && len(rest) == len(args)
	case "composer":
		if len(args) > 1 && (first == "run" || first == "run-script") {
			first = args[1]
		}
		k, ok = scriptKind(first)
		return "PHP", k, ok
	case "vendor/bin/phpunit", "./vendor/bin/phpunit", "vendor/bin/pest":
		return "PHP", kindTest, true
	case "dotnet":
		k, ok = map[string]kind{"test": kindTest, "build": kindBuild}[first]
		return "C#", k, ok
	case "mix":
		k, ok = map[string]kind{"test": kindTest, "format": kindLint, "credo": kindLint}[first]
		return "Elixir", k, ok && (first != "format" || slices.Contains(rest, "--check-formatted"))
	}
	return "", 0, false
}

// isWeak reports whether a command may check less than its kind: in a package.json, check and verify are often about types or format.
func isWeak(language string, words []string) bool {
	return language == "JavaScript" && (slices.Contains(words, "check") || slices.Contains(words, "verify"))
}

// classifyScript returns the purpose of a package manager's arguments.
func classifyScript(manager string, args []string) (kind, bool) {
	switch {
	case len(args) == 0:
		return 0, false
	case args[0] == "run" && len(args) > 1:
		return scriptKind(args[1])
	case args[0] == "test" || args[0] == "t":
		return kindTest, true
	case manager == "yarn" || manager == "pnpm":
		return scriptKind(args[0])
	}
	return 0, false
}

// classifyPython returns the purpose of a command that runs in a project's environment.
func classifyPython(words []string) (kind, bool) {
	if len(words) == 0 {
		return 0, false
	}
	switch words[0] {
	case "pytest":
		return kindTest, !isIdle(words)
	case "tox", "nox":
		return classifySessions(words[0], words[1:])
	case "test", "tests":
		return kindTest, true
	case "ruff":
		changes := len(words) > 1 && words[1] == "format" && !slices.Contains(words, "--check") && !slices.Contains(words, "--diff")
		return kindLint, !changes
	case "mypy", "flake8", "pylint", "pyright", "lint":
		return kindLint, true
	}
	return 0, false
}

func classifyRuby(args []string) (kind, bool) {
	if len(args) < 2 || args[0] != "exec" {
		return 0, false
	}
	switch args[1] {
	case "rspec":
		return kindTest, true
	case "rubocop":
		return kindLint, true
	case "rake":
		return kindTest, len(args) == 2 || args[2] == "test" || args[2] == "spec"
	}
	return 0, false
}
