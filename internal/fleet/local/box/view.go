package box

import (
	"fmt"
	"os"
	"path/filepath"
)

// Kinds of mounts in a view.
const (
	mountBind = "bind" // a path of the host
	mountLink = "link" // a symbolic link
	mountProc = "proc" // the sandbox's own processes
	mountDev  = "dev"  // the few devices that every tool needs, and an empty shm
	mountSeal = "seal" // makes the mount at the target read-only, except for mounts below it
)

// mount is one entry of a sandbox's view.
type mount struct {
	Do   string `json:"do"`
	From string `json:"from,omitempty"` // a bind's path on the host, or a link's target
	To   string `json:"to"`
	// Writable applies to binds.
	Writable bool `json:"writable,omitempty"`
	// Optional binds are omitted if the host has no such path.
	Optional bool `json:"optional,omitempty"`
}

// ownFiles reports whether sandboxes of this kind have a separate view instead of the host's files.
func ownFiles(kind string) bool { return kind == KindBwrap || kind == KindUserns }

// viewOf returns the full view of an isolated sandbox in mount order: the host's system read-only, a separate home and
// /tmp, a few generated files in /etc, and the configured binds. Nothing else of the host is visible: no other home, no
// /run, no /var.
func viewOf(rec Record, dir string) ([]mount, error) {
	etc, err := writeEtc(dir)
	if err != nil {
		return nil, err
	}
	view := []mount{{Do: mountBind, From: "/usr", To: "/usr"}}
	for _, path := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64"} {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return nil, err
			}
			view = append(view, mount{Do: mountLink, From: target, To: path})
		default:
			view = append(view, mount{Do: mountBind, From: path, To: path})
		}
	}
	for _, path := range append(hostFiles(), javaFiles("/etc")...) {
		view = append(view, mount{Do: mountBind, From: path, To: path, Optional: true})
	}
	for _, name := range etc {
		view = append(view, mount{Do: mountBind, From: filepath.Join(dir, "etc", name), To: "/etc/" + name})
	}
	view = append(view, mount{Do: mountProc, To: "/proc"}, mount{Do: mountDev, To: "/dev"})
	view = append(view, guardProc()...)
	for _, name := range ownDirs() {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	view = append(view,
		mount{Do: mountBind, From: filepath.Join(dir, runDir), To: "/run", Writable: true},
		mount{Do: mountBind, From: filepath.Join(dir, varDir), To: "/var", Writable: true},
		mount{Do: mountBind, From: filepath.Join(dir, shmDir), To: "/dev/shm", Writable: true},
		mount{Do: mountBind, From: TmpPath(dir), To: "/tmp", Writable: true}, mount{Do: mountLink, From: "../tmp", To: "/var/tmp"},
		mount{Do: mountBind, From: rec.homeOnHost(dir), To: InsideHome, Writable: true},
		mount{Do: mountSeal, To: "/dev"})
	disk, err := diskView(rec, dir)
	if err != nil {
		return nil, err
	}
	view = append(view, disk...)
	for _, bind := range rec.Binds {
		view = append(view, mount{Do: mountBind, From: bind.Path, To: bind.Path, Writable: bind.Writable})
	}
	return append(view, mount{Do: mountBind, From: rec.Runner, To: insideRunner}), nil
}

// bwrapArgs makes bubblewrap mount the view, with new namespaces and a loopback as the only network.
func bwrapArgs(view []mount) []string {
	args := []string{"--unshare-all", "--uid", "1000", "--gid", "1000"}
	if runsAsRoot() {
		// A user namespace created by root would map its user to root. The sandbox's first program creates one that
		// does not.
		args = []string{"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
			"--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"}
	}
	args = append(args, "--hostname", "box", "--die-with-parent", "--new-session", "--clearenv")
	made := map[string]bool{"/": true}
	for _, m := range view {
		args = append(args, bwrapParents(m.To, made)...)
		switch m.Do {
		case mountBind:
			how := "--ro-bind"
			if m.Writable {
				how = "--bind"
			}
			if m.Optional {
				how += "-try"
			}
			args = append(args, how, m.From, m.To)
		case mountLink:
			args = append(args, "--symlink", m.From, m.To)
		case mountProc, mountDev:
			args = append(args, "--"+m.Do, m.To)
		case mountSeal:
			args = append(args, "--remount-ro", m.To)
		}
	}
	return append(args, "--remount-ro", "/", "--chdir", "/")
}

// bwrapParents creates the parent folders of a mount's target unless they were created before. Folders that bubblewrap
// creates implicitly are private to its caller.
func bwrapParents(target string, made map[string]bool) []string {
	dir := filepath.Dir(target)
	if made[dir] {
		return nil
	}
	made[dir] = true
	return append(bwrapParents(dir, made), "--dir", dir)
}

// hostFiles are files outside /usr that tools need. Private keys next to the certificates are not among them.
func hostFiles() []string {
	return []string{
		"/nix/store", "/etc/alternatives", "/etc/localtime", "/etc/mime.types",
		"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates",
		"/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	}
}

// javaFiles are the settings below /etc without which Java and Maven do not start where Debian's packages install them. Settings that may
// have passwords are not among them: settings.xml, and those of the management of Java.
func javaFiles(etc string) (list []string) {
	for _, pattern := range []string{"java-*-openjdk/jvm-*.cfg", "java-*-openjdk/*.properties", "java-*-openjdk/security", "maven/m2.conf", "maven/logging"} {
		found, _ := filepath.Glob(filepath.Join(etc, pattern)) // it fails only for a bad pattern
		list = append(list, found...)
	}
	return list
}

// writeEtc writes the few files without which common tools fail.
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
		if err := writeForBox(filepath.Join(etc, f.name), f.text, 0o644); err != nil {
			return nil, fmt.Errorf("write /etc for the box: %w", err)
		}
		names = append(names, f.name)
	}
	return names, nil
}
