package scan

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// A pythonProject is the part of a pyproject.toml that commands depend on.
type pythonProject struct {
	valid     bool
	requires  string   // requires-python
	extras    []string // names of optional dependencies for tests
	groups    []string // names of dependency groups for tests that uv does not install by itself
	isPackage bool     // it can be installed
	tools     map[string]any
}

// readPython reads a pyproject.toml. Values of unexpected types count as missing.
func readPython(text string) pythonProject {
	var raw map[string]any
	if text == "" || isDeep(text) || toml.Unmarshal([]byte(text), &raw) != nil {
		return pythonProject{}
	}
	p := pythonProject{valid: true}
	project, _ := raw["project"].(map[string]any)
	p.requires, _ = project["requires-python"].(string)
	optional, _ := project["optional-dependencies"].(map[string]any)
	for _, name := range []string{"dev", "test", "tests", "testing"} {
		if _, ok := optional[name]; ok {
			p.extras = append(p.extras, name)
		}
	}
	_, builds := raw["build-system"]
	p.isPackage = builds || project != nil
	p.tools, _ = raw["tool"].(map[string]any)
	groups, _ := raw["dependency-groups"].(map[string]any)
	uv, _ := p.tools["uv"].(map[string]any)
	for _, name := range []string{"test", "tests", "testing"} {
		if _, ok := groups[name]; ok && uv["default-groups"] == nil {
			p.groups = append(p.groups, name)
		}
	}
	return p
}

// A pythonRunner is a way to install a project's dependencies and to run programs with them.
type pythonRunner struct {
	install, origin string
	prefix          string // of programs
	fresh           bool
}

// venv is outside of the checkout, so that nothing in it is committed.
const venv = "~/.venv"

// runner returns how programs of a Python project are run.
func (x *index) runner(dir string, p pythonProject) (r pythonRunner, ok bool) {
	for _, l := range []struct {
		file string
		pythonRunner
	}{
		{"uv.lock", pythonRunner{install: "uv sync", prefix: "uv run ", fresh: true}},
		{"poetry.lock", pythonRunner{install: "poetry install", prefix: "poetry run ", fresh: true}},
		{"pdm.lock", pythonRunner{install: "pdm install", prefix: "pdm run ", fresh: true}},
		{"Pipfile", pythonRunner{install: "pipenv install --dev", prefix: "pipenv run ", fresh: true}},
	} {
		if x.has(join(dir, l.file)) {
			l.origin = at(join(dir, l.file), "")
			if l.file == "uv.lock" {
				l.install += p.uvFlags()
			}
			return l.pythonRunner, true
		}
	}
	if _, ok := p.tools["poetry"]; ok {
		return pythonRunner{"poetry install", at(join(dir, "pyproject.toml"), "tool.poetry"), "poetry run ", true}, true
	}
	var what []string
	var files []string
	for _, f := range []string{"requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt"} {
		if x.has(join(dir, f)) {
			what, files = append(what, "-r "+f), append(files, f)
		}
	}
	if p.isPackage || x.has(join(dir, "setup.py")) {
		self := "-e ."
		if len(p.extras) > 0 {
			self = "-e '.[" + strings.Join(p.extras, ",") + "]'"
		}
		what, files = append(what, self), append(files, x.first(dir, "pyproject.toml", "setup.py"))
	}
	if len(what) == 0 {
		return r, false
	}
	if x.testsWithPytest(dir, p) && !x.namesPytest(dir) {
		what = append(what, "pytest")
	}
	run := "python3 -m venv " + venv + " && " + venv + "/bin/python -m pip install -q " + strings.Join(what, " ")
	return pythonRunner{run, at(join(dir, files[0]), ""), venv + "/bin/python -m ", true}, true
}

// uvFlags returns the flags with which uv installs what tests need.
func (p pythonProject) uvFlags() (flags string) {
	for _, e := range p.extras {
		flags += " --extra " + e
	}
	for _, g := range p.groups {
		flags += " --group " + g
	}
	return flags
}

