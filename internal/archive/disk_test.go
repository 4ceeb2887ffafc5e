package archive_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/internal/runlog"
)

// saveAll writes one file of each kind and reports each.
func saveAll(t *testing.T, dir string) {
	data, m := stream(t)
	d, err := archive.Open(filepath.Join(dir, "data"), nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error, said string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		disktest.Say(said)
	}
	s, err := d.SaveSleep("1-7", writes(data, m))
	check(err, "sleep "+s.Ref+" "+s.SHA256)
	ref, err := d.SaveChangeset("run-1", someChangeset())
	check(err, "changeset "+ref)
	check(d.SaveDiff(ref, "the diff"), "diff "+ref)
	check(d.SaveSummary("1-7", []byte("{}")), "summary 1-7")
	check(d.BeginTranscript("run-1", runlog.Header{Run: "run-1"}), "transcript run-1")
	d = d.WithTranscripts(4000)
	tr, err := d.Transcript("run-1")
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(12) { // it is shortened in between
		if err := tr.Add(runlog.Line{Seq: n + 1, Text: strings.Repeat("x", 700)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	check(tr.End(runlog.End{Run: "run-1", Cause: "exited"}), "end run-1")
	check(tr.Close(), "closed run-1")
	disktest.Say("unwanted " + s.Ref)
	check(d.DeleteSleep(s.Ref), "deleted "+s.Ref)
}

// savedAll checks that the reported files exist, and that none is partial.
func savedAll(t *testing.T, dir string, said []string) {
	t.Helper()
	if len(said) == 0 {
		return
	}
	d, err := archive.Open(filepath.Join(dir, "data"), nil)
	if err != nil {
		t.Fatal(err)
	}
	unwanted := strings.Contains(strings.Join(said, "\n"), "unwanted")
	for _, line := range said {
		word := strings.Fields(line)
		switch word[0] {
		case "sleep":
			f, err := d.OpenSleep(word[1], word[2])
			if err == nil {
				err = f.Close()
			}
			if err != nil && !(unwanted && errors.Is(err, archive.ErrNoArchive)) {
				t.Errorf("the work of a VM that may be deleted: %v", err)
			}
		case "changeset":
			if cs, err := d.LoadChangeset(word[1]); err != nil || cs.Head() != someChangeset().Head() {
				t.Errorf("a changeset: %v", err)
			}
		case "diff", "summary":
			if _, err := os.Stat(filepath.Join(dir, "data", map[string]string{"diff": "changesets/" + word[1] + ".diff", "summary": "transcripts/" + word[1] + ".summary.json"}[word[0]])); err != nil {
				t.Errorf("a %s: %v", word[0], err)
			}
		case "transcript":
			entries(t, d, word[1])
		case "end":
			list := entries(t, d, word[1])
			if len(list) < 3 || list[len(list)-1].End == nil || list[len(list)-2].Line == nil || list[len(list)-2].Line.Seq != 12 {
				t.Errorf("of a transcript that has ended %d records are there", len(list))
			}
		case "deleted":
			if list, err := d.Sleeps(); err != nil || len(list) != 0 {
				t.Errorf("a deleted archive is back: %v, %v", list, err)
			}
		}
	}
	checkArchives(t, d, dir)
}

// checkArchives checks that each sleep archive matches its name.
func checkArchives(t *testing.T, d *archive.Dir, dir string) {
	t.Helper()
	list, err := d.Sleeps()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		data, err := os.ReadFile(filepath.Join(dir, "data", "sleeps", s.Ref+".tar.zst"))
		sum := sha256.Sum256(data)
		if err != nil || !strings.HasSuffix(s.Ref, hex.EncodeToString(sum[:])[:16]) {
			t.Errorf("the archive %s has %d other bytes: %v", s.Ref, len(data), err)
		}
	}
}

// TestPowerCut: files that were reported as saved are complete after a power cut, because their VM may have been
// deleted by then.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{Play: saveAll, Check: savedAll})
}

// TestFailingCalls: an archive that could not be written, synced, closed or renamed is not saved and leaves no files.
func TestFailingCalls(t *testing.T) {
	t.Parallel()
	for _, kind := range []disktest.Kind{disktest.Create, disktest.Write, disktest.Sync, disktest.Close, disktest.Rename} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			disktest.Run(t, disktest.Disk{
				Play: func(t *testing.T, dir string) {
					data, m := stream(t)
					d, err := archive.Open(filepath.Join(dir, "data"), nil)
					if err != nil {
						t.Fatal(err)
					}
					disktest.Say("broken")
					_, err = d.SaveSleep("1-7", writes(data, m))
					_, other := d.SaveChangeset("run-1", someChangeset())
					disktest.Say("mended")
					if !errors.Is(err, syscall.EIO) || !errors.Is(other, syscall.EIO) {
						t.Errorf("got errors %v, %v", err, other)
					}
					if left := archiveFiles(t, filepath.Join(dir, "data")); kind != disktest.Sync && len(left) > 0 {
						t.Errorf("left behind: %v", left)
					}
					if _, err := d.SaveSleep("1-7", writes(data, m)); err != nil {
						t.Errorf("on the mended disk: %v", err)
					}
				},
				Fail: func(c disktest.Call, said []string) syscall.Errno {
					if len(said) == 1 && c.Kind == kind {
						return syscall.EIO
					}
					return 0
				},
			})
		})
	}
}

