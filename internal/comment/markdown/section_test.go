package markdown

import "testing"

func TestSection(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"found":       {"# A\nx\n## Out of Scope\n\na\n### more\nb\n## C\nc", "a\n### more\nb"},
		"last":        {"## out of scope\na\n", "a"},
		"none":        {"# A\nout of scope", ""},
		"in a fence":  {"```\n# out of scope\n```\nx", ""},
		"sharp fence": {"# Out of scope\n```\n# c\n```\n# D", "```\n# c\n```"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Section(tt.text, "out of scope"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
