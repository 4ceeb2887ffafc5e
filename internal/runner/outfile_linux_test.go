package runner

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/runlog"
)

// recorded is an outputFile with its log, without a reader.
type recorded struct {
	*outputFile
	t    *testing.T
	path string
}

// record has an outputFile with small limits.
func record(t *testing.T) *recorded {
	t.Helper()
	r := &recorded{t: t, path: filepath.Join(t.TempDir(), "log")}
	log, err := openLog(r.path, DefaultMaxLog, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	source, err := (&supervisor{log: log}).openFile()
	if err != nil {
		t.Fatal(err)
	}
	r.outputFile = source.(*outputFile) //nolint:forcetypeassert // by its making
	r.limits = outputLimits{unread: 4 << 20, kept: 1 << 20, allocated: 16 << 20}
	t.Cleanup(r.close)
	return r
}

func (r *recorded) write(text string) {
	r.t.Helper()
	if _, err := r.file.WriteString(text); err != nil {
		r.t.Fatal(err)
	}
}

// grow makes the file so long, by a hole.
func (r *recorded) grow(size int64) {
	r.t.Helper()
	if err := r.file.Truncate(size); err != nil {
		r.t.Fatal(err)
	}
}

// lines finishes the file and returns the lines in its log.
func (r *recorded) lines() []string {
	r.t.Helper()
	close(r.idle) // nothing bounds it but the test
	r.finish()
	r.log.copyLines(r, runlog.StreamStdout, DefaultMaxLine)
	if _, err := r.log.finish(); err != nil {
		r.t.Fatal(err)
	}
	file, err := os.Open(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	var all []string
	for reader := newLineReader(file, 0); ; {
		line, err := reader.next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s: %s", line.Stream, line.Text))
	}
}

// read reads n bytes.
func (r *recorded) read(n int) {
	r.t.Helper()
	if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
		r.t.Fatal(err)
	}
}

// TestFloodDropsItsMiddle: output too far ahead of the log is dropped except for complete lines at its end, and the log
// contains the number of missing bytes.
func TestFloodDropsItsMiddle(t *testing.T) {
	t.Parallel()
	const line = 1 << 10
	flood := func(n int) string { return strings.Repeat(strings.Repeat("x", line-1)+"\n", n) }
	left := func(n int) string {
		return fmt.Sprintf("runner: %d bytes of the output were left out here: there was more than could be read in time.", n)
	}
	kept := strings.TrimSuffix(strings.ReplaceAll("\n"+flood(1<<10-1), "\nx", "\nstdout: x"), "\n")[1:]
	for name, tc := range map[string]struct {
		write func(r *recorded)
		want  []string
	}{
		"no flood": {
			func(r *recorded) { r.write("one\ntwo\n"); r.bound(); r.write("three") },
			[]string{"stdout: one", "stdout: two", "stdout: three"},
		},
		"at the limit": {
			func(r *recorded) { r.grow(4<<20 - 6); r.write("\nlast\n"); r.bound() },
			[]string{"stdout: " + strings.Repeat("\x00", 4<<20-6), "stdout: last"},
		},
		"whole lines": {
			func(r *recorded) { r.write("first\n"); r.read(6); r.write(flood(5 << 10)) },
			append([]string{left(4<<20 + line)}, strings.Split(kept, "\n")...),
		},
		"the end of one line": {
			func(r *recorded) { r.grow(1 << 40); r.write("\nlast\n") },
			[]string{left(1<<40 + 1), "stdout: last"},
		},
		"no line at all": {
			func(r *recorded) { r.grow(8 << 20) },
			[]string{left(8 << 20)},
		},
		"two floods": {
			func(r *recorded) {
				r.grow(8 << 20)
				r.bound()
				r.write("\nbetween\n")
				r.grow(16 << 20)
				r.bound()
				r.write("\nlast\n")
			},
			[]string{left(16<<20 + 1), "stdout: last"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(t)
			tc.write(r)
			if diff := cmp.Diff(tc.want, r.lines()); len(diff) > 0 {
				t.Errorf("lines (-want +got):\n%.2000s", diff)
			}
		})
	}
}

// TestTornLineIsNotJoined: the beginning of a line before a flood and the end of another line after it are not joined.
func TestTornLineIsNotJoined(t *testing.T) {
	t.Parallel()
	r := record(t)
	r.write(`{"type":"result"`)
	var text strings.Builder
	if _, err := io.CopyN(&text, r, 16); err != nil {
		t.Fatal(err)
	}
	r.grow(8 << 20)
	r.write("}\nlast\n")
	close(r.idle)
	r.finish()
	if _, err := io.Copy(&text, r); err != nil {
		t.Fatal(err)
	}
	if want := "{\"type\":\"result\"\nlast\n"; text.String() != want {
		t.Errorf("read %q, want %q", text.String(), want)
	}
}

// TestReadOutputIsFreed: the memory of the file stays close to the size of the unread output, however much output
// passes through it.
func TestReadOutputIsFreed(t *testing.T) {
	t.Parallel()
	r := record(t)
	chunk := strings.Repeat("x", 3<<20)
	for range 20 {
		r.write(chunk)
		r.read(len(chunk))
		r.bound()
		if got := r.allocated(); got > freeStep+int64(os.Getpagesize()) {
			t.Fatalf("%d bytes are allocated with nothing unread", got)
		}
	}
	r.write(strings.Repeat("x", 12<<20)) // without a reader
	r.bound()
	if got := r.allocated(); got > r.limits.kept+freeStep {
		t.Errorf("%d bytes are allocated after a flood", got)
	}
	select {
	case <-r.log.failed:
		t.Errorf("the run was ended: %v", r.log.err)
	default:
	}
}

// TestReservedRoomEndsTheRun: a command that allocates space in its output without writing, which cannot be freed, is
// ended.
func TestReservedRoomEndsTheRun(t *testing.T) {
	t.Parallel()
	r := record(t)
	if err := unix.Fallocate(int(r.file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, 20<<20); err != nil {
		t.Fatal(err)
	}
	r.bound()
	select {
	case <-r.log.failed:
	default:
		t.Fatal("the run continues")
	}
	if want := "the command's output takes 20 MiB, and at most 16 MiB are allowed"; r.log.err.Error() != want {
		t.Errorf("because %q, want %q", r.log.err, want)
	}
}

// TestNothingIsReadAfterTheEnd: the output of an escaped process after the command's end is ignored and does not delay
// the end of the run.
func TestNothingIsReadAfterTheEnd(t *testing.T) {
	t.Parallel()
	r := record(t)
	r.write("last\n")
	close(r.idle)
	r.finish()
	r.write("too late\n")
	got, err := io.ReadAll(r)
	if err != nil || string(got) != "last\n" {
		t.Errorf("read %q, %v", got, err)
	}
}
