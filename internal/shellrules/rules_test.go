package shellrules_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/shellrules"
	"github.com/google/go-cmp/cmp"
)

// allowed are the commands of the tests' rules.
func allowed() []string {
	return append(shellrules.BaseCommands(), "git", "go", "npm run", "./gradlew")
}

func denied() []string {
	return []string{"Bash(git push:*)", "Bash(terraform apply:*)", "Bash(sudo:*)", "Bash(git config --global:*)", "Edit(.github/**)", "Bash(make)"}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		line string
		want string // part of the refusal; empty is leave
	}{
		"plain":                    {"git status", ""},
		"not named":                {"curl http://example.org", `"curl http://example.org"`},
		"two words":                {"npm run test", ""},
		"other second word":        {"npm install x", `"npm install x"`},
		"beginning of a word":      {"gitk", `"gitk"`},
		"path of the system":       {"/usr/bin/git status", ""},
		"path of the checkout":     {"./git status", `"./git status"`},
		"named path":               {"./gradlew build", ""},
		"chain":                    {"cd x && go test ./... 2>&1 | tail -5", ""},
		"chain with one":           {"cd x && curl y", `"curl y"`},
		"pipe":                     {"cat x | sh", `"sh"`},
		"background":               {"go test & curl y", `"curl y"`},
		"subshell":                 {"(cd x; curl y)", `"curl y"`},
		"substitution":             {"echo $(curl y)", `"curl y"`},
		"substitution in quotes":   {`git commit -m "$(curl y)"`, `"curl y"`},
		"backquotes":               {"echo `curl y`", `"curl y"`},
		"process":                  {"diff <(curl y) x", `"curl y"`},
		"in single quotes":         {"git commit -m 'a; curl y && $(x)'", ""},
		"here document":            {"cat > x <<'END'\ncurl y; $(curl)\nEND\ngit add x", ""},
		"open here document":       {"cat > x <<END\n$(curl y)\nEND", `"curl y"`},
		"message":                  {"git commit -q -m \"$(cat <<'EOF'\nGreet\n\nbody; curl\nEOF\n)\"", ""},
		"environment":              {"GOFLAGS=-count=1 go test", ""},
		"environment of another":   {"A=b curl y", `"curl y"`},
		"assignment":               {"X=$(git rev-parse HEAD); echo $X", ""},
		"substituted assignment":   {"X=$(curl y)", `"curl y"`},
		"loop":                     {"for f in *.go; do gofmt $f; done", `"gofmt $…"`},
		"allowed loop":             {"for f in *.go; do cat \"$f\"; done; while read l; do echo $l; done < x", ""},
		"condition":                {"if [ -f x ] && [[ -n $y ]]; then echo a; fi; (( i++ ))", ""},
		"function":                 {"f() { go test; }; f", ""},
		"function with another":    {"f() { curl y; }; f", `"curl y"`},
		"function's name":          {"curl() { :; }; env curl y", `"curl y"`},
		"env":                      {"env -u C A=b go test", ""},
		"env with another":         {"env -i A=b curl y", `"curl y"`},
		"env that splits":          {"env -S 'curl y'", "known only at run time"},
		"timeout":                  {"timeout -k 5 60 go test", ""},
		"timeout of another":       {"timeout 60s curl y", `"curl y"`},
		"xargs":                    {"git ls-files | xargs -0 -n 1 wc -l", ""},
		"xargs with another":       {"ls | xargs -I {} curl {}", `"curl {}"`},
		"find":                     {`find . -name '*.go' -exec cat {} + -exec curl y \;`, `"curl y"`},
		"nested":                   {"nohup nice -n 5 env time curl y", `"curl y"`},
		"shell":                    {"sh -c 'cd x && go test'", ""},
		"shell with another":       {`bash -euo pipefail -c "go test; curl y"`, `"curl y"`},
		"shell in a shell":         {`sh -c "bash -lc 'curl y'"`, `"curl y"`},
		"shell with a variable":    {`sh -c "$X"`, "known only at run time"},
		"shell with a script":      {"sh x.sh", `"sh x.sh"`},
		"eval":                     {"eval 'curl y'", `"curl y"`},
		"exec":                     {"exec curl y", `"curl y"`},
		"where is it":              {"command -v curl", ""},
		"variable as a name":       {"$X y", "known only at run time"},
		"quotes in a name":         {`c"u"rl y; \curl`, `"curl y"`},
		"denied":                   {"git push origin main", "(Bash(git push:*))"},
		"denied in a chain":        {"git add . && git push", "(Bash(git push:*))"},
		"denied behind options":    {"git -C . -c a=b --no-pager push", "(Bash(git push:*))"},
		"denied in a shell":        {"sh -c 'git push'", "(Bash(git push:*))"},
		"denied by its path":       {"/usr/bin/git push", "(Bash(git push:*))"},
		"denied behind sudo":       {"sudo git status", "(Bash(sudo:*))"},
		"denied with an option":    {"git config --global a b", "(Bash(git config --global:*))"},
		"other configuration":      {"git config user.name x", ""},
		"denied whole":             {"make", "(Bash(make:*))"},
		"unreadable":               {"echo 'open", "cannot be read"},
		"unreadable and denied":    {"git push && echo 'open", "(Bash(git push:*))"},
		"empty":                    {"  # a comment", ""},
		"too deep":                 {strings.Repeat("env ", 9) + "go test", "nested"},
		"too many":                 {strings.Repeat("ls;", 1001), "too many"},
		"to a file out of the box": {"echo x > /etc/motd", ""},
	}
	rules := shellrules.New(allowed(), denied())
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why := rules.Judge(tc.line)
			switch {
			case why == nil && tc.want != "":
				t.Errorf("%q may be run; want a refusal with %q", tc.line, tc.want)
			case why != nil && (tc.want == "" || !strings.Contains(why.Error(), tc.want)):
				t.Errorf("%q: %s; want %q", tc.line, why, tc.want)
			}
		})
	}
}

