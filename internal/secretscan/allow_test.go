package secretscan

import (
	"regexp"
	"testing"

	"github.com/zricethezav/gitleaks/v8/config"
)

func TestAllowed(t *testing.T) {
	t.Parallel()
	h := hit{path: "docs/a.md", secret: "example-key-1", match: "key = example-key-1", line: "set key = example-key-1 # demo"}
	expr := func(pattern string) []*regexp.Regexp { return []*regexp.Regexp{regexp.MustCompile(pattern)} }
	tests := map[string]struct {
		list config.Allowlist
		want bool
	}{
		"a stop word":                {config.Allowlist{StopWords: []string{"example"}}, true},
		"no stop word":               {config.Allowlist{StopWords: []string{"sample"}}, false},
		"a path":                     {config.Allowlist{Paths: expr(`^docs/`)}, true},
		"the secret":                 {config.Allowlist{Regexes: expr(`^example`)}, true},
		"the match":                  {config.Allowlist{Regexes: expr(`^key`), RegexTarget: "match"}, true},
		"the line":                   {config.Allowlist{Regexes: expr(`# demo$`), RegexTarget: "line"}, true},
		"the line, but not asked":    {config.Allowlist{Regexes: expr(`# demo$`)}, false},
		"one of two":                 {config.Allowlist{Paths: expr(`^docs/`), StopWords: []string{"sample"}}, true},
		"one of two, both needed":    {config.Allowlist{Paths: expr(`^docs/`), StopWords: []string{"sample"}, MatchCondition: config.AllowlistMatchAnd}, false},
		"both of two, both needed":   {config.Allowlist{Paths: expr(`^docs/`), StopWords: []string{"example"}, MatchCondition: config.AllowlistMatchAnd}, true},
		"a commit never counts":      {config.Allowlist{Commits: []string{"c0ffee"}}, false},
		"a commit and a path needed": {config.Allowlist{Commits: []string{"c0ffee"}, Paths: expr(`^docs/`), MatchCondition: config.AllowlistMatchAnd}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := tc.list.Validate(); err != nil {
				t.Fatal(err)
			}
			if got := h.allowedBy([]*config.Allowlist{&tc.list}); got != tc.want {
				t.Errorf("allowed %t, want %t", got, tc.want)
			}
		})
	}
}
