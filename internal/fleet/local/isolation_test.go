package local_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
)

func TestIsolation(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	connect := "git ls-remote http://127.0.0.1:" + port + "/x 2>&1 | grep -c -i -E 'refused|connect' "
	own := []string{local.KindBwrap, local.KindUserns}
	tests := map[string]struct {
		kinds []string
		line  string
		want  string
	}{
		"host files":      {kinds: own, line: "cat " + secret + " 2>/dev/null || echo hidden", want: "hidden"},
		"host key":        {kinds: own, line: "find / -xdev -name host_key 2>/dev/null | wc -l", want: "0"},
		"host's loopback": {kinds: own, want: "1", line: connect},
		"processes": {kinds: own, want: "few",
			line: "[ $(ls /proc | grep -c '^[0-9]') -lt 10 ] && echo few"},
		"own loopback": {kinds: kinds, want: "up", line: "sh -c 'grep -q lo: /proc/net/dev' && echo up"},
		"not root":     {kinds: own, line: "[ $(id -u) -ne 0 ] && echo user", want: "user"},
		"no capability": {kinds: own, want: "0000000000000000",
			line: "grep CapEff /proc/self/status | cut -f2"},
		"system is read-only": {kinds: own, line: "touch /usr/x 2>/dev/null || echo no", want: "no"},
		"orchestrator's environment": {kinds: kinds, want: "",
			line: "cat /proc/$PPID/environ /proc/self/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n' | grep ^ERRAND_TEST_SECRET"},
		"tools":                           {kinds: kinds, line: "command -v git sh >/dev/null && echo both", want: "both"},
		"temporary":                       {kinds: kinds, line: "f=$(mktemp) && echo x > $f && cat $f && ls -d $TMPDIR >/dev/null", want: "x"},
		"nothing but its own is writable": {kinds: own, line: "touch /x /etc/x /opt/x 2>/dev/null || echo no", want: "no"},
		"read-only stays so":              {kinds: own, want: "no", line: "unshare -Urm mount -o remount,rw,bind /usr 2>/dev/null && touch /usr/x || echo no"},
		"mounts stay":                     {kinds: own, want: "no", line: "unshare -Urm umount /usr 2>/dev/null || echo no"},
		"first process is closed":         {kinds: []string{local.KindUserns}, want: "closed", line: "ls /proc/1/root/ /proc/1/fd/ >/dev/null 2>&1 || echo closed"},
		"devices":                         {kinds: own, want: "0 1 8", line: "echo x > /dev/null && dd if=/dev/urandom of=/dev/shm/r bs=8 count=1 2>/dev/null && echo 0 $(ls /dev/shm | wc -l) $(wc -c < /dev/shm/r)"},
		"no device of the host":           {kinds: own, want: "0", line: "find /dev -type b | wc -l"},
		"SSH server is closed": {kinds: own, want: "closed", line: "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline | grep -q '^/opt/errand/errand-runner box-ss[h]' || continue; " +
			"{ cat $p/environ || cat $p/maps; } >/dev/null 2>&1 && echo open || echo closed; done 2>/dev/null | sort -u"},
		"host's kernel": {kinds: own, want: "no", line: "f=/proc/sys/kernel/core_pattern; v=$(cat $f); (echo \"$v\" >$f) 2>/dev/null && echo written || echo no"},
		"host's kernel from a user namespace": {kinds: own, want: "no",
			line: "f=/proc/sys/kernel/core_pattern; v=$(cat $f); (echo \"$v\" | unshare -Ur tee $f) >/dev/null 2>&1 && echo written || echo no"},
		// Except for the box's own queues and process IDs, and empty files.
		"nothing of the kernel is writable": {kinds: own, want: "",
			line: "find /proc -maxdepth 5 '(' -path '/proc/[0-9]*' -o -path /proc/self -o -path /proc/thread-self ')' -prune -o -type f -writable -print 2>/dev/null" +
				" | grep -v -E '^/proc/(pressure/|keys$|kmsg$|key-users$|timer_list$|sys/fs/mqueue/|sys/kernel/(ns_last_pid|pid_max|auto_msgmni|sem|msg|shm))'"},
		"memory of the kernel": {kinds: own, line: "head -c1 /proc/kcore /proc/kmsg 2>/dev/null | wc -c", want: "0"},
		"user name":            {kinds: own, line: "id -un; echo ~agent", want: "agent\n/home/agent"},
		"name":                 {kinds: kinds, line: "echo $ERRAND_BOX", want: "one"},
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, signer := newProvider(t, kind, nil)
			c := dial(t, create(t, p, "one"), signer)
			for name, test := range tests {
				if !slices.Contains(test.kinds, kind) {
					continue
				}
				if got := run(t, c, test.line+" || true"); got != test.want {
					t.Errorf("%s: got %q, want %q", name, got, test.want)
				}
			}
		})
	}
}

