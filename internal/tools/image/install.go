package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// installTimeout is the timeout of mmdebstrap, which takes about a minute.
	installTimeout = 10 * time.Minute
	suite          = "trixie"
	mirror         = "http://deb.debian.org/debian"
	// packages are what errand needs besides Debian's essential packages: it runs git, and calls APIs by HTTPS.
	packages = "git,ca-certificates"
	// id is the number of errand's user and group, which owns the files of the volumes.
	id = 10001
	// Folders of the image.
	binFolder, configFolder, dataFolder = "/opt/errand/bin", "/etc/errand", "/var/lib/errand"
)

// install writes the image's file system as a tar file.
func install(ctx context.Context, o options, layer string) error {
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		return errors.New("mmdebstrap is not installed, which makes its file system from Debian's packages (`apt-get install mmdebstrap`)")
	}
	var files []string
	for _, name := range []string{"errand", "errand-runner-linux-amd64", "errand-runner-linux-arm64"} {
		path, err := filepath.Abs(filepath.Join(o.programs, name))
		if err != nil {
			return fmt.Errorf("find %s: %w", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("find errand's programs: %w", err)
		}
		if strings.ContainsAny(path, " \t\n'\"$\\") {
			return fmt.Errorf("the path %q has characters that mmdebstrap cannot copy from: build in another folder", path)
		}
		files = append(files, path)
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	epoch := strconv.FormatInt(o.created.Unix(), 10)
	args := []string{
		"--quiet", "--variant=essential", "--architectures=" + o.arch, "--include=" + packages, "--dpkgopt=force-unsafe-io",
		"--format=tar", "--skip=output/dev", // a runtime makes the devices
	}
	for _, path := range []string{"/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*"} {
		args = append(args, "--dpkgopt=path-exclude="+path)
	}
	args = append(args, "--dpkgopt=path-include=/usr/share/doc/*/copyright", "--customize-hook="+folders(), "--customize-hook=copy-in "+strings.Join(files, " ")+" "+binFolder, "--customize-hook="+finish(o.arch, epoch))
	cmd := exec.CommandContext(ctx, "mmdebstrap", append(args, suite, layer, mirror)...)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+epoch, "LC_ALL=C.UTF-8")
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mmdebstrap failed; it needs root, or user namespaces and an entry of your user in /etc/subuid and /etc/subgid, and reaches %s: %w\n%s", mirror, err, tail(out, 2000))
	}
	return nil
}

// folders is a shell script that creates the user and its folders. $1 is the root of the file system.
func folders() string {
	return fmt.Sprintf(`set -eu
echo 'errand:x:%[1]d:%[1]d:errand:%[2]s:/usr/sbin/nologin' >>"$1/etc/passwd"
echo 'errand:x:%[1]d:' >>"$1/etc/group"
install -d -m 755 "$1%[3]s" "$1%[4]s"
install -d -m 700 -o %[1]d -g %[1]d "$1%[2]s"`, id, dataFolder, binFolder, configFolder)
}

// finish is a shell script that gives the programs to root, removes what the host or the installation left, and lets no program change its
// user. The runner of the image's own architecture is the one for sandboxes.
func finish(arch, epoch string) string {
	return fmt.Sprintf(`set -eu
cd "$1%[1]s"
chown 0:0 ./*
chmod 755 ./*
ln -s errand-runner-linux-%[2]s errand-runner
touch -h -d @%[3]s ./*
cd "$1"
rm -f etc/resolv.conf etc/hostname etc/machine-id
rm -rf var/log/* var/cache/ldconfig/aux-cache
find . -xdev -type f -perm /6000 -exec chmod a-s {} +`, binFolder, arch, epoch)
}

// tail returns the end of a program's output.
func tail(out []byte, n int) string {
	if len(out) > n {
		out = out[len(out)-n:]
	}
	return strings.TrimSpace(string(out))
}
