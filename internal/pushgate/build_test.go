package pushgate

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/secretscan"
)

var loadOnce = sync.OnceValues(secretscan.LoadPatterns)

// knownSecret is the value that every test's scanner knows.
const knownSecret = "correct-horse-battery"

func scanner(t testing.TB) *secretscan.Scanner {
	t.Helper()
	patterns, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return secretscan.New(patterns, knownSecret)
}

func fakeToken() string { return "ghs" + "_" + strings.Repeat("aB3dE6gH9", 4) }

// builder makes well-formed changesets on top of "base".
type builder struct{ cs changeset.Changeset }

func blobID(content string) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
}

// commit adds a commit with the given changes, on top of the last one.
func (b *builder) commit(changes ...changeset.Change) *builder {
	return b.commitAs("Change things", changes...)
}

func (b *builder) commitAs(message string, changes ...changeset.Change) *builder {
	if b.cs.Base == "" {
		b.cs.Base = "base"
	}
	parent := b.cs.Head()
	id := fmt.Sprintf("commit%d", len(b.cs.Commits)+1)
	b.cs.Commits = append(b.cs.Commits, changeset.Commit{ID: id, Parents: []string{parent}, Message: message, Changes: changes})
	return b
}

func (b *builder) mergeOf(second string, changes ...changeset.Change) *builder {
	b.commit(changes...)
	last := &b.cs.Commits[len(b.cs.Commits)-1]
	last.Parents = append(last.Parents, second)
	return b
}

func (b *builder) put(mode changeset.Mode, path, content string) changeset.Change {
	if b.cs.Blobs == nil {
		b.cs.Blobs = map[string][]byte{}
	}
	b.cs.Blobs[blobID(content)] = []byte(content)
	return changeset.Change{Path: path, Mode: mode, Blob: blobID(content)}
}

func (b *builder) file(path, content string) changeset.Change {
	return b.put(changeset.ModeFile, path, content)
}

func (b *builder) link(path, target string) changeset.Change {
	return b.put(changeset.ModeSymlink, path, target)
}

func gone(path string) changeset.Change {
	return changeset.Change{Path: path, OldMode: changeset.ModeFile}
}

// store holds the content of a base tree. Cases that run at the same time share one.
type store struct{ blobs sync.Map }

func (s *store) entry(content string) Entry { return s.as(changeset.ModeFile, content) }

func (s *store) as(mode changeset.Mode, content string) Entry {
	s.blobs.Store(blobID(content), []byte(content))
	return Entry{Mode: mode, Blob: blobID(content)}
}

func (s *store) get(blob string) ([]byte, bool) {
	data, ok := s.blobs.Load(blob)
	if !ok {
		return nil, false
	}
	return data.([]byte), true
}

// ruleCase is one changeset and the expected refusals of one rule, as "path: detail" lines. Each refusal must contain
// its wanted text.
type ruleCase struct {
	build  func(b *builder)
	policy func(p *Policy)
	want   []string
}

// checkRule judges each case and compares the refusals of the rule. Refusals of other rules fail
// the case unless they are listed in also.
func checkRule(t *testing.T, rule string, cases map[string]ruleCase, also ...string) {
	t.Helper()
	known := map[string]bool{rule: true}
	for _, other := range also {
		known[other] = true
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &builder{}
			tc.build(b)
			policy := Policy{Scanner: scanner(t)}
			if tc.policy != nil {
				tc.policy(&policy)
			}
			var got []string
			for _, refusal := range Judge(&b.cs, policy) {
				if !known[refusal.Rule] {
					t.Errorf("unexpected refusal %+v", refusal)
				}
				if refusal.Detail == "" || refusal.Remedy == "" {
					t.Errorf("refusal %+v lacks a detail or a remedy", refusal)
				}
				if refusal.Rule == rule {
					got = append(got, refusal.Path+": "+refusal.Detail)
				}
			}
			if len(got) != len(tc.want) {
				t.Fatalf("refusals %q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.Contains(got[i], tc.want[i]) {
					t.Errorf("refusal %q, want it to contain %q", got[i], tc.want[i])
				}
			}
		})
	}
}

func TestOrdinaryWorkPasses(t *testing.T) {
	t.Parallel()
	b := &builder{}
	b.commitAs("Fix the parser\n\nIt lost the last line. Fixes #7.\n",
		b.file("parser/parse.go", "package parser\n"),
		b.put(changeset.ModeExecutable, "scripts/run.sh", "#!/bin/sh\n"),
		b.link("docs/latest", "v2/index.md"),
		b.file("logo.png", "\x89PNG\x00\x00"),
		gone("parser/old.go"))
	b.commit(b.file(".github/ISSUE_TEMPLATE/bug.yml", "name: bug\n"))
	if got := Judge(&b.cs, Policy{Scanner: scanner(t)}); got != nil {
		t.Errorf("refusals %+v, want none", got)
	}
	if got := Judge(&changeset.Changeset{Base: "base"}, Policy{}); got != nil {
		t.Errorf("empty changeset: got refusals %+v", got)
	}
}

func TestRefusalsAreOrderedAndLimited(t *testing.T) {
	t.Parallel()
	b := &builder{}
	var changes []changeset.Change
	for i := range maxPerRule + 5 {
		changes = append(changes, b.file(fmt.Sprintf(".github/workflows/%02d.yml", i), "on: push\n"))
	}
	b.commitAs("", append(changes, b.link("a", "/etc/passwd"))...)
	b.commit(b.file(".github/workflows/00.yml", "on: pull_request\n"))
	got := Judge(&b.cs, Policy{Scanner: scanner(t)})
	var rules []string
	for _, r := range got {
		if len(rules) == 0 || rules[len(rules)-1] != r.Rule {
			rules = append(rules, r.Rule)
		}
	}
	if diff := cmp.Diff([]string{RuleProtected, RuleSymlinks, RuleMessages}, rules); diff != "" {
		t.Errorf("order of rules (-want +got):\n%s", diff)
	}
	if len(got) != maxPerRule+1+2 || got[maxPerRule].Detail != "and 5 more of this rule" {
		t.Errorf("got %d refusals, the capped one %+v", len(got), got[maxPerRule])
	}
}
