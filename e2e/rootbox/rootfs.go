package rootbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// rootfsTimeout is the timeout for building the rootfs, which takes about 40 s.
const rootfsTimeout = 8 * time.Minute

// suite is the Debian release of boxes, and its mirror.
const (
	suite  = "bookworm"
	mirror = "http://deb.debian.org/debian"
)

// packages are installed in addition to the base system, as in a cloud's standard image.
func packages() []string {
	return []string{"systemd-sysv", "cloud-init", "openssh-server", "git", "ca-certificates", "iproute2", "procps", "nftables", "sudo", "zstd", "curl"}
}

// masked are units that are useless in a box, or would access the host's kernel.
func masked() []string {
	return []string{
		"apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer", "e2scrub_all.timer", "e2scrub_reap.service",
		"getty@tty1.service", "getty-static.service", "console-getty.service", "systemd-logind.service", "systemd-udevd.service",
		"systemd-modules-load.service", "systemd-sysctl.service", "systemd-timesyncd.service", "systemd-networkd.service", "networking.service",
		"systemd-remount-fs.service", "systemd-random-seed.service", "systemd-journal-flush.service", "systemd-pstore.service",
		"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "dev-hugepages.mount", "dev-mqueue.mount", "sys-fs-fuse-connections.mount",
	}
}

// cloudConfig is the image's configuration of cloud-init: the data is in a directory of each box, and the network is
// already configured.
const cloudConfig = `datasource_list: [NoCloud]
network: {config: disabled}
locale: false
`

// Rootfs returns the directory with the file system of all boxes, and builds it under cache if it is missing, which
// takes about 40 s and needs a Debian mirror. It contains no host key, machine ID or user. Boxes do not write to it.
// Several processes may call Rootfs concurrently.
func Rootfs(ctx context.Context, cache string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, rootfsTimeout)
	defer cancel()
	recipe := strings.Join([]string{suite, strings.Join(packages(), " "), strings.Join(masked(), " "), cloudConfig, "2"}, "\n")
	sum := sha256.Sum256([]byte(recipe))
	dir := filepath.Join(cache, "rootfs-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make cache directory of the rootfs: %w", err)
	}
	lock := flock.New(filepath.Join(cache, "lock"))
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return "", fmt.Errorf("wait for another process that builds the rootfs: %w", err)
	}
	defer lock.Close()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	tmp := dir + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return "", fmt.Errorf("remove partial rootfs: %w", err)
	}
	if err := install(ctx, tmp); err != nil {
		return "", fmt.Errorf("build the rootfs of boxes: %w", err)
	}
	if err := customize(tmp); err != nil {
		return "", fmt.Errorf("prepare the rootfs of boxes: %w", err)
	}
	return dir, os.Rename(tmp, dir)
}

// install unpacks and configures the packages with Debian's tool.
func install(ctx context.Context, dir string) error {
	args := []string{"--quiet", "--variant=apt", "--dpkgopt=force-unsafe-io", "--include=" + strings.Join(packages(), ",")}
	for _, path := range []string{"/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*"} {
		args = append(args, "--dpkgopt=path-exclude="+path)
	}
	cmd := exec.CommandContext(ctx, "mmdebstrap", append(args, suite, dir, mirror)...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("mmdebstrap: %w\n%s", err, tail(out, 2000))
	}
	return nil
}

// customize removes files that must be unique to each box, and adds the image's configuration.
func customize(dir string) error {
	keys, err := filepath.Glob(filepath.Join(dir, "etc/ssh/ssh_host_*"))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := os.Remove(key); err != nil {
			return err
		}
	}
	for _, unit := range masked() {
		at := filepath.Join(dir, "etc/systemd/system", unit)
		if err := errors.Join(os.RemoveAll(at), os.Symlink("/dev/null", at)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "var/lib/cloud/seed/nocloud"), 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "etc/machine-id"), nil, 0o444),
		os.WriteFile(filepath.Join(dir, "etc/cloud/cloud.cfg.d/99_rootbox.cfg"), []byte(cloudConfig), 0o644),
	)
}

// tail returns the end of a program's output.
func tail(out []byte, n int) string {
	if len(out) > n {
		out = out[len(out)-n:]
	}
	return strings.TrimSpace(string(out))
}
