package scan

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"mvdan.cc/sh/v3/syntax"
)

// ci returns the configurations of CI.
func (x *index) ci() (list []Fact) {
	for _, p := range x.paths {
		name := ""
		switch {
		case isWorkflow(p):
			name = "GitHub Actions"
		case p == ".gitlab-ci.yml":
			name = "GitLab CI"
		case p == ".circleci/config.yml":
			name = "CircleCI"
		case p == "azure-pipelines.yml":
			name = "Azure Pipelines"
		case p == "Jenkinsfile":
			name = "Jenkins"
		case p == ".travis.yml":
			name = "Travis CI"
		case p == ".buildkite/pipeline.yml":
			name = "Buildkite"
		case p == ".drone.yml":
			name = "Drone"
		}
		if name != "" && len(list) < maxFacts {
			list = append(list, Fact{name, clean(p)})
		}
	}
	return list
}

const (
	maxScript   = 16 << 10 // bytes of one step
	maxCICounts = 100      // commands
)

// ciCommands returns the commands of tests, checks and builds that workflows for pushes and pull requests run, as far as they are
// plain: without variables, pipes or files.
func (x *index) ciCommands() (list []ciCommand) {
	unread := 0
	for _, p := range x.paths {
		if !isWorkflow(p) {
			continue
		}
		if _, read := x.files[p]; !read {
			unread++
		}
		root, ok := parseYAML(x.text(p))
		if !ok {
			x.note(clean(p) + " could not be read as YAML.")
		}
		if !startsForChanges(child(root, "on")) {
			continue
		}
		for _, job := range pairs(child(root, "jobs")) {
			if job.Key == nil {
				continue
			}
			if strings.HasPrefix(scalar(child(job.Value, "runs-on")), "windows") || isSpecial(scalar(job.Key)) {
				continue
			}
			for _, step := range elements(child(job.Value, "steps")) {
				if !isPlainStep(step) {
					continue
				}
				at := stepAt{file: p, job: scalar(job.Key), dir: cmp.Or(
					scalar(child(step, "working-directory")), scalar(child(job.Value, "defaults", "run", "working-directory")),
					scalar(child(root, "defaults", "run", "working-directory")),
				)}
				for _, c := range x.stepCommands(scalar(child(step, "run")), at) {
					same := func(other ciCommand) bool { return other.run == c.run }
					if len(list) < maxCICounts && !slices.ContainsFunc(list, same) {
						list = append(list, c)
					}
				}
			}
		}
	}
	if unread > 0 {
		x.note(fmt.Sprintf("Of the workflows, %d were not read; the names of the others are likelier to be those of checks.", unread))
	}
	return list
}

// special matches the names of jobs and folders whose tests need more than a checkout, or are not about the change.
var special = regexp.MustCompile(`(?i)(^|[^a-z])(e2e|end-?to-?end|integrations?|acceptance|smoke|bench(marks?)?|back-?compat|nightly|fuzz|examples?|canary|ecosystem)([^a-z]|$)`)

func isSpecial(name string) bool { return special.MatchString(name) }

// isPlainStep reports whether a step runs in a usual shell, without secrets or other expressions in its variables.
func isPlainStep(step ast.Node) bool {
	if shell := scalar(child(step, "shell")); shell != "" && shell != "bash" && shell != "sh" {
		return false
	}
	return !slices.ContainsFunc(pairs(child(step, "env")), func(p *ast.MappingValueNode) bool { return strings.Contains(scalar(p.Value), "${{") })
}

// startsForChanges reports whether a workflow runs for pushes to branches or for pull requests.
func startsForChanges(on ast.Node) bool {
	names := append(keysOf(on), scalar(on))
	for _, e := range elements(on) {
		names = append(names, scalar(e))
	}
	push := keysOf(child(on, "push"))
	tags := slices.Contains(push, "tags") || slices.Contains(push, "tags-ignore")
	onlyTags := tags && !slices.Contains(push, "branches") && !slices.Contains(push, "branches-ignore")
	return slices.ContainsFunc(names, func(n string) bool { return n == "push" && !onlyTags || n == "pull_request" || n == "merge_group" })
}

