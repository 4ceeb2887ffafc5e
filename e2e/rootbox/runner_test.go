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

// asAgent is a program that the agent's user runs during a run, outside the run's namespace (if the kernel permits
// one). It prints the results of its attempts.
const asAgent = `
PATH=/usr/sbin:/usr/bin:/sbin:/bin
echo "user: $(id -un)"
may() { what=$1; shift; "$@" >/tmp/may.$$ 2>&1 </dev/null && echo "may $what"; }
mine=/home/errand-runner/.errand
may "look into the runner's home" ls /home/errand-runner
for f in $mine/runs/RUN/spec.json $mine/runs/RUN/events.jsonl $mine/tether/daemon.log; do may "read $f" cat $f; may "write $f" sh -c "echo x >>$f"; done
may "write an exit" sh -c "echo {} >$mine/runs/RUN/exit.json"
may "ask for a stop" sh -c "echo x >$mine/runs/RUN/stop"
may "talk to the tether's daemon" curl -s --max-time 5 --unix-socket $mine/tether/control.sock http://x/
for p in $(pgrep -u errand-runner); do may "read the environment of $p" cat /proc/$p/environ; may "kill $p" kill -KILL $p; may "stop $p" kill -STOP $p; done
may "take the tether's port" perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0); setsockopt(S,SOL_SOCKET,SO_REUSEADDR,1); setsockopt(S,SOL_SOCKET,SO_REUSEPORT,1); bind(S,sockaddr_in(9413,INADDR_LOOPBACK)) or exit 1; listen(S,5) or exit 1'
for p in /usr/local/lib/errand/*; do may "run $p" $p version; may "change $p" sh -c "echo x >>$p"; may "replace $p" mv -f /tmp/may.$$ $p; may "remove $p" rm -f $p; done
may "become root" sudo -n true
may "become the runner" sudo -n -u errand-runner true
mkdir -p ~/.ssh && rm -f /tmp/key.$$ && ssh-keygen -q -t ed25519 -N '' -f /tmp/key.$$ && cat /tmp/key.$$.pub >>~/.ssh/authorized_keys
for who in errand errand-runner root; do may "log in as $who" ssh -i /tmp/key.$$ -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=10 $who@127.0.0.1 true; done
setsid sh -c 'trap "" HUP INT TERM; while :; do sleep 4711; done' >/dev/null 2>&1 </dev/null &
echo end
`

// exec runs a bash script as a user of the task's box.
func (l *life) exec(user, text string) string {
	l.t.Helper()
	out, err := l.box().Exec(within(l.t), "setpriv", "--reuid", user, "--regid", user, "--init-groups", "--reset-env", "bash", "-c", text)
	must(l.t, err)
	return out
}

// keeper is a pkill pattern for the process between the runner and the agent.
const keeper = "^/usr/local/lib/errand/errand-runner-[0-9a-f]* live$"

// wantRunEnd waits until a run's exit record has this text, and checks that no process of the run is left.
func (l *life) wantRunEnd(run, what string) {
	l.t.Helper()
	box := l.box()
	eventually(l.t, "the run's end", func() bool {
		data, err := box.Exec(within(l.t), "sh", "-c", "cat /home/errand-runner/.errand/runs/"+run+"/exit.json 2>/dev/null || true")
		return err == nil && strings.Contains(data, what)
	})
	if left, err := box.Exec(within(l.t), "sh", "-c", "pgrep -u errand -fa 'sleep 4711|simagent|"+keeper+"' || true"); err != nil || left != "" {
		l.t.Errorf("leftover processes: %q, %v", left, err)
	}
}

