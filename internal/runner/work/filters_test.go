package work_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/runner/proc"
	"github.com/errand-bot/errand/internal/runner/work"
)

// TestFilterProcessesEndWithGit: git may start a filter of the agent's configuration after the run. Processes that such a
// filter leaves in their own sessions end with git.
func TestFilterProcessesEndWithGit(t *testing.T) {
	t.Parallel()
	if proc.Probe() != proc.PIDNamespace {
		t.Skip("SKIP: no PID namespaces here: what filters leave is found by errand-runner at its end")
	}
	for name, act := range map[string]func(o origin, dir string) error{
		"collect": func(o origin, dir string) error {
			_, err := work.Collect(testContext(t), work.CollectSpec{Dir: dir, Base: o.head})
			return err
		},
		"reset": func(o origin, dir string) error {
			_, err := work.Reset(testContext(t), work.ResetSpec{Dir: dir, Source: work.Source{URL: o.url, Ref: "refs/heads/main"}, Head: o.head, Branch: "errand/1-x"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			dir := preparedPlace(t, o)
			held := filepath.Join(t.TempDir(), "held")
			if err := unix.Mkfifo(held, 0o600); err != nil {
				t.Fatal(err)
			}
			pipe, err := os.OpenFile(held, os.O_RDONLY|unix.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			left := `setsid sh -c "echo here >&7; : >` + held + `.begun; exec sleep 1000" 7>` + held + ` >/dev/null 2>&1 </dev/null &`
			wait := `until [ -e ` + held + `.begun ]; do sleep 0.01; done; cat`
			script(t, dir, `printf '%s\n' '`+left+`' '`+wait+`' >.git/filter
				git config filter.x.clean 'sh .git/filter'; git config filter.x.smudge 'sh .git/filter'
				mkdir -p .git/info; echo '* filter=x' >.git/info/attributes; echo hello >a.txt; echo changed >README.md`)
			if err := act(o, dir); err != nil {
				t.Fatal(err)
			}
			if err := pipe.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(pipe) // it ends when no process holds the other side
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("what the filter left still lives; it said %q", said)
			} else if err != nil || len(said) == 0 {
				t.Errorf("the filter never ran: %q, %v", said, err)
			}
		})
	}
}
