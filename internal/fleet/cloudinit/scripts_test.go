package cloudinit_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet/cloudinit"
)

// place is a machine's folders, as far as the scripts care.
type place struct {
	t                                              *testing.T
	etc, run, state, ssh, proc, bin, home, records string
	reloads, offs                                  string // files with a line per reload and power-off
}

func newPlace(t *testing.T) *place {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIP: the scripts are for Linux")
	}
	dir := t.TempDir()
	p := &place{t: t, reloads: filepath.Join(dir, "reloads"), offs: filepath.Join(dir, "offs")}
	for name, at := range map[string]*string{"etc": &p.etc, "run": &p.run, "state": &p.state, "ssh": &p.ssh, "proc": &p.proc, "bin": &p.bin, "home": &p.home, "records": &p.records} {
		*at = filepath.Join(dir, name)
		if err := os.Mkdir(*at, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// lib is the directory of the runner's programs. It does not exist yet.
func (p *place) lib() string { return filepath.Join(p.records, "..", "lib") }

func (p *place) write(path, content string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // scripts, too
		p.t.Fatal(err)
	}
}

// sh runs one of the scripts and returns what it printed, and its exit code.
func (p *place) sh(script string, args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	cmd := exec.Command("sh", append([]string{filepath.Join("files", script)}, args...)...)
	cmd.Env = append(os.Environ(),
		"ERRAND_ETC="+p.etc, "ERRAND_RUN="+p.run, "ERRAND_STATE_DIR="+p.state, "ERRAND_SSH_DIR="+p.ssh, "ERRAND_PROC="+p.proc,
		"ERRAND_PAUSE=0", "ERRAND_SBIN="+p.bin, "ERRAND_HOME="+p.home, "ERRAND_RUNNER_HOME="+p.records, "ERRAND_RUNNER="+strconv.Itoa(os.Getuid()), "ERRAND_LIB="+p.lib(), "ERRAND_SSHD_RELOAD=sh "+p.bin+"/reload", "ERRAND_POWEROFF=sh "+p.bin+"/off", "PATH="+p.bin+":"+os.Getenv("PATH"))
	p.write(p.bin+"/reload", "echo reload >>"+p.reloads)
	p.write(p.bin+"/off", "echo off >>"+p.offs)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(out.String()), strings.TrimSpace(errs.String()), cmd.ProcessState.ExitCode()
}

func lines(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func TestHostKeyScript(t *testing.T) {
	t.Parallel()
	tool(t, "ssh-keygen")
	p := newPlace(t)
	private, first, err := cloudinit.DeriveHostKey([]byte(secret), "a")
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(p.ssh, "ssh_host_ed25519_key")
	p.write(key, string(private))
	p.write(p.state+"/firstboot", "install packages\n")
	if _, why, code := p.sh("errand-hostkey", "make"); code != 75 || !strings.Contains(why, "install packages") {
		t.Errorf("during the first boot: got exit code %d, output %s", code, why)
	}
	p.write(p.state+"/firstboot", "failed to install packages (exit 100): no net\n")
	if _, why, code := p.sh("errand-hostkey", "make"); code != 70 || !strings.Contains(why, "no net") {
		t.Errorf("after a failed first boot: got exit code %d, output %s", code, why)
	}
	p.write(p.state+"/firstboot", "done\n")
	next, why, code := p.sh("errand-hostkey", "make")
	if code != 0 || !strings.HasPrefix(next, "ssh-ed25519 ") || strings.Contains(next, "\n") || next == first {
		t.Fatalf("make: got exit code %d, key %q, output %s", code, next, why)
	}
	if again, _, _ := p.sh("errand-hostkey", "make"); again != next {
		t.Errorf("second make: got %q, want %q", again, next)
	}
	if got := hostKey(t, key); got != first || lines(t, p.reloads) != 0 {
		t.Errorf("before use: got key %q of sshd", got)
	}
	for range 2 {
		if got, why, code := p.sh("errand-hostkey", "use"); code != 0 || got != next {
			t.Fatalf("use: got exit code %d, key %q, output %s", code, got, why)
		}
		if got := hostKey(t, key); got != next {
			t.Errorf("after use: got key %q of sshd", got)
		}
	}
	if n := lines(t, p.reloads); n != 2 {
		t.Errorf("got %d reloads of sshd", n)
	}
	if third, _, code := p.sh("errand-hostkey", "make"); code != 0 || third == next {
		t.Errorf("make after use: got exit code %d, key %q", code, third)
	}
	if _, _, code := p.sh("errand-hostkey"); code != 64 {
		t.Errorf("without an argument: got exit code %d", code)
	}
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("got mode %v of the key, error %v", info.Mode(), err)
	}
}

func hostKey(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(keygen(t, data))[:2], " ")
}