// TestJudgeAnything: without a list of allowed commands everything except denied commands is allowed, including lines
// that cannot be parsed.
func TestJudgeAnything(t *testing.T) {
	t.Parallel()
	rules := shellrules.New(nil, denied())
	for line, want := range map[string]bool{"curl y | sh": true, "$X": true, "echo 'open": true, "true; git push": false, "make": false, "make all": true} {
		if got := rules.Judge(line) == nil; got != want {
			t.Errorf("%q: may be run %v, want %v", line, got, want)
		}
	}
}

// TestRefusalNames: a refusal lists the repository's commands for the model.
func TestRefusalNames(t *testing.T) {
	t.Parallel()
	got := shellrules.New(append(shellrules.BaseCommands(), "git", "npm run"), nil).Judge("curl y").Error()
	want := `The rules of this run refuse this call: "curl y" is not among the commands that may be called. Allowed are: git, npm run; ` +
		`and those that look at files, text and the system, or make, move and remove files (such as ls, cat, grep, sed, mkdir, rm).`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBuildFilesPermitTheirCommands(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files, commands, want []string
	}{
		"nothing":  {nil, nil, []string{"git"}},
		"go":       {[]string{"go.mod", "Makefile"}, []string{"go test ./..."}, []string{"git", "go", "gofmt", "goimports", "golangci-lint", "make", "staticcheck"}},
		"commands": {nil, []string{"A=b ./x.sh --all && cat y", "timeout 5 bin/z", "$X", "sh -c 'q r'"}, []string{"./x.sh", "bin/z", "git", "q"}},
		"monorepo": {
			[]string{"README.md", "services/api/go.mod", "web/app/package.json", "web/node_modules/x/Gemfile", "api/vendor/y/Cargo.toml", "testdata/pom.xml", "makefiles/x"}, nil,
			[]string{"corepack", "git", "go", "gofmt", "goimports", "golangci-lint", "node", "npm", "npx", "pnpm", "staticcheck", "yarn"},
		},
		"patterns": {[]string{"build.gradle.kts"}, nil, []string{"./gradlew", "git", "gradle", "java", "javac"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, shellrules.DetectCommands(tc.files, tc.commands)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, c := range append(shellrules.BaseCommands(), shellrules.DetectCommands([]string{"pom.xml", "setup.py"}, nil)...) {
		if !shellrules.IsPlain(c) {
			t.Errorf("%q of the built-in lists is not plain", c)
		}
	}
}

func TestHook(t *testing.T) {
	t.Parallel()
	rules := shellrules.New(allowed(), denied())
	tests := map[string]struct {
		in, want   string
		refuseOnly bool
	}{
		"leave":        {`{"tool_name":"Bash","tool_input":{"command":"git status"}}`, `"permissionDecision":"allow"`, false},
		"refusal":      {`{"tool_name":"Bash","tool_input":{"command":"curl y"}}`, `"permissionDecision":"deny"`, false},
		"silent leave": {`{"tool_name":"Bash","tool_input":{"command":"git status"}}`, "", true},
		"only refusal": {`{"tool_name":"Bash","tool_input":{"command":"curl y"}}`, `"permissionDecision":"deny"`, true},
		"gemini leave": {`{"tool_name":"run_shell_command","tool_input":{"command":"git status"}}`, "", false},
		"gemini":       {`{"tool_name":"run_shell_command","tool_input":{"command":"curl y"}}`, `{"decision":"deny","reason":"The rules`, false},
		"another tool": {`{"tool_name":"Write","tool_input":{"command":"curl y"}}`, "", false},
		"no command":   {`{"tool_name":"Bash","tool_input":{}}`, "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := rules.Hook(strings.NewReader(tc.in), &out, tc.refuseOnly); err != nil {
				t.Fatal(err)
			}
			if tc.want == "" && out.Len() > 0 || !strings.Contains(out.String(), tc.want) {
				t.Errorf("answers %q, want %q", out.String(), tc.want)
			}
		})
	}
	if err := rules.Hook(strings.NewReader("{"), &bytes.Buffer{}, false); err == nil {
		t.Error("a truncated call was answered")
	}
}

// FuzzJudge checks that no line causes a panic or endless work, and that a denied command is refused regardless of the
// rest of the line.
func FuzzJudge(f *testing.F) {
	for _, s := range []string{"a && b | c", "$(x `y`)", "cat <<E\n$(z)\nE", "sh -c 'sh -c \"x\"'", "f(){ :;}; f", "case x in a) b;; esac", "echo ${x:-$(y)}", "bash -o", "env -", "find . -exec"} {
		f.Add(s)
	}
	rules := shellrules.New(allowed(), denied())
	f.Fuzz(func(t *testing.T, line string) {
		if why := rules.Judge(line); why != nil && why.Error() == "" {
			t.Error("got a refusal without text")
		}
		if rules.Judge("git push\n"+line) == nil {
			t.Errorf("git push was allowed before %q", line)
		}
		if calls, err := shellrules.Calls(line); err == nil {
			for _, c := range calls {
				if len(c.Words) == 0 {
					t.Errorf("%q has a call without words", line)
				}
			}
		}
	})
}
