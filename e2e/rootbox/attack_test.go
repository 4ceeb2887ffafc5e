//go:build linux

package rootbox_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/e2e/rootbox"
)

// asNobody is a program that another user of the VM runs in the midst of a run: it asks for all that would be of use, and
// prints what it gets.
const asNobody = `
PATH=/usr/sbin:/usr/bin:/sbin:/bin
echo "user: $(id -un)"
for p in /proc/[0-9]*; do grep -qs "^Uid:.$(id -u)" $p/status && continue; { cat $p/environ || cat $p/maps; } 2>/dev/null | grep -q . && echo "reads the environment of $p"; done
find /home /root /tmp /var/tmp /run -path /home/errand/work -prune -o -type f -readable -print 2>/dev/null | grep -E 'errand|claude' | grep -v -E '^/home/errand/(\.bash|\.profile|\.errand/bin/)|^/run/errand/contact$' | sed 's/^/reads /'
knock() { exec 3<>/dev/tcp/127.0.0.1/9413 && printf "$2" >&3 && read -r _ code _ <&3; echo "$1: $code"; exec 3<&-; }
knock model 'POST /llm/anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}'
knock git 'GET /git/acme/slug.git/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
knock proxy 'CONNECT proxy.golang.org:443 HTTP/1.1\r\nHost: x\r\n\r\n'
`

// TestAnotherUser: another user of a VM reads nothing of a run but its checkout, and gets nothing at its tether.
func TestAnotherUser(t *testing.T) {
	t.Parallel()
	rootbox.Require(t)
	l := begin(t, "10m", "true")
	out, err := l.box().Exec(within(t), "setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups", "bash", "-c", asNobody)
	must(t, err)
	for _, line := range []string{"user: nobody", "model: 401", "git: 401", "proxy: 407"} {
		if !strings.Contains(out+"\n", line+"\n") {
			t.Errorf("want %q, and it says:\n%s", line, out)
		}
	}
	if strings.Contains(out, "reads ") {
		t.Errorf("another user can read what is a run's:\n%s", out)
	}
	if !l.logged("tether: refused") {
		t.Error("the log does not say that something was refused")
	}
	l.world.Model.Release("work")
	l.ends()
}