// TestAgentAgainstRunner: an agent cannot access the runner's data on its VM, even outside its namespace: neither the
// records of its run, nor the tether, nor their processes and programs. It can kill the process between it and the
// runner, which ends its run and is reported, or stop it, which does not prevent the run from being ended. No process
// that it leaves running outlives a run.
func TestAgentAgainstRunner(t *testing.T) {
	t.Parallel()
	rootbox.Require(t)
	l := begin(t, 10*time.Minute, "true")
	look := "cd /home/errand-runner/.errand && ls runs/*/spec.json tether/control.sock && pgrep -u errand-runner -fa ' supervise --root | tether serve --root '"
	before, err := l.box().Exec(within(t), "sh", "-c", look)
	must(t, err)
	run := l.task().Run.ID
	for _, want := range []string{"runs/" + run + "/spec.json", "tether/control.sock", " supervise ", " tether serve "} {
		if !strings.Contains(before, want) {
			t.Fatalf("the agent's attempts use a wrong path: no %q in\n%s", want, before)
		}
	}
	got := strings.Split(l.exec("errand", strings.ReplaceAll(asAgent, "RUN", run)), "\n")
	program := ""
	if i := slices.IndexFunc(got, func(line string) bool { return strings.HasPrefix(line, "may run /usr/local/lib/errand/errand-runner-") }); i >= 0 {
		program = got[i]
	}
	if want := []string{"user: errand", program, "end"}; !slices.Equal(got, want) {
		t.Errorf("the agent's user got:\n%s", strings.Join(got, "\n"))
	}
	if after, err := l.box().Exec(within(t), "sh", "-c", look); err != nil || after != before {
		t.Errorf("before:\n%s\nafter: %v\n%s", before, err, after)
	}
	l.exec("errand", "pkill -KILL -u errand -f '"+keeper+"'")
	l.wantRunEnd(run, `"code":137,"signal":"killed"`)
	eventually(t, "the next run", func() bool {
		next := l.task().Run
		return next != nil && next.ID != run
	})
	run = l.task().Run.ID
	eventually(t, "its agent", func() bool {
		out, err := l.box().Exec(within(t), "sh", "-c", "pgrep -u errand -f '"+keeper+"' >/dev/null && pgrep -u errand -f simagent || true") // there may be two of the former for a moment
		must(t, err)
		return out != ""
	})
	const why = "the agent's program was killed before its work was done"
	if history := l.task().History; !slices.ContainsFunc(history, func(h state.PhaseChange) bool { return h.Phase == state.PhaseInterrupted && h.Reason == why }) {
		t.Errorf("the task was not interrupted because %s: %+v", why, history)
	}
	l.exec("errand", "setsid sleep 4711 >/dev/null 2>&1 </dev/null &\npkill -STOP -u errand -f '"+keeper+"'")
	_, err = l.ada().Comment(demo.Full, l.issue, "@errand stop")
	must(t, err)
	l.wantRunEnd(run, `"cause":"stopped"`)
	// A run's command can use files that it inherits from another user as its own.
	l.wantRecords("x", `"argv":["sh","-c","cat >/dev/stderr; id -un >/dev/stdout; pwd; echo $HOME"],"stdin":"read\n","dir":"~/x",`,
		`"stream":"stderr","text":"read"`, `"text":"errand"`, `"text":"/home/errand/x"`, `"text":"/home/errand"`, `"cause":"exited","code":0`)
	// The same without a namespace.
	l.wantRecords("y", `"isolation":"subreaper","argv":["bash","-c","setsid sleep 4711 >/dev/null 2>&1 & echo last; kill -KILL $PPID; exec sleep 4711"],"dir":"~/x",`,
		`"text":"last"`, `"cause":"exited","code":137,"signal":"killed"`)
	l.wantRunEnd("y", "killed")
}

// wantRecords lets the runner execute a run without errand, and checks the run's records.
func (l *life) wantRecords(id, spec string, want ...string) {
	l.t.Helper()
	spec = `{"id":"` + id + `",` + spec + `"become":["sudo","-n","-H","-u","errand","--"],"home":"/home/errand"}`
	said := l.exec("errand-runner", "set -e; cd /usr/local/lib/errand; ./errand-runner-* start <<<'"+spec+"'; ./errand-runner-* follow --run "+id)
	for _, w := range want {
		if !strings.Contains(said, w) {
			l.t.Errorf("no %s in\n%s", w, said)
		}
	}
}
