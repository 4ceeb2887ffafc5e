package box

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
)

func TestRecordAndEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := Record{
		Name: "one", Labels: map[string]string{"a": "b"}, Kind: KindPlain, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		HostKey: "h", ClientKey: "c", SSHSocket: "/s", ControlSocket: "/c", TetherPort: 9413, Runner: "/r",
		Path: []string{"/p"}, Binds: []Bind{{Path: "/b", Writable: true}}, IdleExit: time.Minute,
	}
	if err := WriteRecord(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if _, ok, err := ReadEnd(dir); ok || err != nil {
		t.Errorf("running sandbox: got end %v, error %v, want none", ok, err)
	}
	if err := os.WriteFile(filepath.Join(dir, endFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadEnd(dir); err == nil {
		t.Error("read an incomplete end")
	}
}

func TestSuperviseRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prepare func(t *testing.T, dir string)
		want    error
	}{
		"no box": {func(*testing.T, string) {}, os.ErrNotExist},
		"held": {func(t *testing.T, dir string) {
			lock := flock.New(LockPath(dir))
			if ok, err := lock.TryLock(); !ok || err != nil {
				t.Fatal(ok, err)
			}
			t.Cleanup(func() { _ = lock.Close() })
			write(t, dir)
		}, ErrSupervised},
		"ended": {func(t *testing.T, dir string) {
			write(t, dir)
			if err := writeJSON(filepath.Join(dir, endFile), End{Reason: ReasonIdle}); err != nil {
				t.Fatal(err)
			}
		}, ErrEnded},
		"started before": {func(t *testing.T, dir string) {
			write(t, dir)
			if err := os.WriteFile(filepath.Join(dir, startedFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, ErrEnded},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			test.prepare(t, dir)
			if err := Supervise(t.Context(), []string{"-dir", dir}); !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
}

func write(t *testing.T, dir string) {
	t.Helper()
	if err := WriteRecord(dir, Record{Name: "one", Kind: KindPlain}); err != nil {
		t.Fatal(err)
	}
}

// TestDescendantsWithMisleadingNames starts a grandchild whose name looks like the end of the name
// field in /proc.
func TestDescendantsWithMisleadingNames(t *testing.T) {
	t.Parallel()
	odd := filepath.Join(t.TempDir(), "x) S 1 (")
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, odd); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `"$0" 600 & echo $!; wait`, odd)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	found := descendants(os.Getpid())
	if !slices.Contains(found, cmd.Process.Pid) || !slices.Contains(found, grandchild) {
		t.Errorf("got %v, want %d and %d", found, cmd.Process.Pid, grandchild)
	}
	for _, pid := range []int{grandchild, cmd.Process.Pid} {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	_ = cmd.Wait()
}
