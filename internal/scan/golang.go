package scan

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// golang proposes the commands of Go modules. In a repository with several, checks run in those that a change affects.
func golang(x *index) []proposal {
	var modules []string
	for _, p := range x.named["go.mod"] {
		if dir := path.Dir(p); dir == "." || plainDir.MatchString(dir) {
			modules = append(modules, dir)
		}
	}
	if len(modules) == 0 {
		return nil
	}
	slices.SortFunc(modules, func(a, b string) int { return depth(a) - depth(b) })
	const language = "Go"
	if len(modules) == 1 {
		dir, file := modules[0], join(modules[0], "go.mod")
		return []proposal{
			{language: language, kind: kindInstall, dir: dir, run: in(dir, "go mod download"), origin: at(file, "")},
			{language: language, kind: kindLint, dir: dir, run: in(dir, "go vet ./..."), origin: at(file, "the usual check of Go")},
			{language: language, kind: kindTest, dir: dir, run: in(dir, "go test ./..."), origin: at(file, "the usual tests of Go")},
		}
	}
	origin := "go.mod in several folders"
	list := []proposal{}
	if x.has("go.work") {
		origin = "go.work"
		list = append(list, proposal{language: language, kind: kindInstall, dir: ".", run: "go mod download", origin: origin})
	} else {
		for _, dir := range modules[:min(len(modules), maxModules)] {
			list = append(list, proposal{language: language, kind: kindInstall, dir: dir, run: in(dir, "go mod download"), origin: at(join(dir, "go.mod"), "")})
		}
	}
	all := modules[:min(len(modules), maxWanted)]
	each := func(run string) string {
		return `for m in ` + ModulesPlaceholder + `; do [ ! -f "$m/go.mod" ] || (cd "$m" && ` + run + `) || exit 1; done`
	}
	return append(list,
		proposal{language: language, kind: kindLint, dir: ".", run: each("go vet ./..."), origin: at(origin, "the usual check of Go"), modules: all},
		proposal{language: language, kind: kindTest, dir: ".", run: each("go test ./..."), origin: at(origin, "the usual tests of Go"), modules: all},
	)
}

// layout describes how several modules are arranged.
func (x *index) layout() (list []Fact) {
	if x.has("go.work") {
		list = append(list, Fact{"Go workspace", "go.work"})
	}
	if pkg := readPackage(x.text("package.json")); pkg.workspaces > 0 {
		list = append(list, Fact{"workspaces of npm or yarn", "package.json"})
	}
	for _, f := range []Fact{
		{"pnpm workspace", "pnpm-workspace.yaml"}, {"Lerna", "lerna.json"}, {"Nx", "nx.json"}, {"Turborepo", "turbo.json"}, {"Rush", "rush.json"}, {"Bazel", "MODULE.bazel"}, {"Bazel", "WORKSPACE"},
		{"Git submodules", ".gitmodules"},
	} {
		if x.has(f.Origin) {
			list = append(list, f)
		}
	}
	if strings.Contains(x.text("Cargo.toml"), "[workspace]") {
		list = append(list, Fact{"Cargo workspace", "Cargo.toml"})
	}
	if strings.Contains(x.text("pom.xml"), "<modules>") {
		list = append(list, Fact{"Maven modules", "pom.xml"})
	}
	for _, name := range []string{"go.mod", "package.json", "pyproject.toml", "pom.xml", "Cargo.toml"} {
		if len(x.named[name]) > 1 {
			list = append(list, Fact{name + " in several folders", x.example(name)})
		}
	}
	return list
}

// example returns the first path of a name that is not in the root.
func (x *index) example(name string) string {
	for _, p := range x.named[name] {
		if path.Dir(p) != "." {
			return clean(p)
		}
	}
	return name
}

var (
	goDirective   = regexp.MustCompile(`(?m)^go[ \t]+([0-9][0-9A-Za-z.]*)[ \t]*(?://.*)?\r?$`)
	rustChannel   = regexp.MustCompile(`(?m)^[ \t]*channel[ \t]*=[ \t]*"([^"\n]{1,40})"`)
	sdkVersion    = regexp.MustCompile(`"version"[ \t]*:[ \t]*"([0-9][^"\n]{0,30})"`)
	plainVersion  = regexp.MustCompile(`^[A-Za-z0-9<>=^~|*][A-Za-z0-9 <>=^~|*./_,+-]{0,40}$`)
	toolVersionRE = regexp.MustCompile(`(?m)^[ \t]*([a-z][a-z0-9_-]{0,30})[ \t]+([A-Za-z0-9][A-Za-z0-9._+-]{0,40})`)
)

const maxVersions = 20

// versions returns the versions that files require.
func (x *index) versions() (list []Version) {
	add := func(tool, version, origin string) {
		if version = clean(version); plainVersion.MatchString(version) && len(list) < maxVersions {
			list = append(list, Version{tool, version, origin})
		}
	}
	for _, m := range toolVersionRE.FindAllStringSubmatch(x.text(".tool-versions"), maxVersions) {
		add(m[1], m[2], ".tool-versions")
	}
	for _, f := range []struct{ file, tool string }{
		{".nvmrc", "node"}, {".node-version", "node"}, {".python-version", "python"}, {".ruby-version", "ruby"}, {".java-version", "java"}, {"rust-toolchain", "rust"},
	} {
		line, _, _ := strings.Cut(strings.TrimSpace(x.text(f.file)), "\n")
		add(f.tool, line, f.file)
	}
	for _, f := range []struct {
		file, tool string
		re         *regexp.Regexp
	}{
		{"go.mod", "go", goDirective}, {"go.work", "go", goDirective}, {"rust-toolchain.toml", "rust", rustChannel}, {"global.json", "dotnet", sdkVersion},
	} {
		if m := f.re.FindStringSubmatch(x.text(f.file)); m != nil {
			add(f.tool, m[1], f.file)
		}
	}
	pkg := readPackage(x.text("package.json"))
	add("node", pkg.node, "package.json: engines")
	if name, version, ok := strings.Cut(pkg.manager, "@"); ok && slices.Contains(managers(), name) {
		version, _, _ = strings.Cut(version, "+") // a hash follows
		add(name, version, "package.json: packageManager")
	}
	add("python", readPython(x.text("pyproject.toml")).requires, "pyproject.toml: requires-python")
	return list
}
