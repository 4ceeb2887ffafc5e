//go:build linux

package rootbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/state"
)

// asNobody is a program that another user of the VM runs during a run: it tries to read everything of interest and
// prints the results.
const asNobody = `
PATH=/usr/sbin:/usr/bin:/sbin:/bin
echo "user: $(id -un)"
for p in /proc/[0-9]*; do grep -qs "^Uid:.$(id -u)" $p/status && continue; { cat $p/environ || cat $p/maps; } 2>/dev/null | grep -q . && echo "reads the environment of $p"; done
find /home /root /tmp /var/tmp /run -type f -readable -print 2>/dev/null | grep -E 'errand|claude' | grep -v '^/run/errand/contact$' | sed 's/^/reads /'
ls /home/errand/work 2>/dev/null | sed 's/^/reads /'
knock() { exec 3<>/dev/tcp/127.0.0.1/9413 && printf "$2" >&3 && read -r _ code _ <&3; echo "$1: $code"; exec 3<&-; }
knock model 'POST /llm/anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}'
knock git 'GET /git/acme/slug.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
knock proxy 'CONNECT proxy.golang.org:443 HTTP/1.1\r\nHost: x\r\n\r\n'
`

// TestAnotherUser: another user of a VM reads nothing of a run, not even its checkout, and gets nothing at its tether.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	rootbox.Require(t)
	l := begin(t, 10*time.Minute, "true")
	if files, err := l.box().Exec(within(t), "ls", "/home/errand/work"); err != nil || !strings.Contains(files, "greeting.txt") {
		t.Fatalf("the checkout is not at the path that the other user tries: %q, %v", files, err)
	}
	out, err := l.box().Exec(within(t), "setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "bash", "-c", asNobody)
	must(t, err)
	for _, line := range []string{"user: nobody", "model: 401", "git: 401", "proxy: 407"} {
		if !strings.Contains(out+"\n", line+"\n") {
			t.Errorf("want %q, got:\n%s", line, out)
		}
	}
	if strings.Contains(out, "reads ") {
		t.Errorf("another user can read data of a run:\n%s", out)
	}
	if !l.logged("request from a VM denied") {
		t.Error("the log has no denied request")
	}
	l.exec("errand", "setsid sleep 4711 >/dev/null 2>&1 </dev/null &") // leftover processes of a run are ended with it
	l.world.Model.Release("work")
	l.wantPublished()
	if left, err := l.box().Exec(within(t), "sh", "-c", "pgrep -u errand -fa 'sleep 4711' || true"); err != nil || left != "" {
		t.Errorf("leftover processes: %q, %v", left, err)
	}
}

// fill uses all free disk space, and the space that the runner has reserved for the end of the run.
const fill = "rm -f $HOME/.errand/runs/*/reserve; i=0; for mb in 512 64 8 1; do while fallocate -l ${mb}M $HOME/hog-$((i=i+1)) 2>/dev/null; do :; done; done; cat /dev/zero >$HOME/rest 2>/dev/null"

// TestFilledByTheAgent: an agent that fills its VM's disk completely ends its own run, which reports the reason
// although nothing can be written there. The task continues on another VM (TestFaults, disk full, shows that it can
// finish there); if that one is filled, too, the task fails, explains why, and keeps no VM.
func TestFilledByTheAgent(t *testing.T) {
	t.Parallel()
	rootbox.Require(t)
	const why = "the VM's disk was full"
	l := begin(t, 10*time.Minute, fill, func(c *demo.Config) { c.Timing.MaxAttempts = 2 })
	l.world.Model.Release("work")
	var task *state.Task
	eventually(t, "the task to fail with a comment that explains it", func() bool {
		task = l.task()
		return task.Phase == state.PhaseFailed && strings.Contains(l.comments(), "stopped while implementing: "+why)
	})
	if !slices.ContainsFunc(task.History, func(h state.PhaseChange) bool { return h.Phase == state.PhaseInterrupted && h.Reason == why }) {
		t.Errorf("the task was not interrupted: %+v", task.History)
	}
	eventually(t, "the deletion of the VM", func() bool { return l.task().VM == nil })
	if n := len(l.task().VMs); n != 2 {
		t.Errorf("got %d filled VMs, want 2", n)
	}
	for _, vm := range l.task().VMs {
		if vm.EndReason != state.VMEndDiskFull {
			t.Errorf("VM %s ended as %q", vm.Name, vm.EndReason)
		}
	}
}
