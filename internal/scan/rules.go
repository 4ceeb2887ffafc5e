package scan

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	signOffText      = regexp.MustCompile(`(?i)signed-off-by|developer certificate of origin|git commit -s\b|--signoff`)
	conventionalText = regexp.MustCompile(`(?i)conventional commits?\b|conventionalcommits\.org`)
	signOffLine      = regexp.MustCompile(`(?m)^Signed-off-by: .+<.+>[ \t]*$`)
	conventionalLine = regexp.MustCompile(`^(feat|fix|chore|docs|refactor|tests?|ci|build|perf|style|revert)(\([^)\n]{1,60}\))?!?: `)
	claText          = regexp.MustCompile(`(?i)contributor license agreement|\bCLA\b`)
)

// rules returns the rules about contributions, whether they need a sign-off, and the files that agents have to read to know them: those that
// they read by default, and the guide for contributors.
func (x *index) rules() (list []Fact, signOff bool, guides []string) {
	add := func(name, origin string) {
		if origin != "" && len(list) < maxFacts {
			list = append(list, Fact{name, clean(origin)})
		}
	}
	guide := x.first(".", "CONTRIBUTING.md", ".github/CONTRIBUTING.md", "docs/CONTRIBUTING.md", "CONTRIBUTING", "CONTRIBUTING.rst")
	add("contribution guide", guide)
	text := x.text(guide)
	dco := x.first(".", ".github/dco.yml", "DCO", "DCO.txt", "DCO.md")
	if dco == "" && signOffText.MatchString(text) {
		dco = guide
	}
	template := x.template()
	if dco == "" && signOffText.MatchString(x.text(template)) {
		dco = template
	}
	if dco == "" {
		dco = x.habit(signOffLine)
	}
	signOff = dco != ""
	add("commits need a Signed-off-by line (DCO)", dco)
	if claText.MatchString(text) {
		add("a contributor license agreement is mentioned", guide)
	}
	add("Conventional Commits", x.conventional(guide))
	add("code owners", x.first(".", "CODEOWNERS", ".github/CODEOWNERS", "docs/CODEOWNERS"))
	add("pull request template", template)
	for _, f := range []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".errand/AGENT.md"} {
		if x.has(f) {
			add("instructions for agents", f)
			guides = append(guides, f)
		}
	}
	if guide == "" {
		return list, signOff, nil
	}
	return list, signOff, append(guides, guide)
}

// Limits on what the messages of commits show.
const (
	fewMessages = 10
	mostOf      = 0.9 // of the messages
)

// habit returns where a pattern was found that nearly all of the newest commits have, or "".
func (x *index) habit(pattern *regexp.Regexp) string {
	found := 0
	for _, m := range x.messages {
		if pattern.MatchString(m) {
			found++
		}
	}
	if len(x.messages) < fewMessages || float64(found) < mostOf*float64(len(x.messages)) {
		return ""
	}
	return fmt.Sprintf("%d of the newest %d commits", found, len(x.messages))
}

// conventional returns the file that asks for Conventional Commits, or how many commits follow them, or "".
func (x *index) conventional(guide string) string {
	for _, p := range x.paths {
		name := path.Base(p)
		if path.Dir(p) == "." && (strings.HasPrefix(name, "commitlint.config.") || strings.HasPrefix(name, ".commitlintrc") || name == ".czrc" || name == ".cz.toml") {
			return p
		}
	}
	switch {
	case strings.Contains(x.text("package.json"), `"@commitlint/`) || strings.Contains(x.text("package.json"), `"commitlint"`):
		return "package.json"
	case conventionalText.MatchString(x.text(guide)):
		return guide
	}
	return x.habit(conventionalLine)
}

// template returns the pull request template, whose name may be in any case.
func (x *index) template() string {
	i := slices.IndexFunc(x.paths, func(p string) bool {
		dir, name := path.Dir(p), strings.ToLower(path.Base(p))
		inFolder := strings.ToLower(path.Base(dir)) == "pull_request_template" && strings.HasSuffix(name, ".md")
		return slices.Contains([]string{".", ".github", "docs"}, dir) && strings.HasPrefix(name, "pull_request_template") || inFolder && depth(dir) <= 2
	})
	if i < 0 {
		return ""
	}
	return x.paths[i]
}
