package pushgate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/runes"
	"golang.org/x/text/unicode/norm"

	"github.com/errand-bot/errand/internal/changeset"
)

// refusedBy returns the rules by which adding a file at the path is refused.
func refusedBy(t testing.TB, path string, policy Policy) []string {
	t.Helper()
	b := &builder{}
	b.commit(b.file(path, "x"))
	policy.Scanner = scanner(t)
	var rules []string
	for _, r := range Judge(&b.cs, policy) {
		rules = append(rules, r.Rule)
	}
	return rules
}

// TestDefaultProtected: files that run commands or instruct tools automatically are protected unless the operator makes
// an exception.
func TestDefaultProtected(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		".claude/settings.json", "services/api/.claude/settings.json", "pkg/.claude/commands/x.md", ".claude", "pkg/.claude",
		"CLAUDE.md", "docs/CLAUDE.md", "AGENTS.md", "pkg/AGENTS.md", "GEMINI.md", ".mcp.json", "pkg/.mcp.json", ".cursor/rules/a.mdc", ".cursorrules",
		".gemini/settings.json", ".codex/config.toml", ".github/copilot-instructions.md", ".aider.conf.yml",
		".vscode/tasks.json", "web/.vscode/tasks.json", ".devcontainer/devcontainer.json", ".devcontainer.json", "app.code-workspace",
		".idea/runConfigurations/x.xml", ".envrc",
		".gitlab-ci.yml", ".circleci/config.yml", ".travis.yml", "azure-pipelines.yml", "azure-pipelines-release.yml", "Jenkinsfile", "ci/Jenkinsfile.release",
		".buildkite/pipeline.yml", ".drone.yml", ".woodpecker.yaml", ".woodpecker/build.yaml", "appveyor.yml", ".appveyor.yml", "bitbucket-pipelines.yml",
		".cirrus.yml", ".semaphore/semaphore.yml", ".teamcity/settings.kts", ".gitea/workflows/a.yml", ".forgejo/workflows/a.yaml", ".tekton/push.yaml", ".builds/a.yml",
		"packages/a/.husky/pre-commit", ".lefthook.toml",
	} {
		if rules := refusedBy(t, path, Policy{}); !slices.Contains(rules, RuleProtected) {
			t.Errorf("%s: refused by %v", path, rules)
		}
	}
	for _, path := range []string{
		"docs/agents.txt", "src/claude.go", "CLAUDE.md.tmpl", "docs/vscode/tasks.json", ".github/ISSUE_TEMPLATE/bug.yml", ".editorconfig", ".gitignore",
		"Jenkins.md", "docs/ci.md", "templates/.gitlab-ci.yml", "cloudbuild/main.go", ".idea/modules.xml", "runner/.runfile", "Makefile", "package.json",
	} {
		if rules := refusedBy(t, path, Policy{}); len(rules) > 0 {
			t.Errorf("%s: refused by %v", path, rules)
		}
	}
}

// TestLookAlikes: paths that some system resolves to a protected path or to git's directory are refused.
func TestLookAlikes(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"zero width":                        ".hus\u200bky/pre-commit",
		"a joiner, which HFS+ ignores":      ".hus\u200dky/pre-commit",
		"a non-joiner":                      ".g\u200cithub/workflows/x.yml",
		"a variation selector":              "AGENTS\ufe0f.md",
		"a soft hyphen":                     "CLA\u00adUDE.md",
		"a combining grapheme joiner":       ".cla\u034fude/settings.json",
		"a Hangul filler":                   "AGENTS\u3164.md",
		"a long s":                          ".hu\u017fky/pre-commit",
		"a Kelvin sign":                     ".hus\u212ay/pre-commit",
		"a dotless i":                       ".c\u0131rcleci/config.yml",
		"full width":                        ".ｇｉｔｈｕｂ/workflows/x.yml",
		"a full-width dot":                  "\uff0egithub/workflows/x.yml",
		"a full-width slash":                ".github\uff0fworkflows\uff0fx.yml",
		"a script capital":                  ".gitlab-ci.y\u2133l",
		"a dot at the end":                  ".github./workflows/x.yml",
		"a space at the end":                ".github/workflows /x.yml",
		"a stream":                          "AGENTS.md::$DATA",
		"a folder's stream":                 ".husky::$INDEX_ALLOCATION/pre-commit",
		"a backslash":                       `.github\workflows\x.yml`,
		"a short name":                      "HUSKY~1/pre-commit",
		"a short name with an ending":       "ERRAND~1.YML",
		"a short name made of a checksum":   "CL3A4F~1/settings.json",
		"submodules' list, long s":          ".gitmodule\u017f",
		"submodules' list, short":           "GITMOD~1",
		"git's directory, joined":           ".g\u200dit/config",
		"git's directory, nested":           "a/.gi\u2060t/hooks/post-checkout",
		"git's directory, full width":       "．ｇｉｔ/config",
		"git's directory, with a stream":    ".git:x/config",
		"git's directory, short and joined": "g\u200cit~1/config",
	} {
		if rules := refusedBy(t, path, Policy{}); len(rules) == 0 {
			t.Errorf("%s: %+q is accepted", name, path)
		}
	}
	for _, path := range []string{"docs/👨\u200d👩\u200d👧.md", "ünï/日本語.md", "a~b.txt", "notes~12345678.txt", "x.txt.~1~", "naïve️.md"} {
		if rules := refusedBy(t, path, Policy{}); len(rules) > 0 {
			t.Errorf("%q: refused by %v", path, rules)
		}
	}
	if rules := refusedBy(t, "old~1.txt", Policy{Base: Tree{"old~1.txt": {}}}); len(rules) > 0 {
		t.Errorf("a short name that the base has: refused by %v", rules)
	}
	for _, target := range []string{".g\u200cit/config", ".GIT::$INDEX_ALLOCATION/config", "git~1/config", "．git/config", ".git./x"} {
		b := &builder{}
		b.commit(b.link("a", target))
		if got := Judge(&b.cs, Policy{Scanner: scanner(t)}); len(got) == 0 {
			t.Errorf("a link to %+q is accepted", target)
		}
	}
	b := &builder{}
	b.commit(b.link("deep/er/Root", "../.."), b.link("x", "deep/er/root/../y"))
	if got := Judge(&b.cs, Policy{Scanner: scanner(t)}); len(got) != 1 || got[0].Path != "x" {
		t.Errorf("a link out of the tree through another spelling of a link: got %+v", got)
	}
}

