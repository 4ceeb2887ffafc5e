package step

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// suggested matches the setting that a refusal suggests, and the file for it.
var suggested = regexp.MustCompile("(operator can set|default branch can say) `(gate: \\{.*?\\})`(?:,| and|$)")

// sides are the configuration files of both sides, each a `gate`.
type sides struct{ operator, repository string }

// policy reads the files.
func (s sides) policy(t *testing.T, scanner *secretscan.Scanner) pushgate.Policy {
	t.Helper()
	env := func(name string) (string, bool) { return "0123456789abcdef", name == "X" }
	operator, err := config.Parse([]byte("github: {app_id: 1, webhook_secret: env:X, private_key: env:X}\nadmin: {token: env:X}\nagent: {adapter: command, command: [x]}\n"+s.operator), env)
	var repoSettings settings.Settings
	if err != nil && !strings.HasPrefix(err.Error(), "line 1: github.private_key") {
		t.Fatalf("invalid operator's configuration %q: %v", s.operator, err)
	}
	if repoSettings, err = config.ParseRepo([]byte(s.repository), operator.Settings(), nil); err != nil {
		t.Fatalf("invalid repository settings %q: %v", s.repository, err)
	}
	return pushgate.Policy{Scanner: scanner, Operator: pushgate.Settings(operator.Gate), Repository: pushgate.Settings(RepositoryGate(repoSettings))}
}

// add adds a suggested line to a file. It replaces an existing key, as a person would.
func add(t *testing.T, file, line string) string {
	t.Helper()
	inner := strings.TrimSuffix(strings.TrimPrefix(line, "gate: {"), "}")
	key, _, _ := strings.Cut(inner, ":")
	var rest []string
	for have := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(file, "gate: {"), "}\n"), "; ") {
		if have != "" && !strings.HasPrefix(have, key+":") {
			rest = append(rest, have)
		}
	}
	return "gate: {" + strings.Join(append(rest, inner), ", ") + "}\n"
}

