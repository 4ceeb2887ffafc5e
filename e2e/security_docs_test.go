package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatModel: every row of the threat model names the tests of its defense, and every story of an attack is in it.
// Package repotest checks that these files and tests exist.
func TestThreatModel(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "\n## Table\n")
	if !ok {
		t.Fatal("docs/security.md has no table")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	shown, rows := regexp.MustCompile("`(?:Test|Fuzz)[A-Z]\\w+`|story `[a-z-]+`"), 0
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(row), " | ")
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| Asset") {
			continue
		}
		rows++
		if len(cells) != 5 || !shown.MatchString(cells[4]) {
			t.Errorf("a row has %d cells, or names no test in the last: %s", len(cells), row)
		}
	}
	if rows < 50 {
		t.Errorf("got only %d rows", rows)
	}
	files, err := filepath.Glob("testdata/stories/attack-*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatalf("got only %d stories of attacks: %v", len(files), err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".txtar"); !strings.Contains(table, "story `"+name+"`") {
			t.Errorf("the threat model lacks story %s", name)
		}
	}
}
