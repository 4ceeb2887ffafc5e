package shellrules

import (
	"path"
	"slices"
	"strings"
)

// BaseCommands returns the commands that every list of allowed commands includes: those that inspect files, text and
// the system, and those that create, move and remove files, which agents can also do with their other tools.
func BaseCommands() []string {
	return []string{
		"[", "awk", "base64", "basename", "cat", "cd", "chmod", "cksum", "cmp", "column", "comm", "cp", "cut", "date", "df", "diff", "dirname", "du", "echo",
		"egrep", "expand", "expr", "false", "fgrep", "file", "find", "fold", "free", "grep", "gunzip", "gzip", "head", "hexdump", "hostname", "id", "install", "join", "jq",
		"less", "ln", "ls", "md5sum", "mkdir", "mktemp", "mv", "nl", "nproc", "od", "paste", "patch", "printenv", "printf", "ps", "pwd", "pgrep", "readlink",
		"realpath", "rev", "rg", "rm", "rmdir", "sed", "seq", "sha1sum", "sha256sum", "sha512sum", "shuf", "sleep", "sort", "split", "stat", "strings", "tac", "tail", "tar", "tee", "test", "touch",
		"tr", "tree", "true", "truncate", "tsort", "uname", "uniq", "unzip", "uptime", "wc", "which", "whoami", "xxd", "yes", "zcat",
	}
}

// buildTools returns the build commands of a repository, by the name or pattern of a file that implies them.
func buildTools() []struct{ file, commands string } {
	return []struct{ file, commands string }{
		{"go.mod", "go gofmt goimports golangci-lint staticcheck"}, {"go.work", "go gofmt"},
		{"package.json", "npm npx node yarn pnpm corepack"}, {"tsconfig.json", "tsc"}, {"deno.json", "deno"}, {"bun.lock*", "bun bunx"},
		{"pyproject.toml", pythons}, {"requirements*.txt", pythons}, {"setup.py", pythons}, {"setup.cfg", pythons}, {"Pipfile", pythons + " pipenv"}, {"tox.ini", pythons},
		{"Cargo.toml", "cargo rustc rustfmt rustup"},
		{"pom.xml", "mvn ./mvnw java javac"}, {"build.gradle*", "gradle ./gradlew java javac"}, {"settings.gradle*", "gradle ./gradlew"}, {"build.sbt", "sbt"},
		{"Makefile", "make"}, {"makefile", "make"}, {"GNUmakefile", "make"}, {"justfile", "just"}, {"Justfile", "just"}, {"Taskfile.y*ml", "task"},
		{"CMakeLists.txt", "cmake ctest make ninja"}, {"meson.build", "meson ninja"}, {"configure", "./configure make"}, {"BUILD.bazel", "bazel"}, {"MODULE.bazel", "bazel"},
		{"Gemfile", "bundle ruby rake gem rspec"}, {"Rakefile", "rake ruby"}, {"composer.json", "composer php"}, {"mix.exs", "mix elixir"}, {"rebar.config", "rebar3"},
		{"*.csproj", "dotnet"}, {"*.sln", "dotnet"}, {"*.fsproj", "dotnet"}, {"Package.swift", "swift"}, {"pubspec.yaml", "dart flutter"}, {"stack.yaml", "stack"}, {"*.cabal", "cabal"},
		{"build.zig", "zig"}, {"dune-project", "dune opam"}, {"flake.nix", "nix"},
	}
}

const pythons = "python python3 pip pip3 pytest uv uvx tox ruff mypy black poetry"

// DetectCommands returns the commands that a repository needs beyond [BaseCommands]: git, the build tools implied by
// its files, given by their paths, and those that its configured commands, such as go test ./..., call. Files of other
// projects, in folders such as node_modules, imply none. The result is sorted, without duplicates.
func DetectCommands(files, commands []string) []string {
	list := []string{"git"}
	names := map[string]bool{}
	for _, file := range files {
		if !isForeign(file) {
			names[path.Base(file)] = true
		}
	}
	for _, t := range buildTools() {
		if anyMatches(t.file, names) {
			list = append(list, strings.Fields(t.commands)...)
		}
	}
	for _, line := range commands {
		calls, _ := Calls(line) // an unparsable rest is ignored
		for _, c := range calls {
			if name := c.Words[0]; !c.Builtin && !c.Opened && IsPlain(name) {
				list = append(list, name)
			}
		}
	}
	list = slices.DeleteFunc(list, func(c string) bool { return slices.Contains(BaseCommands(), c) })
	slices.Sort(list)
	return slices.Compact(list)
}

// isForeign reports whether a file belongs to another project, or is data of a test.
func isForeign(file string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(file), "/"), func(folder string) bool {
		return slices.Contains([]string{"node_modules", "vendor", "third_party", "testdata"}, folder)
	})
}

// anyMatches reports whether a name matches a pattern.
func anyMatches(pattern string, names map[string]bool) bool {
	for name := range names {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// IsPlain reports whether a text can be an entry of a list: the first words of a command, separated by single spaces,
// without characters that a shell or an agent program's rules would interpret.
func IsPlain(command string) bool {
	return command != "" && strings.Join(strings.Fields(command), " ") == command && command[0] != '-' &&
		!strings.ContainsAny(command, "()*?:,\"'\\`$;&|<>#!{}~=\x00")
}
