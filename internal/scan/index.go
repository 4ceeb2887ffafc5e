package scan

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxFile is the size of the largest file whose content is examined, in bytes.
const maxFile = 256 << 10

// An index answers questions about a tree.
type index struct {
	paths []string            // sorted, without those of vendored code
	named map[string][]string // paths by the names of their files, sorted
	known map[string]bool
	files map[string]string
	// messages are those of the newest commits.
	messages []string
	notes    []string
}

func newIndex(t Tree) *index {
	x := &index{messages: t.Messages, known: make(map[string]bool, len(t.Paths)), files: map[string]string{}, named: map[string][]string{}}
	for _, p := range t.Paths {
		if !isForeign(p) && !x.known[p] {
			x.known[p] = true
			x.paths = append(x.paths, p)
		}
	}
	slices.Sort(x.paths)
	for _, p := range x.paths {
		x.named[path.Base(p)] = append(x.named[path.Base(p)], p)
	}
	for _, p := range slices.Sorted(maps.Keys(t.Files)) {
		switch {
		case !x.known[p]:
		case len(t.Files[p]) > maxFile:
			x.note(clean(p) + " is too large and was not examined.")
		default:
			x.files[p] = t.Files[p]
		}
	}
	return x
}

// note adds a sentence, once, up to a limit.
func (x *index) note(text string) {
	if len(x.notes) < maxFacts && !slices.Contains(x.notes, text) {
		x.notes = append(x.notes, text)
	}
}

func (x *index) has(p string) bool { return x.known[p] }

// first returns the first of the names that exists in a folder, as a path.
func (x *index) first(dir string, names ...string) string {
	for _, n := range names {
		if p := join(dir, n); x.known[p] {
			return p
		}
	}
	return ""
}

// text returns the content of a file, or "".
func (x *index) text(p string) string { return x.files[p] }

// foreign are folders whose files other projects wrote, or that contain examples.
var foreign = []string{"node_modules", "bower_components", "vendor", "third_party", "testdata", "fixtures", "__fixtures__", ".venv", "venv", "Pods", "dist", ".git"}

// isForeign reports whether a path must not be considered.
func isForeign(p string) bool {
	if p == "" || path.IsAbs(p) || path.Clean(p) != p {
		return true
	}
	for dir, rest, more := strings.Cut(p, "/"); more; dir, rest, more = strings.Cut(rest, "/") {
		if dir == ".." || slices.Contains(foreign, dir) {
			return true
		}
	}
	return p == ".."
}

