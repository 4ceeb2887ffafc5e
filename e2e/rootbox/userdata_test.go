//go:build linux

package rootbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/fleet/cloudinit"
	"github.com/errand-bot/errand/internal/remote"
)

// deployment is errand's information about a VM before its creation.
type deployment struct {
	keys
	data []byte
	pin  string
}

// deploy returns the user data with which errand would create a VM.
func deploy(t *testing.T, spec cloudinit.Spec) deployment {
	t.Helper()
	d := deployment{keys: newKeys(t)}
	private, public, err := cloudinit.DeriveHostKey([]byte("a secret of the deployment"), spec.Name)
	must(t, err)
	spec.HostKey, spec.ClientKey, d.pin = private, d.client.PublicKey(), public
	d.data, err = cloudinit.UserData(spec)
	must(t, err)
	return d
}

func (d deployment) endpoint(b *rootbox.Box, user string, pins ...string) remote.Endpoint {
	return remote.Endpoint{Network: "tcp", Address: b.Addr.String() + ":22", User: user, HostKeys: pins}
}

func (d deployment) login(t *testing.T, b *rootbox.Box, user string, pins ...string) *remote.Client {
	t.Helper()
	c, err := remote.Dial(within(t), d.endpoint(b, user, pins...), remote.Config{Signer: d.client})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestUserDataIsApplied validates errand's user data with cloud-init and checks its effects.
func TestUserDataIsApplied(t *testing.T) {
	t.Parallel()
	lab := openLab(t)
	d := deploy(t, cloudinit.Spec{Name: "taken", ContactWithin: time.Hour, HardAfter: 6 * time.Hour, Setup: "echo set up > /root/setup-ran\n"})
	box := boot(t, lab, rootbox.Spec{Name: "taken", UserData: d.data})
	if out, err := box.Exec(within(t), "cloud-init", "schema", "--config-file", "/var/lib/cloud/seed/nocloud/user-data"); err != nil || !strings.Contains(out, "Valid") {
		t.Errorf("cloud-init's schema: %v\n%s", err, out)
	}
	root := d.login(t, box, "root", d.pin)
	for line, want := range map[string]string{
		"hostname":            "taken",
		"cat /root/setup-ran": "set up",
		"ls /etc/ssh/ssh_host_*_key /etc/ssh/errand_next* 2>/dev/null":                      "/etc/ssh/ssh_host_ed25519_key",
		"cat /var/lib/errand/firstboot":                                                     "done",
		"systemctl is-system-running":                                                       "running",
		"systemctl is-active errand-deadman.timer":                                          "active",
		"sshd -T | grep -c -E '^(passwordauthentication|kbdinteractiveauthentication) no$'": "2",
		"getent passwd errand | cut -d: -f6,7":                                              "/home/errand:/bin/bash",
		"getent shadow root errand | cut -d: -f2 | cut -c1 | tr -d '\\n'":                   "!*", // matches no password
		"stat -c %a /var/lib/cloud/instance/user-data.txt":                                  "600",
		"stat -c %U:%a /home/errand /home/errand-runner | tr '\\n' ' '":                     "errand:700 errand-runner:700",
		"stat -c %U:%a /usr/local/lib/errand":                                               "errand-runner:755",
		"visudo -c -q && stat -c %U:%a /etc/sudoers.d/errand":                               "root:440",
		"getent hosts taken | tr -s ' '":                                                    "127.0.1.1 taken taken",
	} {
		if got := sh(t, root, line+"; true"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	errand := d.login(t, box, "errand", d.pin)
	for _, line := range []string{"sudo -n true", "sudo -n -u errand-runner true", "ls /home/errand-runner", "touch /usr/local/lib/errand/x", "cat /etc/shadow", "cat /etc/ssh/ssh_host_ed25519_key", "cat /var/lib/cloud/instance/user-data.txt", "cat /var/lib/cloud/seed/nocloud/user-data", "ls /root", "/usr/local/sbin/errand-hostkey use", "nft flush ruleset", "systemctl stop errand-deadman.timer", "touch /run/errand/contact"} {
		if res, err := errand.Run(within(t), remote.Cmd{Argv: []string{"sh", "-c", line}}); err != nil || res.Code == 0 {
			t.Errorf("errand may %s: %v, %s", line, err, res.Stdout)
		}
	}
	becomesErrandOnly(t, d.login(t, box, "errand-runner", d.pin))
	sh(t, errand, "mkdir -p .ssh && for at in .bashrc .bash_profile .profile .ssh/rc; do echo 'echo ran >> ~/ran' > $at; done; echo 'RAN=ran' > .ssh/environment")
	again := d.login(t, box, "errand", d.pin)
	if got := sh(t, again, "echo $RAN; cat ran 2>/dev/null; true"); got != "" {
		t.Errorf("a login ran files in the agent's home: %q", got)
	}
	refusesOthers(t, d, box)
}

// becomesErrandOnly checks that the runner's user can only become errand, without other output.
func becomesErrandOnly(t *testing.T, runner *remote.Client) {
	t.Helper()
	res, err := runner.Run(within(t), remote.Cmd{Argv: []string{"sudo", "-n", "-H", "-u", "errand", "--", "sh", "-c", "id -un; echo $HOME"}})
	if got := string(res.Stdout) + string(res.Stderr); err != nil || got != "errand\n/home/errand\n" {
		t.Errorf("become errand: got %q, %v", got, err)
	}
	for _, line := range []string{"sudo -n true", "sudo -n -u nobody true", "sudo -n -g root true", "ls /home/errand", "cat /etc/shadow", "ls /root"} {
		if res, err := runner.Run(within(t), remote.Cmd{Argv: []string{"sh", "-c", line}}); err != nil || res.Code == 0 {
			t.Errorf("errand-runner may %s: %v, %s", line, err, res.Stdout)
		}
	}
}

// refusesOthers tries logins that must fail.
func refusesOthers(t *testing.T, d deployment, box *rootbox.Box) {
	t.Helper()
	stranger := newKeys(t).client
	for _, user := range []string{"root", "errand", "errand-runner", "debian", "nobody"} {
		_, err := remote.Dial(within(t), d.endpoint(box, user, d.pin), remote.Config{Signer: stranger})
		if !errors.Is(err, remote.ErrAuth) {
			t.Errorf("a stranger's key as %s: %v", user, err)
		}
	}
	if _, err := remote.Dial(within(t), d.endpoint(box, "nobody", d.pin), remote.Config{Signer: d.client}); !errors.Is(err, remote.ErrAuth) {
		t.Errorf("errand's key as nobody: %v", err)
	}
	for name, method := range map[string]ssh.AuthMethod{
		"a password": ssh.Password("errand"),
		"questions": ssh.KeyboardInteractive(func(_, _ string, questions []string, _ []bool) ([]string, error) {
			return make([]string, len(questions)), nil
		}),
	} {
		_, err := ssh.Dial("tcp", box.Addr.String()+":22", &ssh.ClientConfig{
			User: "errand", Auth: []ssh.AuthMethod{method}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 20 * time.Second, //nolint:gosec // it is about who may log in
		})
		if err == nil || !strings.Contains(err.Error(), "attempted methods [none]") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestHostKeyRotation replaces the host key of the first contact over the verified connection, as errand does, and
// checks that the old key is no longer accepted.
func TestHostKeyRotation(t *testing.T) {
	t.Parallel()
	lab := openLab(t)
	d := deploy(t, cloudinit.Spec{Name: "rotate"})
	box := boot(t, lab, rootbox.Spec{Name: "rotate", UserData: d.data})
	root := d.login(t, box, "root", d.pin)
	next := sh(t, root, cloudinit.HostKeyCommand+" make")
	if again := sh(t, root, cloudinit.HostKeyCommand+" make"); again != next || next == d.pin || !strings.HasPrefix(next, "ssh-ed25519 ") {
		t.Fatalf("make printed %q, then %q; the first was %q", next, again, d.pin)
	}
	d.login(t, box, "errand", d.pin) // no change yet
	if got := sh(t, root, cloudinit.HostKeyCommand+" use"); got != next {
		t.Errorf("use printed %q", got)
	}
	sh(t, root, "true") // the connection stays open
	eventually(t, "sshd shows the new key", func() bool {
		c, err := remote.Dial(within(t), d.endpoint(box, "errand", next), remote.Config{Signer: d.client})
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	for name, pins := range map[string][]string{"the old pin": {d.pin}, "both pins": {d.pin, next}} {
		_, err := remote.Dial(within(t), d.endpoint(box, "errand", pins...), remote.Config{Signer: d.client})
		if len(pins) == 1 && !errors.Is(err, remote.ErrHostKey) || len(pins) == 2 && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := sh(t, root, cloudinit.HostKeyCommand+" use"); got != next {
		t.Errorf("second use printed %q", got)
	}
	must(t, box.Shutdown(within(t)))
	must(t, box.PowerOn(within(t)))
	must(t, box.AwaitBooted(within(t)))
	d.login(t, box, "errand", next) // a later boot does not bring the first key back
}

// TestMetadataIsClosed queries the metadata service as root and as the agent's user, before and after a reboot.
func TestMetadataIsClosed(t *testing.T) {
	t.Parallel()
	lab := openLab(t)
	d := deploy(t, cloudinit.Spec{Name: "metadata"})
	box := boot(t, lab, rootbox.Spec{Name: "metadata", Instance: "4711", UserData: d.data})
	ask := "curl -sS --noproxy '*' -m 5 http://169.254.169.254/hetzner/v1/"
	check := func(when string) {
		t.Helper()
		root, errand := d.login(t, box, "root", d.pin), d.login(t, box, "errand", d.pin)
		if got := sh(t, root, ask+"metadata/instance-id"); got != "4711" {
			t.Errorf("%s: root got %q", when, got)
		}
		if got := sh(t, root, ask+"userdata"); got != strings.TrimSpace(string(d.data)) {
			t.Errorf("%s: root got %d bytes of user data, want %d", when, len(got), len(d.data))
		}
		res, err := errand.Run(within(t), remote.Cmd{Argv: []string{"sh", "-c", ask + "userdata"}})
		if err != nil || res.Code != 7 || len(res.Stdout) > 0 { // 7: connection refused, at once
			t.Errorf("%s: errand got %d, %v, %q", when, res.Code, err, res.Stdout)
		}
	}
	check("after the first boot")
	must(t, box.Shutdown(within(t)))
	must(t, box.PowerOn(within(t)))
	must(t, box.AwaitBooted(within(t)))
	check("after the second boot")
	sh(t, d.login(t, box, "root", d.pin), "nft delete table inet errand_metadata")
	if got := sh(t, d.login(t, box, "errand", d.pin), ask+"metadata/instance-id"); got != "4711" {
		t.Errorf("without the rule errand got %q: access was not blocked by the rule", got)
	}
}

// TestDeadMan checks that the VM's dead-man timer detects missing contact. The test changes the file's age instead of
// waiting for an hour.
func TestDeadMan(t *testing.T) {
	t.Parallel()
	lab := openLab(t)
	for name, tt := range map[string]struct {
		spec cloudinit.Spec
		do   string // as root
		off  bool
	}{
		"no contact for too long": {cloudinit.Spec{ContactWithin: time.Hour}, "touch -d '-61 minutes' /run/errand/contact", true},
		"in touch":                {cloudinit.Spec{ContactWithin: time.Hour}, "touch -d '-59 minutes' /run/errand/contact", false},
		"the VM is too old":       {cloudinit.Spec{HardAfter: 6 * time.Hour}, "date -d '-361 minutes' +%s > /var/lib/errand/born", true},
		"not yet":                 {cloudinit.Spec{HardAfter: 6 * time.Hour}, "date -d '-359 minutes' +%s > /var/lib/errand/born", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.spec.Name = strings.ToLower(strings.ReplaceAll(name, " ", "-"))
			d := deploy(t, tt.spec)
			box := boot(t, lab, rootbox.Spec{Name: tt.spec.Name, UserData: d.data})
			// Not over SSH, because a login counts as contact.
			_, err := box.Exec(within(t), "sh", "-c", tt.do)
			must(t, err)
			_, err = box.Exec(within(t), "systemctl", "start", "--no-block", "errand-deadman.service")
			must(t, err)
			if tt.off {
				must(t, box.AwaitOff(within(t), time.Minute))
				return
			}
			eventually(t, "the end of the check", func() bool {
				out, err := box.Exec(within(t), "systemctl", "show", "-P", "ActiveState,Result", "errand-deadman.service")
				must(t, err)
				return strings.Contains(out, "inactive")
			})
			if !box.Running() {
				t.Error("the box is off")
			}
		})
	}
}

// TestLoginKeepsVMRunning: while errand is logged in, the VM's age does not matter.
func TestLoginKeepsVMRunning(t *testing.T) {
	t.Parallel()
	lab := openLab(t)
	d := deploy(t, cloudinit.Spec{Name: "kept", ContactWithin: time.Hour})
	box := boot(t, lab, rootbox.Spec{Name: "kept", UserData: d.data})
	c := d.login(t, box, "errand", d.pin)
	sh(t, c, "true") // only then sshd shows the connection's user
	age := func() error {
		_, err := box.Exec(within(t), "sh", "-c", "touch -d '-2 hours' /run/errand/contact && /usr/local/sbin/errand-deadman")
		return err
	}
	must(t, age())
	if !box.Running() {
		t.Fatal("the VM powers off during a login")
	}
	must(t, c.Close())
	eventually(t, "the end of the login", func() bool {
		out, err := box.Exec(within(t), "sh", "-c", "pgrep -fc '^sshd: errand' || true")
		must(t, err)
		return out == "0"
	})
	_ = age() // kills its own shell, too
	must(t, box.AwaitOff(within(t), time.Minute))
}
