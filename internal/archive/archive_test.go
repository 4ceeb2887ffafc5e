package archive_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runlog"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, clean func(string) string) (*archive.Dir, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	d, err := archive.Open(path, clean)
	if err != nil {
		t.Fatal(err)
	}
	return d, path
}

func line(seq int64, text string) runlog.Line {
	return runlog.Line{Seq: seq, Time: noon, Stream: runlog.StreamStdout, Text: text}
}

// begin begins a run's transcript and opens it.
func begin(t *testing.T, d *archive.Dir, run string) *archive.Transcript {
	t.Helper()
	if err := d.BeginTranscript(run, runlog.Header{Run: run, System: "be good"}); err != nil {
		t.Fatal(err)
	}
	return reopen(t, d, run)
}

// reopen opens a run's transcript to go on with it.
func reopen(t *testing.T, d *archive.Dir, run string) *archive.Transcript {
	t.Helper()
	tr, err := d.Transcript(run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

func add(t *testing.T, tr *archive.Transcript, l runlog.Line, events ...runlog.Event) {
	t.Helper()
	if err := tr.Add(l, events); err != nil {
		t.Fatal(err)
	}
}

// read returns the texts of the lines and events in a transcript.
func read(t *testing.T, d *archive.Dir, run string) (texts []string) {
	t.Helper()
	f, err := d.OpenTranscript(run)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	h, err := runlog.ReadTranscript(f, func(e runlog.Entry) error {
		if e.Line != nil {
			texts = append(texts, e.Line.Text)
		}
		for _, ev := range e.Events {
			texts = append(texts, ev.Text+ev.Input)
		}
		return nil
	})
	if err != nil || h.Run != run || h.System != "be good" {
		t.Fatalf("header %+v: %v", h, err)
	}
	return texts
}

func wantTexts(t *testing.T, d *archive.Dir, run string, texts ...string) {
	t.Helper()
	if diff := cmp.Diff(texts, read(t, d, run)); diff != "" {
		t.Errorf("transcript (-want +got):\n%s", diff)
	}
}

func TestTranscriptAfterCrash(t *testing.T) {
	t.Parallel()
	d, path := open(t, nil)
	tr := begin(t, d, "7-1-1")
	add(t, tr, line(1, "one"))
	add(t, tr, line(2, "two"))
	add(t, tr, line(2, "two again"))
	file := filepath.Join(path, "transcripts", "7-1-1.jsonl")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"line":{"seq":3,"text":"torn`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	tr = reopen(t, d, "7-1-1") // the follower continues from an earlier line
	add(t, tr, line(1, "one"))
	add(t, tr, line(2, "two"))
	add(t, tr, line(3, "three"))
	wantTexts(t, d, "7-1-1", "one", "two", "three")
	data, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(data), "torn") {
		t.Errorf("%v, the torn line is still there:\n%s", err, data)
	}
}

func TestBeginTwice(t *testing.T) {
	t.Parallel()
	d, _ := open(t, nil)
	add(t, begin(t, d, "r"), line(1, "one"))
	add(t, begin(t, d, "r"), line(2, "two"))
	wantTexts(t, d, "r", "one", "two")
}

func TestSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	d, path := open(t, func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") })
	tr := begin(t, d, "r")
	events := []runlog.Event{{Kind: runlog.KindText, Text: "the password is hunter2"}, {Kind: runlog.KindToolUse, Input: "login hunter2"}}
	add(t, tr, line(1, "raw hunter2"), events...)
	wantTexts(t, d, "r", "raw ***", "the password is ***", "login ***")
	if events[0].Text != "the password is hunter2" {
		t.Error("the caller's events were changed")
	}
	data, err := os.ReadFile(filepath.Join(path, "transcripts", "r.jsonl"))
	if err != nil || strings.Contains(string(data), "hunter2") {
		t.Errorf("%v, the secret is in the file", err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	d, path := open(t, nil)
	for _, name := range []string{"", ".", "..", "../x", "a/b", "a\\b", "a\x00", ".hidden", "-x", "a b", strings.Repeat("x", 300)} {
		if err := d.BeginTranscript(name, runlog.Header{}); err == nil {
			t.Errorf("transcript %q was begun", name)
		}
		if _, err := d.Transcript(name); err == nil {
			t.Errorf("transcript %q was opened", name)
		}
		if f, err := d.OpenTranscript(name); err == nil || f != nil {
			t.Errorf("transcript %q was read", name)
		}
		if _, err := d.LoadChangeset(name); err == nil {
			t.Errorf("changeset %q was read", name)
		}
		if _, err := d.SaveChangeset("../"+name, &changeset.Changeset{}); err == nil {
			t.Errorf("changeset %q was saved", name)
		}
	}
	if got := names(t, path); len(got) > 0 {
		t.Errorf("there are %v", got)
	}
	if _, err := d.OpenTranscript("unknown"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unknown transcript: %v", err)
	}
}

// names lists the files in the archive.
func names(t *testing.T, path string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			list = append(list, e.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func someChangeset() *changeset.Changeset {
	id := func(c string) string { return strings.Repeat(c, 40) }
	return &changeset.Changeset{
		Base: id("a"), Blobs: map[string][]byte{},
		Commits: []changeset.Commit{{ID: id("c"), Tree: id("d"), Parents: []string{id("a")}, Message: "Round once"}},
	}
}

func TestChangeset(t *testing.T) {
	t.Parallel()
	d, path := open(t, nil)
	want := someChangeset()
	ref, err := d.SaveChangeset("7-1-1", want)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.SaveChangeset("7-1-1", want); err != nil || again != ref {
		t.Errorf("saved again as %s: %v", again, err)
	}
	rebased := someChangeset()
	rebased.Commits[0].ID = strings.Repeat("e", 40)
	other, err := d.SaveChangeset("7-1-1", rebased)
	if err != nil || other == ref {
		t.Fatalf("the rebased one is %s: %v", other, err)
	}
	got, err := d.LoadChangeset(ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changeset (-want +got):\n%s", diff)
	}
	if got := names(t, path); len(got) != 2 {
		t.Errorf("there are %v", got)
	}
	file := filepath.Join(path, "changesets", ref+".json.zst")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.LoadChangeset(ref); err == nil {
		t.Error("half a changeset was read")
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	d, path := open(t, nil)
	for _, run := range []string{"old", "new"} {
		begin(t, d, run)
		if _, err := d.SaveChangeset(run, someChangeset()); err != nil {
			t.Fatal(err)
		}
	}
	age := func(at time.Time, pattern string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, f := range files {
			if err := os.Chtimes(f, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	age(noon, "*/new*")
	age(noon.Add(-48*time.Hour), "*/old*")
	steps := []struct {
		changesets, transcripts time.Time
		removed                 int
		left                    []string
	}{
		{noon.Add(-72 * time.Hour), noon.Add(-72 * time.Hour), 0, []string{"new-cccccccccccc.json.zst", "new.jsonl", "old-cccccccccccc.json.zst", "old.jsonl"}},
		{noon.Add(-24 * time.Hour), noon.Add(-72 * time.Hour), 1, []string{"new-cccccccccccc.json.zst", "new.jsonl", "old.jsonl"}},
		{noon.Add(-24 * time.Hour), noon.Add(-24 * time.Hour), 1, []string{"new-cccccccccccc.json.zst", "new.jsonl"}},
	}
	for i, step := range steps {
		removed, err := d.Prune(step.changesets, step.transcripts)
		got := names(t, path)
		slices.Sort(got)
		if err != nil || removed != step.removed {
			t.Errorf("step %d: removed %d: %v", i, removed, err)
		}
		if diff := cmp.Diff(step.left, got); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestOnlyTheOwnerReads(t *testing.T) {
	t.Parallel()
	d, path := open(t, nil)
	add(t, begin(t, d, "r"), line(1, "one"))
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", p, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDeleteTask: all files of a task are removed, in every folder, and none of a task whose name begins alike.
func TestDeleteTask(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := []string{
		"transcripts/7-1-3.jsonl", "transcripts/7-1-3.jsonl.new", "transcripts/7-1-life-2.summary.json", "changesets/7-1-3-abc.json.zst", "changesets/7-1-3-abc.diff",
		"changesets/errand-x-7-1-0a0a0a0a-g1-saved-abc.json.zst", "sleeps/7-1-abc.tar.zst", "attachments/7-1-abc.bin",
	}
	kept := []string{"transcripts/7-12-1.jsonl", "transcripts/77-1-1.jsonl", "attachments/7-2-abc.bin", "changesets/errand-x-7-1-0a0a0a0a-g12-saved-abc.json.zst", "sleeps/17-1-abc.tar.zst"}
	incomplete := []string{"transcripts/.new-1", "sleeps/.new-2", "attachments/.new-3", "changesets/.new-4"}
	for _, name := range slices.Concat(gone, kept, incomplete) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (names []string) {
		files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name, _ := filepath.Rel(dir, f)
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	for _, want := range []int{len(gone), 0} {
		if n, err := d.DeleteTask("7-1-", "errand-x-7-1-0a0a0a0a-g1-saved-"); err != nil || n != want {
			t.Errorf("got %d files removed, error %v; want %d", n, err, want)
		}
	}
	if got, want := left(), slices.Sorted(slices.Values(slices.Concat(kept, incomplete))); !slices.Equal(got, want) {
		t.Errorf("got files %v, want %v", got, want)
	}
	if err := d.RemoveIncomplete(); err != nil {
		t.Error(err)
	}
	if got, want := left(), slices.Sorted(slices.Values(kept)); !slices.Equal(got, want) {
		t.Errorf("without incomplete ones: got files %v, want %v", got, want)
	}
}