// sessions returns the command that runs a project's tests by tox or nox, and how to install that. The programs of the tests are
// installed by tox and nox themselves.
func (x *index) sessions(dir string, p pythonProject, r pythonRunner, hasRunner bool) (run string, by pythonRunner, origin string) {
	_, toxed := p.tools["tox"]
	name, args := "", ""
	switch file := x.first(dir, "noxfile.py", "tox.ini"); {
	case strings.HasSuffix(file, "noxfile.py"):
		name, origin = "nox", at(file, "")
	case file != "" || toxed:
		name, origin = "tox", at(x.first(dir, "tox.ini", "pyproject.toml"), "")
		if toxPythons.MatchString(x.text(join(dir, "tox.ini"))) || toxed && toxPythons.MatchString(x.text(join(dir, "pyproject.toml"))) {
			args = " -e py" // the others are the same tests with other versions
		}
	default:
		return "", r, ""
	}
	if hasRunner && r.prefix == "uv run " && x.names(dir, name) {
		return r.prefix + name + args, r, origin
	}
	by = pythonRunner{"python3 -m venv " + venv + " && " + venv + "/bin/python -m pip install -q " + name, origin, venv + "/bin/python -m ", true}
	return by.prefix + name + args, by, origin
}

// toxPythons matches an environment of tox for a version of Python, whose tests are also run by the environment py.
var toxPythons = regexp.MustCompile(`(^|[\s,"'=])py(\{|3\.?\d)`)

var pytestLine = regexp.MustCompile(`(?mi)(^|["'\s])pytest([\[\]a-z-]*)?\s*([<>=~!;"',\]]|$)`)

// namesPytest reports whether a file of requirements names pytest.
func (x *index) namesPytest(dir string) bool {
	for _, f := range []string{"pyproject.toml", "requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt"} {
		if pytestLine.MatchString(x.text(join(dir, f))) {
			return true
		}
	}
	return false
}

// testsWithPytest reports whether tests are written for pytest.
func (x *index) testsWithPytest(dir string, p pythonProject) bool {
	_, configured := p.tools["pytest"]
	return configured || x.first(dir, "pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py") != "" || x.namesPytest(dir) ||
		strings.Contains(x.text(join(dir, "setup.cfg")), "[tool:pytest]")
}

// python proposes the commands of Python projects.
func python(x *index) (list []proposal) {
	const language = "Python"
	for _, dir := range x.dirs("Python projects", "pyproject.toml", "setup.py", "requirements.txt", "Pipfile", "tox.ini", "noxfile.py") {
		p := readPython(x.text(join(dir, "pyproject.toml")))
		if !p.valid && x.text(join(dir, "pyproject.toml")) != "" {
			x.note(at(join(dir, "pyproject.toml"), "") + " could not be read as TOML.")
		}
		propose := func(k kind, run, origin string, r rank, fresh bool) {
			list = append(list, proposal{language: language, kind: k, dir: dir, run: in(dir, run), origin: origin, rank: r, fresh: fresh})
		}
		r, ok := x.runner(dir, p)
		locked := ok && !strings.HasPrefix(r.prefix, venv)
		if run, by, origin := x.sessions(dir, p, r, ok); run != "" && !(locked && x.testsWithPytest(dir, p) && x.namesPytest(dir)) {
			propose(kindInstall, by.install, by.origin, usual, by.fresh)
			propose(kindTest, run, origin, script, false)
			continue
		}
		if !ok {
			continue
		}
		propose(kindInstall, r.install, r.origin, usual, r.fresh)
		for _, t := range []string{"ruff", "mypy"} {
			if _, configured := p.tools[t]; configured && x.names(dir, t) {
				args := map[string]string{"ruff": "ruff check .", "mypy": "mypy ."}[t]
				propose(kindLint, r.prefix+args, at(join(dir, "pyproject.toml"), "tool."+t), usual, false)
			}
		}
		switch {
		case x.testsWithPytest(dir, p):
			propose(kindTest, r.prefix+"pytest", r.origin+", and tests for pytest", usual, false)
		case x.hasTests(dir):
			propose(kindTest, strings.TrimSuffix(r.prefix, "python -m ")+"python -m unittest discover", at(dir, "files named test_….py"), usual, false)
		}
	}
	return list
}

// names reports whether the requirements of a project name a program.
func (x *index) names(dir, program string) bool {
	quoted := []string{`"` + program, `'` + program, "\n" + program}
	for _, f := range []string{"pyproject.toml", "requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt"} {
		text := "\n" + x.text(join(dir, f))
		if slices.ContainsFunc(quoted, func(q string) bool { return strings.Contains(text, q) }) {
			return true
		}
	}
	return false
}

var testFile = regexp.MustCompile(`(^|/)test_[^/]*\.py$`)

func (x *index) hasTests(dir string) bool {
	return slices.ContainsFunc(x.paths, func(p string) bool {
		return (dir == "." || strings.HasPrefix(p, dir+"/")) && testFile.MatchString(p)
	})
}
