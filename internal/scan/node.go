package scan

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A nodePackage is the part of a package.json that commands depend on.
type nodePackage struct {
	valid      bool
	scripts    map[string]string
	manager    string // packageManager
	node       string // engines.node
	workspaces int
	text       string
}

// readPackage reads a package.json. Values of unexpected types count as missing.
func readPackage(text string) nodePackage {
	p := nodePackage{scripts: map[string]string{}, text: text}
	var raw map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &raw) != nil {
		return p
	}
	p.valid = true
	for name, value := range readPackageScripts(text) {
		if s, ok := value.(string); ok {
			p.scripts[name] = s
		}
	}
	_ = json.Unmarshal(raw["packageManager"], &p.manager)
	var engines map[string]any
	_ = json.Unmarshal(raw["engines"], &engines)
	p.node, _ = engines["node"].(string)
	var list []any
	var object struct {
		Packages []any `json:"packages"`
	}
	if json.Unmarshal(raw["workspaces"], &list) != nil {
		_ = json.Unmarshal(raw["workspaces"], &object)
		list = object.Packages
	}
	p.workspaces = len(list)
	return p
}

func managers() []string { return []string{"npm", "pnpm", "yarn", "bun"} }

// manager returns the package manager of a folder, the command that installs from its lock file, and the file that tells.
func (x *index) manager(dir string, p nodePackage) (name, install, origin string) {
	locks := []struct{ file, manager, install string }{
		{"pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"}, {"bun.lock", "bun", "bun install --frozen-lockfile"},
		{"bun.lockb", "bun", "bun install --frozen-lockfile"}, {"yarn.lock", "yarn", "yarn install --frozen-lockfile"},
		{"package-lock.json", "npm", "npm ci"}, {"npm-shrinkwrap.json", "npm", "npm ci"},
	}
	wanted, version, _ := strings.Cut(p.manager, "@")
	for _, l := range locks {
		if !x.has(join(dir, l.file)) || slices.Contains(managers(), wanted) && l.manager != wanted {
			continue
		}
		if l.manager == "yarn" && (x.has(join(dir, ".yarnrc.yml")) || wanted == "yarn" && !strings.HasPrefix(version, "1.")) {
			l.install = "yarn install --immutable"
		}
		return l.manager, l.install, at(join(dir, l.file), "")
	}
	if slices.Contains(managers(), wanted) {
		return wanted, wanted + " install", at(join(dir, "package.json"), "packageManager, and no lock file")
	}
	return "npm", "npm install", at(join(dir, "package.json"), "no lock file")
}

var (
	scriptName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9:._-]{0,40}$`)
	placeholder = regexp.MustCompile(`no test specified`)
)

// node proposes the scripts of package.json files.
func node(x *index) (list []proposal) {
	for _, dir := range x.dirs("package.json", "package.json") {
		file := join(dir, "package.json")
		p := readPackage(x.text(file))
		if !p.valid {
			if x.text(file) != "" {
				x.note(clean(file) + " could not be read as JSON, so its scripts are unknown.")
			}
			continue
		}
		const language = "JavaScript"
		manager, install, origin := x.manager(dir, p)
		if !p.needsInstall() && strings.HasSuffix(install, " install") && len(p.scripts) == 0 {
			continue // it has neither packages nor scripts
		}
		list = append(list, proposal{language: language, kind: kindInstall, dir: dir, run: in(dir, install), origin: origin, fresh: true})
		if placeholder.MatchString(p.scripts["test"]) {
			delete(p.scripts, "test")
		}
		for _, name := range named(slices.Sorted(maps.Keys(p.scripts))) {
			k, _ := scriptKind(name)
			list = append(list, proposal{language: language, kind: k, dir: dir, run: in(dir, runScript(manager, name)),
				origin: at(file, "script "+name), rank: script})
		}
		if p.workspaces > 0 && p.scripts["test"] == "" && manager == "npm" {
			list = append(list, proposal{
				language: language, kind: kindTest, dir: dir, run: in(dir, "npm test --workspaces --if-present"), origin: at(file, "workspaces"),
			})
		}
		if x.has(join(dir, "pnpm-workspace.yaml")) && p.scripts["test"] == "" && manager == "pnpm" {
			list = append(list, proposal{
				language: language, kind: kindTest, dir: dir, run: in(dir, "pnpm -r --if-present test"), origin: at(join(dir, "pnpm-workspace.yaml"), ""),
			})
		}
	}
	return list
}

func (p nodePackage) needsInstall() bool {
	return strings.Contains(p.text, `ependencies"`) || p.workspaces > 0
}

// runScript returns the command for a script.
func runScript(manager, name string) string {
	switch {
	case !scriptName.MatchString(name):
		return ""
	case name == "test" && manager != "bun": // bun test is bun's own test program
		return manager + " test"
	}
	return manager + " run " + name
}

// readPackageScripts returns the scripts of a package.json or composer.json, whose values need not be texts.
func readPackageScripts(text string) map[string]any {
	var file struct {
		Scripts json.RawMessage `json:"scripts"`
	}
	var scripts map[string]any
	if json.Unmarshal([]byte(text), &file) != nil || json.Unmarshal(file.Scripts, &scripts) != nil {
		return nil
	}
	return scripts
}