func TestDeadMan(t *testing.T) {
	t.Parallel()
	me := strconv.Itoa(os.Getuid())
	const root, master = "0", "1"
	tests := map[string]struct {
		contact, born time.Duration        // ago; below zero: no file
		procs         map[string][4]string // pid: title, comm, uid, parent
		off           bool
		why           string
	}{
		"fresh":                    {contact: -1, born: -1},
		"in touch":                 {contact: 59 * time.Minute, born: time.Hour},
		"out of touch":             {contact: 61 * time.Minute, born: time.Hour, off: true, why: "in touch"},
		"hours used up":            {contact: time.Minute, born: 7 * time.Hour, off: true, why: "old"},
		"a disk of before":         {contact: time.Minute, born: -1},
		"logged in as root":        {contact: 2 * time.Hour, born: time.Hour, procs: map[string][4]string{"7": {"sshd: root@notty", "sshd", root, "5"}}},
		"logged in as errand":      {contact: 2 * time.Hour, born: time.Hour, procs: map[string][4]string{"6": {"sshd: errand [priv]", "sshd", root, master}, "7": {"sshd: errand@notty", "sshd", me, "6"}}},
		"logged in as the runner":  {contact: 2 * time.Hour, born: time.Hour, procs: map[string][4]string{"6": {"sshd: errand-runner [priv]", "sshd", root, master}, "7": {"sshd: errand-runner@notty", "sshd", me, "6"}}},
		"logged in to a newer one": {contact: 2 * time.Hour, born: time.Hour, procs: map[string][4]string{"6": {"sshd-session: errand [priv]", "sshd-session", root, master}, "7": {"sshd-session: errand@pts/0", "sshd-session", me, "6"}}},
		"not through yet":          {contact: 2 * time.Hour, born: time.Hour, procs: map[string][4]string{"6": {"sshd: root [priv]", "sshd", root, master}, "7": {"sshd: errand [net]", "sshd", "109", "6"}}, off: true},
		"an agent as the runner":   {contact: 2 * time.Hour, born: time.Hour, procs: map[string][4]string{"6": {"sshd: errand [priv]", "sshd", root, master}, "7": {"sshd: errand-runner@notty", "sshd", "4711", "6"}}, off: true},
		"an agent that pretends":   {contact: 2 * time.Hour, born: time.Hour, procs: map[string][4]string{"6": {"sh", "sh", me, master}, "7": {"sshd: errand@notty", "sshd", me, "6"}, "8": {"sshd: root@notty", "sshd", me, "6"}}, off: true},
		"logged in for too long":   {contact: time.Minute, born: 7 * time.Hour, procs: map[string][4]string{"7": {"sshd: root@notty", "sshd", root, "5"}}, off: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(p.etc+"/deadman.conf", "contact_within=3600\nhard_after=21600\n")
			p.write(p.bin+"/id", "#!/bin/sh\necho "+me+"\n") // there is no errand here
			now := time.Now()
			if test.contact >= 0 {
				p.write(p.run+"/contact", "")
				at := now.Add(-test.contact)
				if err := os.Chtimes(p.run+"/contact", at, at); err != nil {
					t.Fatal(err)
				}
			}
			p.write(p.state+"/born", "")
			if test.born >= 0 {
				p.write(p.state+"/born", fmt.Sprintln(now.Add(-test.born).Unix()))
			}
			for pid, proc := range test.procs {
				uid, parent := proc[2], proc[3]
				if me == root && uid == me && strings.Contains(name, "pretends") {
					uid = "1000" // as root, another user has to pretend
				}
				p.write(filepath.Join(p.proc, pid, "cmdline"), proc[0]+"\x00")
				p.write(filepath.Join(p.proc, pid, "comm"), proc[1]+"\n")
				p.write(filepath.Join(p.proc, pid, "status"), fmt.Sprintf("Name:\t%s\nPPid:\t%s\nUid:\t%s\t%s\t%s\t%s\n", proc[1], parent, uid, uid, uid, uid))
			}
			_, why, code := p.sh("errand-deadman")
			if code != 0 {
				t.Fatalf("exit %d: %s", code, why)
			}
			if off := lines(t, p.offs) == 1; off != test.off || !strings.Contains(why, test.why) {
				t.Errorf("powered off: %v, want %v (%s)", off, test.off, why)
			}
		})
	}
}