// TestRefusalsSuggestValidSettings: with the suggested settings copied from the comment into the files, the same
// changes are accepted.
func TestRefusalsSuggestValidSettings(t *testing.T) {
	t.Parallel()
	patterns, err := secretscan.LoadPatterns()
	if err != nil {
		t.Fatal(err)
	}
	const known = "correct-horse-battery"
	scanner := secretscan.New(patterns, known)
	token := "ghs" + "_" + strings.Repeat("aB3dE6gH9", 4)
	many := map[string]string{}
	for i := range 301 {
		many[fmt.Sprintf("f%d", i)] = fmt.Sprint(i)
	}
	tests := map[string]struct {
		files map[string]string
		sides sides
		want  string // the changed file; empty: no suggestion
	}{
		"built in":                       {map[string]string{"AGENTS.md": "x"}, sides{}, "operator"},
		"built in, nested":               {map[string]string{"a/b c/.claude/x.md": "x"}, sides{}, "operator"},
		"in place of a folder":           {map[string]string{".github": "x"}, sides{}, "operator"},
		"strange characters":             {map[string]string{".vscode/[a]{b},c'd#e!.json": "x"}, sides{}, "operator"},
		"a long path":                    {map[string]string{".vscode/" + strings.Repeat("ab/", 60) + "x": "x"}, sides{}, "operator"},
		"the operator's":                 {map[string]string{"deploy/a": "x"}, sides{operator: "gate: {protected: [deploy/**]}\n"}, "operator"},
		"together with other exceptions": {map[string]string{"CLAUDE.md": "x"}, sides{operator: "gate: {unprotected: [AGENTS.md]}\n"}, "operator"},
		"the repository's":               {map[string]string{"deploy/a": "x"}, sides{repository: "gate: {protected: [deploy/**, other/**]}\n"}, "repository"},
		"given up":                       {map[string]string{"AGENTS.md": "x"}, sides{"gate: {unprotected: [AGENTS.md]}\n", "gate: {unprotected: []}\n"}, "repository"},
		"on both sides":                  {map[string]string{"AGENTS.md": "x"}, sides{"", "gate: {unprotected: [x], protected: [AGENTS.md]}\n"}, "operator repository"},
		"a look-alike":                   {map[string]string{"agents.md": "x"}, sides{operator: "gate: {unprotected: [AGENTS.md]}\n"}, "operator"},
		"an invisible look-alike":        {map[string]string{"AGENTS\u200d.md": "x"}, sides{}, ""},
		"too many paths":                 {many, sides{}, "operator"},
		"too many for a repository":      {many, sides{operator: "gate: {max_paths: 1000}\n", repository: "gate: {max_paths: 10}\n"}, "repository"},
		"too many for both":              {many, sides{repository: "gate: {max_paths: 10}\n"}, "operator repository"},
		"too many bytes":                 {map[string]string{"a": strings.Repeat("x\n", 60)}, sides{operator: "gate: {max_bytes: 100}\n"}, "operator"},
		"an invented secret":             {map[string]string{"testdata/a.env": "x = " + token}, sides{}, "operator"},
		"an invented secret, allowed": {map[string]string{"testdata/a.env": "x = " + token},
			sides{"gate: {secrets_allowed_in: ['testdata/*']}\n", "gate: {secrets_allowed_in: [other]}\n"}, "repository"},
		"a secret in a name": {map[string]string{"testdata/" + token + ".env": "x"}, sides{}, "operator"},
		"a known secret":     {map[string]string{"testdata/a.env": known}, sides{}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cs := &changeset.Changeset{Base: "base", Blobs: map[string][]byte{}, Commits: []changeset.Commit{{ID: "one", Parents: []string{"base"}, Message: "Change"}}}
			for path, content := range tc.files {
				id := changeset.BlobID([]byte(content))
				cs.Blobs[id] = []byte(content)
				cs.Commits[0].Changes = append(cs.Commits[0].Changes, changeset.Change{Path: path, Mode: changeset.ModeFile, Blob: id})
			}
			found := pushgate.Judge(cs, tc.sides.policy(t, scanner))
			if len(found) == 0 {
				t.Fatal("got no refusal")
			}
			var changed []string
			for _, r := range found {
				shown := comment.Render(&state.Task{}, state.Post{Kind: state.PostRefused, Refusals: []state.Refusal{state.Refusal(r)}}, comment.View{Slug: "errand"})
				for _, m := range suggested.FindAllStringSubmatch(shown, -1) {
					side, to := "operator", &tc.sides.operator
					if m[1] != "operator can set" {
						side, to = "repository", &tc.sides.repository
					}
					*to = add(t, *to, m[2])
					changed = append(changed, side)
				}
				if strings.Contains(shown, token) {
					t.Errorf("the comment contains the secret:\n%s", shown)
				}
			}
			slices.Sort(changed)
			if got := strings.Join(slices.Compact(changed), " "); got != tc.want {
				t.Fatalf("got suggestions for %q, want %q: %+v", got, tc.want, found)
			}
			if left := pushgate.Judge(cs, tc.sides.policy(t, scanner)); tc.want != "" && len(left) > 0 {
				t.Errorf("with %+v: got %+v", tc.sides, left)
			}
		})
	}
}

// TestExceptedPaths: agents are informed about effective exceptions.
func TestExceptedPaths(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ operators, own, want []string }{
		"none":                      {nil, []string{"a"}, nil},
		"the operator's":            {[]string{"a"}, nil, []string{"a"}},
		"given up":                  {[]string{"a"}, []string{}, nil},
		"both":                      {[]string{"a", "b"}, []string{"b", "c"}, []string{"b"}},
		"narrower":                  {[]string{"docs/**"}, []string{"docs/AGENTS.md", "AGENTS.md"}, []string{"docs/AGENTS.md"}},
		"wider than the operator's": {[]string{"docs/AGENTS.md"}, []string{"**"}, []string{"docs/AGENTS.md"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operator := settings.Gate{Unprotected: tc.operators}
			if diff := cmp.Diff(tc.want, ExceptedPaths(operator, settings.Settings{Gate: settings.Gate{Unprotected: tc.own}})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
