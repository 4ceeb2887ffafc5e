package box

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// home is the box's home as the box sees it.
func (r Record) home(dir string) string {
	if r.Kind == KindBwrap {
		return InsideHome
	}
	return HomePath(dir)
}

// environ is the whole environment of a command in the box. Nothing of the
// orchestrator's own goes into it.
func (r Record) environ(dir string) []string {
	tmp := TmpPath(dir)
	if r.Kind == KindBwrap {
		tmp = "/tmp"
	}
	path := append(append([]string(nil), r.Path...), systemPath)
	if r.Kind == KindBwrap {
		path = append(path, filepath.Dir(insideRunner))
	}
	return []string{
		"HOME=" + r.home(dir), "USER=" + User, "LOGNAME=" + User, "SHELL=/bin/sh", "LANG=C.UTF-8",
		"PATH=" + strings.Join(path, ":"), "TMPDIR=" + tmp,
		"ERRAND_BOX=" + r.Name, "ERRAND_TETHER_PORT=" + strconv.Itoa(r.TetherPort),
	}
}

// insideCommand is the process that the supervisor starts, with the box around it.
// Its environment is minimal; extra follows the subcommand box-ssh.
func insideCommand(rec Record, dir string, extra ...string) (*exec.Cmd, error) {
	var cmd *exec.Cmd
	switch rec.Kind {
	case KindBwrap:
		args, err := bwrapArgs(rec, dir)
		if err != nil {
			return nil, err
		}
		args = append(args, insideRunner, "box-ssh")
		cmd = exec.Command("bwrap", append(args, extra...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	case KindUserns, KindPlain:
		cmd = exec.Command(rec.Runner, append([]string{"box-ssh", "-init", rec.Kind}, extra...)...)
		cmd.Dir = rec.home(dir)
		attr, err := initAttr(rec.Kind)
		if err != nil {
			return nil, err
		}
		cmd.SysProcAttr = attr
	default:
		return nil, fmt.Errorf("box kind %q: unknown", rec.Kind)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + rec.home(dir), "LANG=C.UTF-8"}
	return cmd, nil
}

// bwrapArgs shows the box the host's system read-only, a home and a /tmp of its
// own, a few generated files in /etc, and no network but a loopback of its own.
func bwrapArgs(rec Record, dir string) ([]string, error) {
	etc, err := writeEtc(dir)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--unshare-all", "--uid", "1000", "--gid", "1000", "--hostname", "box",
		"--die-with-parent", "--new-session", "--clearenv",
		"--ro-bind", "/usr", "/usr",
	}
	for _, path := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64"} {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return nil, err
			}
			args = append(args, "--symlink", target, path)
		default:
			args = append(args, "--ro-bind", path, path)
		}
	}
	for _, path := range hostFiles() {
		args = append(args, "--ro-bind-try", path, path)
	}
	for _, name := range etc {
		args = append(args, "--ro-bind", filepath.Join(dir, "etc", name), "/etc/"+name)
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/var",
		"--bind", TmpPath(dir), "/tmp", "--symlink", "../tmp", "/var/tmp",
		"--bind", HomePath(dir), InsideHome)
	for _, bind := range rec.Binds {
		how := "--ro-bind"
		if bind.Writable {
			how = "--bind"
		}
		args = append(args, how, bind.Path, bind.Path)
	}
	return append(args, "--ro-bind", rec.Runner, insideRunner, "--chdir", InsideHome), nil
}

// hostFiles are what tools need from outside /usr. Private keys that lie beside the
// certificates are not among them.
func hostFiles() []string {
	return []string{
		"/nix/store", "/etc/alternatives", "/etc/localtime", "/etc/mime.types",
		"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates",
		"/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	}
}

// writeEtc makes the few files without which ordinary tools complain.
func writeEtc(dir string) ([]string, error) {
	files := []struct{ name, text string }{
		{"passwd", "root:x:0:0:root:/root:/bin/sh\n" + User + ":x:1000:1000:" + User + ":" + InsideHome + ":/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"},
		{"group", "root:x:0:\n" + User + ":x:1000:\nnogroup:x:65534:\n"},
		{"hosts", "127.0.0.1 localhost box\n::1 localhost\n"},
		{"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
	}
	etc := filepath.Join(dir, "etc")
	if err := os.MkdirAll(etc, 0o755); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(etc, f.name), []byte(f.text), 0o644); err != nil {
			return nil, fmt.Errorf("write /etc for the box: %w", err)
		}
		names = append(names, f.name)
	}
	return names, nil
}