// disguise returns a different spelling of a path that some system resolves to the same file.
func disguise(path string, rng *rand.Rand) string {
	var b strings.Builder
	for _, r := range path {
		for rng.IntN(6) == 0 {
			b.WriteRune([]rune("\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0f\U000e0041\u034f\u115f")[rng.IntN(10)])
		}
		switch {
		case r == '/':
			b.WriteString([]string{"/", "/", ". /", " /", ":x/", "::$INDEX_ALLOCATION/"}[rng.IntN(6)])
		case rng.IntN(3) == 0 && unicode.IsLetter(r):
			b.WriteRune(unicode.SimpleFold(r))
		case rng.IntN(5) == 0 && r > ' ' && r < 0x7f:
			b.WriteRune(r - 0x20 + 0xff00) // full width
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// TestDisguisedPathsAreRefused tries random spellings of protected paths.
func TestDisguisedPathsAreRefused(t *testing.T) {
	t.Parallel()
	paths := []string{".errand.yml", ".husky/pre-commit", ".github/workflows/ci.yml", "x/.claude/settings.json", "AGENTS.md", "docs/CODEOWNERS", ".git/config", ".gitmodules", "skip/Jenkinsfile"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		path := disguise(paths[rng.IntN(len(paths))], rng)
		if rules := refusedBy(t, path, Policy{}); len(rules) == 0 {
			t.Fatalf("%+q is accepted", path)
		}
	}
}

// normalizePlainly normalizes a path independently of the code under test.
func normalizePlainly(path string) string {
	path = runes.Remove(runes.Predicate(func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r >= 0xFE00 && r <= 0xFE0F
	})).String(norm.NFKD.String(path))
	return strings.ToLower(strings.ToUpper(norm.NFKC.String(path)))
}

// FuzzLookAlikes checks that every path that normalizes to a protected one is refused, and that an exception for that
// path allows no other spelling.
func FuzzLookAlikes(f *testing.F) {
	for _, path := range []string{".husky/x", "pkg/CLAUDE.md", ".hu\u017fky/x", "AGENTS\u200d.md", ".ｇithub/workflows/a", ".g\u200cit/x", "a/b.go", "agents.md", ".claude"} {
		f.Add(path)
	}
	patterns := prepareGlobs(DefaultProtected())
	f.Fuzz(func(t *testing.T, path string) {
		plain := normalizePlainly(path)
		change := changeset.Change{Path: plain, Mode: changeset.ModeFile}
		git := slices.Contains(strings.Split(plain, "/"), ".git")
		if !git && !slices.ContainsFunc(patterns, protects(change)) {
			return
		}
		if rules := refusedBy(t, path, Policy{}); len(rules) == 0 {
			t.Errorf("%+q is accepted although some systems resolve it to %q", path, plain)
		}
		except := Policy{Operator: Settings{Unprotected: []string{globFor(plain)}}}
		if rules := refusedBy(t, path, except); len(rules) == 0 && path != plain {
			t.Errorf("%+q is allowed by the exception for %q", path, plain)
		}
	})
}

// TestCanonicalKeepsOrdinaryPaths: an ordinary path changes at most in case.
func TestCanonicalKeepsOrdinaryPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"a/b.go", "..a/b..c", "docs/ünï.md", "a b/c-d_e.txt", "a/.../b"} {
		if got, want := canonical(path), strings.ToLower(norm.NFKC.String(path)); got != want {
			t.Errorf("canonical(%q) = %q, want %q", path, got, want)
		}
	}
}
