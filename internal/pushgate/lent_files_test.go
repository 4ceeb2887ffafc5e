package pushgate

import "testing"

// Lent files are refused under every path, in every spelling of their names, and in every commit.
func TestTestFiles(t *testing.T) {
	t.Parallel()
	const key = "first line of a lent key\nsecond line\n"
	lend := func(p *Policy) { p.LentFiles = map[string]string{"config/test.key": key, "short": "x\n"} }
	const is, holds = "this is a file that the operator of errand lends", "it holds a file that the operator of errand lends"
	checkRule(t, RuleTestFiles, map[string]ruleCase{
		"nothing is lent": {build: func(b *builder) { b.commit(b.file("config/test.key", key)) }},
		"another file":    {build: func(b *builder) { b.commit(b.file("config/test.key.example", "x\ny\n")) }, policy: lend},
		"its path": {
			build: func(b *builder) { b.commit(b.file("config/test.key", "changed")) }, policy: lend, want: []string{"config/test.key: " + is},
		},
		"its path in another case": {
			build: func(b *builder) { b.commit(b.file("Config/Test.key", "changed")) }, policy: lend, want: []string{"Config/Test.key: " + is},
		},
		"its content elsewhere": {
			build: func(b *builder) { b.commit(b.file("notes.md", "see:\n"+key+"end")) }, policy: lend, want: []string{"notes.md: " + holds},
		},
		"in a commit that a later one takes back": {
			build:  func(b *builder) { b.commit(b.file("notes.md", key)).commit(gone("notes.md")) },
			policy: lend, want: []string{"notes.md: " + holds},
		},
		"deleted": {build: func(b *builder) { b.commit(gone("config/test.key")) }, policy: lend},
	})
}