func TestBindsAndPath(t *testing.T) {
	t.Parallel()
	tools, cache := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "hello"), []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cache, 0o777); err != nil { // boxes that root makes run as somebody else
		t.Fatal(err)
	}
	for _, kind := range []string{local.KindBwrap, local.KindUserns} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, signer := newProvider(t, kind, func(c *local.Config) {
				c.Binds = []local.Bind{{Path: tools}, {Path: cache, Writable: true}}
				c.Path = []string{tools}
			})
			c := dial(t, create(t, p, "bound"), signer)
			if got := run(t, c, "hello; touch "+tools+"/x 2>/dev/null || echo read-only; touch "+cache+"/"+kind); got != "hello\nread-only" {
				t.Errorf("got output %q from the sandbox", got)
			}
			if _, err := os.Stat(filepath.Join(cache, kind)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRunnerInsideWorks(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, signer := newProvider(t, kind, nil)
			vm := create(t, p, "one")
			c := dial(t, vm, signer)
			// The runner, which is this test binary, refuses a directory that is no box.
			got := run(t, c, vm.Facts[fleet.FactRunner]+" box-supervise -dir /nowhere 2>&1 || true")
			if !strings.Contains(got, "read box") {
				t.Errorf("got output %q from the runner", got)
			}
		})
	}
}

func TestLongPaths(t *testing.T) {
	t.Parallel()
	p, signer := newProvider(t, local.KindPlain, func(c *local.Config) {
		c.Dir = filepath.Join(c.Dir, strings.Repeat("long/", 30))
	})
	vm := create(t, p, "far-away")
	if len(vm.Endpoint.Address) > 103 {
		t.Errorf("got a socket path of %d bytes", len(vm.Endpoint.Address))
	}
	if got := run(t, dial(t, vm, signer), "echo up"); got != "up" {
		t.Errorf("got output %q from the sandbox", got)
	}
	if err := p.Delete(t.Context(), "far-away", fleet.ReasonDone); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(vm.Endpoint.Address)); !os.IsNotExist(err) {
		t.Errorf("the sockets' directory still exists: error %v", err)
	}
}

func TestTetherPort(t *testing.T) {
	t.Parallel()
	p, _ := newProvider(t, local.KindPlain, nil)
	a, b := create(t, p, "a"), create(t, p, "b")
	if a.TetherPort == b.TetherPort {
		t.Errorf("two plain sandboxes share port %d", a.TetherPort)
	}
	for _, vm := range []fleet.VM{a, b} {
		if vm.TetherPort < 10_000 || vm.TetherPort > 32_767 {
			t.Errorf("got port %d, which the kernel may give to another program before the sandbox uses it", vm.TetherPort)
		}
	}
	p, _ = newProvider(t, local.KindUserns, nil)
	if vm := create(t, p, "c"); vm.TetherPort != 9413 {
		t.Errorf("got port %d", vm.TetherPort)
	}
}

// TestAutoFallsBack runs a provider whose PATH has no bwrap: the next kind is
// taken, and the notes say why.
func TestAutoFallsBack(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"git", "sh"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	p, _ := newProvider(t, local.KindAuto, nil)
	about, err := p.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if about.Kind == local.KindBwrap || len(about.Notes) < 1 || !strings.Contains(about.Notes[0], "bwrap does not work here") {
		t.Errorf("got description %+v", about)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	key := newSigner(t).PublicKey()
	tests := map[string]struct {
		change func(*local.Config)
	}{
		"kind":       {func(c *local.Config) { c.Kind = "docker" }},
		"runner":     {func(c *local.Config) { c.Runner = "" }},
		"key":        {func(c *local.Config) { c.ClientKey = ssh.PublicKey(nil) }},
		"deployment": {func(c *local.Config) { c.Deployment = "" }},
		"dir":        {func(c *local.Config) { c.Dir = "" }},
		"dir's path": {func(c *local.Config) { c.Dir = "/dev/null/x" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := local.Config{Dir: t.TempDir(), Runner: "/bin/true", ClientKey: key, Deployment: "test"}
			test.change(&cfg)
			if _, err := local.New(cfg); err == nil {
				t.Error("got no error, want one")
			}
		})
	}
}

func TestBrokenRunnerIsAnError(t *testing.T) {
	t.Parallel()
	p, err := local.New(local.Config{Dir: t.TempDir(), Runner: "/bin/false", ClientKey: newSigner(t).PublicKey(), Deployment: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), fleet.Spec{Name: "none"}); err == nil || !strings.Contains(err.Error(), "no kind of box works here") {
		t.Errorf("got error %v", err)
	}
	if vms, err := p.List(t.Context()); err != nil || len(vms) != 0 {
		t.Errorf("got list %v, error %v", vms, err)
	}
}