// A stepAt is the place of a step.
type stepAt struct{ file, job, dir string }

// stepCommands returns the known commands in a step's script.
func (x *index) stepCommands(text string, where stepAt) (list []ciCommand) {
	if text == "" || len(text) > maxScript || strings.Contains(text, "${{") {
		return nil
	}
	dir := path.Clean(where.dir) // "." if there is none
	for _, words := range plainCommands(text) {
		if dir != "." && !plainDir.MatchString(dir) {
			return nil
		}
		if words[0] == "cd" {
			dir = path.Join(dir, words[1])
			continue
		}
		language, k, ok := classify(words)
		if !ok || isSpecial(dir) {
			continue
		}
		list = append(list, ciCommand{
			proposal: proposal{language: language, kind: k, dir: dir, run: in(dir, x.rewritten(language, dir, words)),
				origin: at(where.file, "job "+where.job), rank: script, weak: isWeak(language, words)},
			workflow: clean(where.file),
		})
	}
	return list
}

// rewritten returns the command line, with the environment of Python in which its programs are installed, and so that .NET restores and
// builds what is missing.
func (x *index) rewritten(language, dir string, words []string) string {
	if language == "C#" { // a step before may have restored and built in a way that is not taken over
		words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "--no-restore" || w == "--no-build" })
	}
	line := strings.Join(words, " ")
	if language != "Python" || !slices.Contains([]string{"pytest", "python", "python3", "tox", "nox"}, words[0]) {
		return line
	}
	p := readPython(x.text(join(dir, "pyproject.toml")))
	r, ok := x.runner(dir, p)
	if words[0] == "tox" || words[0] == "nox" {
		if run, by, _ := x.sessions(dir, p, r, ok); run != "" {
			return by.prefix + line
		}
		return line
	}
	if !ok {
		return line
	}
	if words[0] == "pytest" {
		return r.prefix + line
	}
	module := strings.Join(words[2:], " ") // after python -m
	return strings.TrimSuffix(r.prefix, "python -m ") + "python -m " + module
}

// plainCommands returns the words of the commands of a script that are plain, in their order. A script that cannot be read, or that
// changes to a folder that is not certain, has none.
func plainCommands(text string) (list [][]string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	var visit func(s *syntax.Stmt, depth int)
	visit = func(s *syntax.Stmt, depth int) {
		if s == nil || s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 || depth > maxNesting {
			return
		}
		switch c := s.Cmd.(type) {
		case *syntax.BinaryCmd:
			if c.Op == syntax.AndStmt {
				visit(c.X, depth+1)
				visit(c.Y, depth+1)
			}
		case *syntax.CallExpr:
			if words := plainWords(c); len(words) > 0 {
				list = append(list, words)
			}
		}
	}
	for _, s := range file.Stmts {
		visit(s, 0)
	}
	certain := 0
	for _, words := range list {
		if words[0] == "cd" && len(words) == 2 && !strings.HasPrefix(words[1], "/") && !strings.HasPrefix(words[1], "-") {
			certain++
		}
	}
	if certain != changesOfFolder(file) {
		return nil
	}
	return list
}

// changesOfFolder counts the commands of a script that change its working directory.
func changesOfFolder(file *syntax.File) (n int) {
	syntax.Walk(file, func(node syntax.Node) bool {
		switch c := node.(type) {
		case *syntax.Subshell, *syntax.CmdSubst:
			return false
		case *syntax.CallExpr:
			for _, a := range c.Args[:min(len(c.Args), 2)] { // also after "command" or "builtin"
				if slices.Contains([]string{"cd", "pushd", "popd"}, a.Lit()) {
					n++
					break
				}
			}
		}
		return true
	})
	return n
}

// plainWords returns the words of a command if all are literal and need no quotes.
func plainWords(c *syntax.CallExpr) (words []string) {
	if len(c.Assigns) > 0 {
		return nil
	}
	for _, a := range c.Args {
		word := a.Lit()
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !isPlain(r) }) {
			return nil
		}
		words = append(words, word)
	}
	return words
}

// isPlain reports whether a character means only itself in a word of a shell.
func isPlain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._/:=,@%+-", r)
}