// TestLineIsRedactedOnce: a line that could not be written is written later as it was redacted at first. The redactor
// is stateful and must not get a line twice.
func TestLineIsRedactedOnce(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			d, err := archive.Open(filepath.Join(dir, "data"), nil)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			d = d.WithLines(func() func(string) string {
				return func(line string) string {
					n++
					return fmt.Sprintf("%s, number %d", line, n)
				}
			})
			tr := begin(t, d, "r")
			add(t, tr, line(1, "one"))
			disktest.Say("broken")
			for range 3 {
				if err := tr.Add(line(2, "two"), nil); !errors.Is(err, syscall.EIO) {
					t.Errorf("got error %v", err)
				}
			}
			disktest.Say("mended")
			add(t, tr, line(2, "two"))
			add(t, tr, line(3, "three"))
			var got []string
			for _, e := range entries(t, d, "r") {
				if e.Line != nil {
					got = append(got, e.Line.Text)
				}
			}
			if diff := cmp.Diff([]string{"one, number 1", "two, number 2", "three, number 3"}, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		},
		Fail: func(c disktest.Call, said []string) syscall.Errno {
			if len(said) == 1 && c.Kind == disktest.Write {
				return syscall.EIO
			}
			return 0
		},
	})
}

// TestNewestHalfOutlivesAFailedSync: a transcript that is shortened on a disk whose folder cannot be synced keeps its
// newest half, each line once, and continues in the file with its name.
func TestNewestHalfOutlivesAFailedSync(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			d, err := archive.Open(filepath.Join(dir, "data"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.BeginTranscript("r", runlog.Header{Run: "r"}); err != nil {
				t.Fatal(err)
			}
			d = d.WithTranscripts(8000)
			tr, err := d.Transcript("r")
			if err != nil {
				t.Fatal(err)
			}
			failed := 0
			disktest.Say("broken")
			for n := range int64(30) {
				l := runlog.Line{Seq: n + 1, Text: fmt.Sprint(strings.Repeat("x", 500), n+1)}
				for tried := 0; ; tried++ {
					err := tr.Add(l, nil)
					if err == nil {
						break
					}
					if failed++; !errors.Is(err, syscall.EIO) || tried > 2 {
						t.Fatalf("line %d: %v", n+1, err)
					}
				}
			}
			disktest.Say("mended")
			if failed == 0 {
				t.Error("nothing has failed")
			}
			if err := errors.Join(tr.End(runlog.End{Run: "r"}), tr.Close()); err != nil {
				t.Error(err)
			}
			next := int64(31)
			list := entries(t, d, "r")
			for i := len(list) - 1; i >= 0; i-- {
				if l := list[i].Line; l != nil {
					if next--; l.Seq != next {
						t.Fatalf("line %d comes before line %d", l.Seq, next+1)
					}
				}
			}
			if next > 26 {
				t.Errorf("the lines before line %d are gone", next)
			}
		},
		Fail: func(c disktest.Call, said []string) syscall.Errno {
			if len(said) == 1 && c.Kind == disktest.Sync && c.Path == "data/transcripts" {
				return syscall.EIO
			}
			return 0
		},
	})
}

// TestFullDisk: on a full disk nothing is reported as saved and no partial file remains; writing continues when there
// is space again, also in open transcripts.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 1<<20, func(t *testing.T, dir string) {
		data, m := stream(t)
		d, err := archive.Open(filepath.Join(dir, "data"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.BeginTranscript("run-1", runlog.Header{Run: "run-1"}); err != nil {
			t.Fatal(err)
		}
		tr, err := d.Transcript("run-1")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("x", 3000)
		free := disktest.Fill(t, dir, 0)
		saves := map[string]func() error{
			"sleep":      func() error { _, err := d.SaveSleep("1-7", writes(data, m)); return err },
			"changeset":  func() error { _, err := d.SaveChangeset("run-1", someChangeset()); return err },
			"diff":       func() error { return d.SaveDiff("run-1", text) },
			"summary":    func() error { return d.SaveSummary("1-7", []byte(text)) },
			"transcript": func() error { return d.BeginTranscript("run-2", runlog.Header{Run: "run-2", User: text}) },
		}
		for name, save := range saves {
			if err := save(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: got error %v, want no space", name, err)
			}
		}
		seq := int64(0)
		for err = nil; err == nil; { // the rest of the file's last block
			seq++
			err = tr.Add(runlog.Line{Seq: seq, Text: text}, nil)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a line: got error %v, want no space", err)
		}
		free()
		if left := archiveFiles(t, filepath.Join(dir, "data")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		for name, save := range saves {
			if err := save(); err != nil {
				t.Errorf("%s with room again: %v", name, err)
			}
		}
		for n := seq; n < seq+3; n++ {
			if err := tr.Add(runlog.Line{Seq: n, Text: text}, nil); err != nil {
				t.Errorf("a line with room again: %v", err)
			}
		}
		finish(t, tr, runlog.End{Run: "run-1", Cause: "exited"})
		if list := entries(t, d, "run-1"); int64(len(list)) != seq+3 {
			t.Errorf("the transcript has %d records, want %d", len(list), seq+3)
		}
		if err := errors.Join(tr.Close(), copyOut(d)); err != nil {
			t.Error(err)
		}
	})
}

// copyOut reads a saved changeset.
func copyOut(d *archive.Dir) error {
	f, err := d.OpenDiff("run-1")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, f)
	return errors.Join(err, f.Close())
}