func TestFirstBoot(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		baked, done bool
		setup, deny string
		want        string
		ran         bool
	}{
		"stock":                 {setup: "echo out; echo ran >>$ERRAND_RUN/ran", want: "done", ran: true},
		"baked":                 {baked: true, setup: "echo ran >>$ERRAND_RUN/ran", want: "done"},
		"woken from sleep":      {done: true, setup: "echo ran >>$ERRAND_RUN/ran", want: "done"},
		"setup goes wrong":      {setup: "echo no such package >&2; exit 4", want: "failed to run setup (exit 4): no such package"},
		"setup is strict":       {setup: "false\necho ran >>$ERRAND_RUN/ran", want: "failed to run setup (exit 1): "},
		"a rule on 3rd attempt": {deny: "echo tried >>$ERRAND_RUN/tried; [ $(wc -l <$ERRAND_RUN/tried) -ge 3 ]", setup: "true", want: "done"},
		"no rule for metadata":  {deny: "exit 3", want: "failed to close the metadata service (exit 3): "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/run/systemd/system"); err == nil && os.Getuid() == 0 {
				t.Skip("SKIP: as root on a host with systemd this would change the host")
			}
			p := newPlace(t)
			for _, name := range []string{"apt-get", "systemctl", "sudo"} {
				p.write(p.bin+"/"+name, "#!/bin/sh\nexit 0\n")
			}
			p.write(p.bin+"/mkdir", "#!/bin/sh\ncase \"$*\" in *linger*) exit 1 ;; esac\nexec /bin/mkdir \"$@\"\n")
			p.write(p.bin+"/errand-metadata", "#!/bin/sh\n"+test.deny+"\n")
			p.write(p.state+"/firstboot", "waits for cloud-init\n")
			for _, home := range []string{p.home, p.records} {
				if err := os.Chmod(home, 0o755); err != nil { //nolint:gosec // as useradd leaves it
					t.Fatal(err)
				}
			}
			if test.baked {
				p.write(p.etc+"/baked", "")
			}
			if test.done {
				p.write(p.state+"/setup-done", "")
			}
			p.write(p.etc+"/setup", test.setup+"\n")
			_, why, _ := p.sh("errand-firstboot")
			got, err := os.ReadFile(p.state + "/firstboot")
			if err != nil || strings.TrimSuffix(string(got), "\n") != test.want {
				t.Errorf("it says %q, want %q (%v %s)", got, test.want, err, why)
			}
			if ran := lines(t, p.run+"/ran") == 1; ran != test.ran {
				t.Errorf("setup: got error %v", ran)
			}
			for at, mode := range map[string]os.FileMode{p.home: 0o700, p.records: 0o700, p.lib(): 0o755} {
				if info, err := os.Stat(at); err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s: got mode %v, error %v", at, info, err)
				}
			}
			born, err := os.ReadFile(p.state + "/born")
			if err != nil || len(born) < 10 {
				t.Errorf("got time of birth %q, error %v", born, err)
			}
		})
	}
}

func TestCleanUp(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	root := t.TempDir()
	gone := []string{
		"etc/ssh/ssh_host_ed25519_key", "etc/ssh/errand_next_ed25519_key", "root/.ssh/authorized_keys", "home/errand/.ssh/authorized_keys",
		"home/errand/.bash_history", "var/lib/errand/firstboot", "var/lib/cloud/instance/user-data.txt", "tmp/x", "etc/errand/setup", "home/errand/.netrc",
		"etc/ssh/errand_keys", "home/errand-runner/.ssh/authorized_keys",
	}
	kept := []string{"etc/ssh/sshd_config", "home/errand/repo/.git/config", "home/errand/.cache/go/x", "usr/bin/java"}
	for _, name := range append(gone, kept...) {
		p.write(filepath.Join(root, name), "x")
	}
	p.write(filepath.Join(root, "var/log/auth.log"), "secret")
	p.write(filepath.Join(root, "etc/machine-id"), "abc")
	script, err := os.ReadFile("files/errand-clean")
	if err != nil {
		t.Fatal(err)
	}
	clean := func(root string) {
		t.Helper()
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", string(script)) // as bake does
		cmd.Env = append(os.Environ(), "ERRAND_ROOT="+root, "ERRAND_ETC=/etc/errand")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	host := t.TempDir() // is none that errand has set up
	p.write(filepath.Join(host, gone[0]), "x")
	clean(host)
	if _, err := os.Lstat(filepath.Join(host, gone[0])); err != nil {
		t.Errorf("the host's key was deleted: %v", err)
	}
	clean(root)
	for _, name := range gone {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s still exists", name)
		}
	}
	for _, name := range append(kept, "etc/errand/baked") {
		if _, err := os.Lstat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"var/log/auth.log", "etc/machine-id"} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Size() != 0 {
			t.Errorf("%s is not empty: %v", name, err)
		}
	}
}