// plainDir matches folders that may be written into a command without quotes.
var plainDir = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$`)

// isHidden reports whether a character has no place in a visible line.
func isHidden(c rune) bool {
	return unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || unicode.Is(unicode.Cf, c) || c == '\u2028' ||
		c == '\u2029' || c == unicode.ReplacementChar
}

// dirs returns the folders with a file of one of these names: only the root if it has one, otherwise those nearest to it. Folders
// below one that counts do not count. The others are named in a note.
func (x *index) dirs(what string, names ...string) []string {
	var found []string
	for _, n := range names {
		for _, p := range x.named[n] {
			if path.Dir(p) == "." || plainDir.MatchString(path.Dir(p)) {
				found = append(found, path.Dir(p))
			}
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(depth(a)-depth(b), strings.Compare(a, b))
	})
	found = slices.Compact(found)
	if len(found) > 0 && found[0] == "." {
		return found[:1]
	}
	known := map[string]bool{}
	for _, d := range found {
		known[d] = true
	}
	var top []string
	for _, d := range found {
		above := path.Dir(d)
		for above != "." && !known[above] {
			above = path.Dir(above)
		}
		if above == "." {
			top = append(top, d)
		}
	}
	if len(top) > maxModules {
		x.note("There are more folders with " + what + " than are examined; commands for the first of them are proposed.")
		top = top[:maxModules]
	}
	return top
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return strings.Count(dir, "/") + 1
}

// in makes a command run in a folder, which is the root or a plain name.
func in(dir, run string) string {
	if dir == "." {
		return run
	}
	return "(cd " + dir + " && " + run + ")"
}

// extensions are the languages that are counted.
var extensions = map[string]string{
	".go": "Go", ".py": "Python", ".js": "JavaScript", ".mjs": "JavaScript", ".cjs": "JavaScript", ".jsx": "JavaScript", ".ts": "TypeScript",
	".tsx": "TypeScript", ".mts": "TypeScript", ".java": "Java", ".kt": "Kotlin", ".kts": "Kotlin", ".rs": "Rust", ".rb": "Ruby", ".php": "PHP", ".cs": "C#",
	".fs": "F#", ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".cxx": "C++", ".hpp": "C++", ".ex": "Elixir", ".exs": "Elixir", ".swift": "Swift",
	".scala": "Scala", ".sh": "Shell", ".bash": "Shell", ".vue": "Vue", ".svelte": "Svelte", ".dart": "Dart", ".tf": "Terraform", ".zig": "Zig",
}

const maxLanguages = 8

// languages counts the files of each language, the most frequent first.
func (x *index) languages() []Language {
	count := map[string]int{}
	for _, p := range x.paths {
		if l := extensions[strings.ToLower(path.Ext(p))]; l != "" {
			count[l]++
		}
	}
	var list []Language
	for _, l := range slices.Sorted(maps.Keys(count)) {
		list = append(list, Language{l, count[l]})
	}
	slices.SortStableFunc(list, func(a, b Language) int { return b.Files - a.Files })
	return list[:min(len(list), maxLanguages)]
}

// Limits on the files that are read.
const (
	maxWanted    = 80
	maxWorkflows = 15
	maxManifests = 30
)

// rootFiles are read in the root.
var rootFiles = []string{
	SettingsFile, "Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Taskfile.yml", "Taskfile.yaml", "package.json", "pnpm-workspace.yaml", "pyproject.toml",
	"tox.ini", "setup.cfg", "requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt", "go.mod", "go.work", "Cargo.toml", "composer.json", "Gemfile", "pom.xml", ".gitignore",
	".tool-versions", ".nvmrc", ".node-version", ".python-version", ".ruby-version", ".java-version", "rust-toolchain", "rust-toolchain.toml", "global.json", "CMakeLists.txt",
	"CONTRIBUTING.md", "CONTRIBUTING", "CONTRIBUTING.rst", ".github/CONTRIBUTING.md", "docs/CONTRIBUTING.md", ".github/dco.yml", ".github/pull_request_template.md", ".github/PULL_REQUEST_TEMPLATE.md",
}

// manifests are also read in other folders.
var manifests = []string{"go.mod", "package.json", "pyproject.toml", "composer.json", "requirements.txt", "Gemfile"}

// isWorkflow reports whether a path is a workflow of GitHub Actions.
func isWorkflow(p string) bool {
	return path.Dir(p) == ".github/workflows" && (path.Ext(p) == ".yml" || path.Ext(p) == ".yaml")
}

// likeliest returns the workflows to read if there are many: first those whose names suggest checks, last those that suggest
// something else.
func likeliest(workflows []string) []string {
	likely := func(p string) int {
		name := strings.ToLower(path.Base(p))
		has := func(word string) bool { return strings.Contains(name, word) }
		switch {
		case slices.ContainsFunc([]string{"release", "publish", "deploy", "stale", "label", "codeql", "scorecard", "bench", "docs", "docker", "nightly", "cron", "e2e", "depend"}, has):
			return 2
		case slices.ContainsFunc([]string{"test", "ci", "check", "build", "lint", "unit", "verify", "main", "pull", "pr"}, has):
			return 0
		}
		return 1
	}
	workflows = slices.Clone(workflows)
	slices.SortStableFunc(workflows, func(a, b string) int { return likely(a) - likely(b) })
	return workflows[:min(len(workflows), maxWorkflows)]
}

// Wanted returns the files whose contents Scan examines, at most 80.
func Wanted(paths []string) []string {
	x := newIndex(Tree{Paths: paths})
	var list []string
	for _, p := range rootFiles {
		if x.has(p) {
			list = append(list, p)
		}
	}
	var workflows, nested []string
	for _, p := range x.paths {
		switch {
		case isWorkflow(p):
			workflows = append(workflows, p)
		case path.Dir(p) != "." && slices.Contains(manifests, path.Base(p)):
			nested = append(nested, p)
		}
	}
	slices.SortStableFunc(nested, func(a, b string) int { return depth(a) - depth(b) })
	list = append(list, likeliest(workflows)...)
	list = append(list, nested[:min(len(nested), maxManifests)]...)
	return list[:min(len(list), maxWanted)]
}
