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

// rootfsTimeout bounds the making of the rootfs, which takes about 40 s.
const rootfsTimeout = 8 * time.Minute

// suite is the Debian that boxes run, and where it comes from.
const (
	suite  = "bookworm"
	mirror = "http://deb.debian.org/debian"
)

// packages are what a box has besides the base system: what a cloud's stock image has of it.
func packages() []string {
	return []string{"systemd-sysv", "cloud-init", "openssh-server", "git", "ca-certificates", "iproute2", "procps", "nftables", "sudo", "zstd", "curl"}
}

// masked are the units that have nothing to do in a box, or would reach for the host's kernel.
func masked() []string {
	return []string{
		"apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "fstrim.timer", "e2scrub_all.timer", "e2scrub_reap.service",
		"getty@tty1.service", "getty-static.service", "console-getty.service", "systemd-logind.service", "systemd-udevd.service",
		"systemd-modules-load.service", "systemd-sysctl.service", "systemd-timesyncd.service", "systemd-networkd.service", "networking.service",
		"systemd-remount-fs.service", "systemd-random-seed.service", "systemd-journal-flush.service", "systemd-pstore.service",
		"sys-kernel-debug.mount", "sys-kernel-tracing.mount", "dev-hugepages.mount", "dev-mqueue.mount", "sys-fs-fuse-connections.mount",
	}
}

// cloudConfig is what the image's maker says to cloud-init: its data lies in a folder that each box gets
// of its own, and the network is there already.
const cloudConfig = `datasource_list: [NoCloud]
network: {config: disabled}
locale: false
`

// Rootfs returns the folder with the file system that all boxes begin with, making it under cache if it
// is not there yet; that takes about 40 s and needs a Debian mirror. It holds no host key, no machine id
// and no user. Boxes do not write to it. It may be called by several processes at once.
func Rootfs(ctx context.Context, cache string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, rootfsTimeout)
	defer cancel()
	recipe := strings.Join([]string{suite, strings.Join(packages(), " "), strings.Join(masked(), " "), cloudConfig, "2"}, "\n")
	sum := sha256.Sum256([]byte(recipe))
	dir := filepath.Join(cache, "rootfs-"+hex.EncodeToString(sum[:6]))
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache of the rootfs: %w", err)
	}
	lock := flock.New(filepath.Join(cache, "lock"))
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return "", fmt.Errorf("wait for another one who makes the rootfs: %w", err)
	}
	defer lock.Close()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	tmp := dir + ".new"
	if err := os.RemoveAll(tmp); err != nil {
		return "", fmt.Errorf("remove half a rootfs: %w", err)
	}
	if err := install(ctx, tmp); err != nil {
		return "", fmt.Errorf("make the rootfs of boxes: %w", err)
	}
	if err := furnish(tmp); err != nil {
		return "", fmt.Errorf("prepare the rootfs of boxes: %w", err)
	}
	return dir, os.Rename(tmp, dir)
}

// install has Debian's own tool unpack and configure the packages.
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

// furnish takes out what must be each box's own, and puts in what the image's maker says.
func furnish(dir string) error {
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

// tail is the end of what a program said.
func tail(out []byte, n int) string {
	if len(out) > n {
		out = out[len(out)-n:]
	}
	return strings.TrimSpace(string(out))
}
