package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLogsFollow: --follow ends by itself when the task has ended, and says so apart from the log.
func TestLogsFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"7-1-1.jsonl": `{"version":1,"run":"7-1-1","task":"acme/shop#1","started":"2026-11-21T12:00:00Z"}` + "\n" +
			`{"events":[{"time":"2026-11-21T12:00:00Z","kind":"text","text":"hello\u001b]0;title\u0007"}]}` + "\n" + `{"end":{"run":"7-1-1","exit_class":"success","exit_cause":"exited"}}` + "\n",
		"7-1-life-1.summary.json": `{"task":"acme/shop#1","life":1,"phase":"done"}`,
	} {
		if err := os.MkdirAll(filepath.Join(dir, "transcripts"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "transcripts", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"--follow"}, {"--follow", "--run", "1"}} {
		code, out, errs := call(t, nil, append([]string{"logs", "acme/shop#1", "--data", dir}, args...)...)
		if code != 0 || strings.Count(out, "text: hello]0;title\n") != 1 || !strings.Contains(errs, " has ended.\n") || strings.Contains(out, "has ended") {
			t.Errorf("%q: code %d, errors %q, output\n%q", args, code, errs, out)
		}
	}
}

// TestLogsOfAnotherUser: the error for files of another user says how to read them.
func TestLogsOfAnotherUser(t *testing.T) {
	t.Parallel()
	denied := fmt.Errorf("list transcripts: %w", fs.ErrPermission)
	if err := readable(denied); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "sudo -u errand errand logs") {
		t.Errorf("got %v", err)
	}
	if err := readable(fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "sudo") || readable(nil) != nil {
		t.Errorf("got %v", err)
	}
}
