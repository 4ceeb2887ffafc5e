package proc

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLeftovers: Leftovers returns a user's processes that started since the given time, independent of their parents,
// except logins and the caller.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	const agent, keeper = 1000, 1001
	self := os.Getpid()
	owners := map[int]owner{
		1: {0, "systemd"}, 2: {0, "sshd"}, 3: {0, "sshd-session"}, 4: {agent, "sshd-session"}, 5: {agent, "git"},
		10: {keeper, "errand-runner"}, 11: {agent, "errand-runner"}, 12: {agent, "claude"}, 13: {agent, "ended"},
		20: {agent, "sshd"}, 21: {agent, "hides"}, 22: {firstSubUID + 33, "in a container"}, 23: {agent, "systemd"},
		30: {keeper, "tether"}, 31: {33, "www"}, self: {agent, "the caller"},
	}
	all := []entry{
		{pid: 1, began: 1}, {pid: 2, parent: 1, began: 50}, {pid: 3, parent: 2, began: 900}, {pid: 4, parent: 3, began: 900}, {pid: 5, parent: 4, began: 901},
		{pid: 10, parent: 1, began: 500}, {pid: 11, parent: 10, began: 501}, {pid: 12, parent: 11, began: 502}, {pid: 13, parent: 11, began: 502, zombie: true},
		{pid: 20, parent: 1, began: 600}, {pid: 21, parent: 20, began: 600}, {pid: 22, parent: 1, began: 601}, {pid: 23, parent: 1, began: 60},
		{pid: 24, parent: 1, began: 700}, // has ended since
		{pid: 30, parent: 1, began: 500}, {pid: 31, parent: 1, began: 700}, {pid: self, parent: 10, began: 800},
	}
	whose := func(pid int) (owner, bool) { o, ok := owners[pid]; return o, ok }
	for since, want := range map[int64][]int{
		500: {11, 12, 20, 21, 22},
		0:   {11, 12, 20, 21, 22, 23},
		601: {22},
		999: nil,
	} {
		if diff := cmp.Diff(want, leftovers(all, whose, agent, since)); diff != "" {
			t.Errorf("since %d (-want +got):\n%s", since, diff)
		}
	}
}

func TestParseOwner(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want owner
		ok   bool
	}{
		"ordinary":     {"Name:\tsleep\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t0\t0\t0\t0\n", owner{1000, "sleep"}, true},
		"hostile name": {"Name:\tx\\nUid: 0\nUid:\t1000\t1000\t1000\t1000\n", owner{1000, "x\\nUid: 0"}, true},
		"cut":          {"Name:\tsleep\n", owner{}, false},
		"no number":    {"Uid:\tx\n", owner{}, false},
		"none":         {"Uid:\n", owner{}, false},
	} {
		got, ok := parseOwner(test.text)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if o, ok := ownerOf(os.Getpid()); !ok || o.uid != os.Getuid() || o.name == "" {
		t.Errorf("this process is %+v, %v", o, ok)
	}
}

// TestStartTime: a process starts at the same time as its parent or later, in the same boot.
func TestStartTime(t *testing.T) {
	t.Parallel()
	boot, ticks := StartTime()
	if boot == "" || ticks <= 0 {
		t.Errorf("%q %d", boot, ticks)
	}
	if again, same := StartTime(); again != boot || same != ticks {
		t.Errorf("then %q %d", again, same)
	}
}

// TestTreeCPU: the CPU time of a process and its children is visible from outside.
func TestTreeCPU(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "(while :; do :; done) & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		used, known := TreeCPU(cmd.Process.Pid)
		switch {
		case !known:
			t.Fatal("this system does not tell")
		case used >= 50*time.Millisecond:
			return
		case time.Now().After(deadline):
			t.Fatalf("it has used %s", used)
		}
	}
}
