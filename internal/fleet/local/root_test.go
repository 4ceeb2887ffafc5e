package local_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
)

// TestSandboxesAreNotRootOnTheHost checks on the host as which user a box's processes run: root on the host could write
// to /proc/sys without any capability, and leave setuid files.
func TestSandboxesAreNotRootOnTheHost(t *testing.T) {
	t.Parallel()
	own := fmt.Sprint(os.Getuid())
	if os.Getuid() == 0 {
		own = "60941"
	}
	for _, kind := range []string{local.KindBwrap, local.KindUserns} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, signer := newProvider(t, kind, nil)
			vm := create(t, p, "one")
			c := dial(t, vm, signer)
			mark := "11" + rand.Text()
			run(t, c, "touch ~/file; chmod u+s ~/file; (setsid sh -c 'echo $$ >~/pid; sleep 1000; : "+mark+"' >/dev/null 2>&1 &); until [ -s ~/pid ]; do sleep 0.01; done")
			if got := credentials(t, mark); !strings.HasPrefix(got, "Uid: "+own+" "+own+" "+own+" "+own+" ") || os.Getuid() == 0 && !strings.HasSuffix(got, "Groups:") {
				t.Errorf("got owner %s on the host", got)
			}
			info, err := os.Stat(filepath.Join(filepath.Dir(vm.Facts[fleet.FactLog]), "home", "file"))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid); got != own {
				t.Errorf("got owner %s of a file with its owner's rights", got)
			}
		})
	}
}

// credentials are the users and groups that a process with mark in its arguments has for the host.
func credentials(t *testing.T, mark string) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), mark) || !strings.HasPrefix(string(data), "sh\x00-c\x00echo") {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "Uid:") || strings.HasPrefix(line, "Gid:") || strings.HasPrefix(line, "Groups:") {
				found = append(found, strings.Fields(line)...)
			}
		}
		return strings.Join(found, " ")
	}
	t.Fatal("the process was not found on this host")
	return ""
}

// TestNotesForRoot: if errand runs as root, its notes at startup say how boxes are restricted, and which shared folders
// they cannot use.
func TestNotesForRoot(t *testing.T) {
	t.Parallel()
	private, open := filepath.Join(t.TempDir(), "private"), t.TempDir()
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, _ := newProvider(t, kind, func(c *local.Config) {
				c.Binds = []local.Bind{{Path: private}, {Path: open}, {Path: open, Writable: true}}
			})
			about, err := p.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(about.Notes, "\n")
			root := os.Geteuid() == 0
			if strings.Contains(notes, "errand runs as root") != root {
				t.Errorf("got notes %s", notes)
			}
			if own := kind != local.KindPlain; strings.Contains(notes, private+" of local.binds is not accessible") != (root && own) ||
				strings.Count(notes, open+" of local.binds is not accessible") != map[bool]int{true: 1}[root && own] {
				t.Errorf("got notes on binds %s", notes)
			}
		})
	}
}

// TestStrictUmask runs a test of this package under a umask that excludes other users, as which the boxes' processes
// run if root creates them.
func TestStrictUmask(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	passed := func(umask string) int {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `umask "$1" && exec "$0" -test.v -test.run='^TestIsolation$'`, self, umask).CombinedOutput()
		if err != nil {
			t.Errorf("umask %s: %v\n%s", umask, err, out)
		}
		return strings.Count(string(out), "--- PASS")
	}
	if usual, strict := passed("022"), passed("077"); usual != strict || strict == 0 {
		t.Errorf("got %d kinds with a usual umask, %d with a strict one", usual, strict)
	}
}
