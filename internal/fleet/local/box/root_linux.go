package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// rootDir is the subdirectory in which the view of a userns sandbox is mounted.
const rootDir = "root"

// devices are the device files of a userns sandbox. There is no terminal, because the sandbox's server offers none.
func devices() []string { return []string{"null", "zero", "full", "random", "urandom"} }

// enterView mounts the view in a new root and makes it the process's root; the host's files are then unreachable for
// this process and its descendants. It requires the capabilities of a separate user and mount namespace, an uncovered
// /proc, and Linux 5.12 for mount_setattr. The first process of the sandbox must call it once.
func enterView(dir string, view []mount) error {
	root := filepath.Join(dir, rootDir)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := mountTmpfs(root); err != nil {
		return err
	}
	for _, m := range view {
		if err := m.mountUnder(root); err != nil {
			return fmt.Errorf("mount %s: %w", m.To, err)
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	// PivotRoot stacks the old root on the new one, from where it is unmounted, so no directory for it is needed.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the host's root: %w", err)
	}
	if err := restrictMount("/", unix.MOUNT_ATTR_RDONLY, 0); err != nil {
		return err
	}
	return os.Chdir(InsideHome)
}

func (m mount) mountUnder(root string) error {
	target := filepath.Join(root, m.To)
	switch m.Do {
	case mountBind:
		return m.bind(target)
	case mountLink:
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.Symlink(m.From, target)
	case mountProc:
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		return unix.Mount("proc", target, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	case mountDev:
		return mountDevices(target)
	case mountSeal:
		return restrictMount(target, unix.MOUNT_ATTR_RDONLY, 0)
	}
	return fmt.Errorf("cannot mount a %q", m.Do)
}

// bind mounts a host path with all mounts below it.
func (m mount) bind(target string) error {
	info, err := os.Stat(m.From)
	if errors.Is(err, fs.ErrNotExist) && m.Optional {
		return nil
	}
	if err != nil {
		return err
	}
	if err := bindOnto(m.From, target, info.IsDir()); err != nil {
		return err
	}
	attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if !m.Writable {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	return restrictMount(target, attr, unix.AT_RECURSIVE)
}

func bindOnto(from, target string, isDir bool) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if isDir {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
	} else if f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644); err != nil {
		return err
	} else if err := f.Close(); err != nil {
		return err
	}
	return unix.Mount(from, target, "", unix.MS_BIND|unix.MS_REC, "")
}

func mountTmpfs(target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	return nil
}

// mountDevices mounts the host's harmless devices and a folder for shared memory.
func mountDevices(target string) error {
	if err := mountTmpfs(target); err != nil {
		return err
	}
	for _, name := range devices() {
		if err := bindOnto("/dev/"+name, filepath.Join(target, name), false); err != nil {
			return fmt.Errorf("device %s: %w", name, err)
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, filepath.Join(target, name)); err != nil {
			return err
		}
	}
	return os.Mkdir(filepath.Join(target, "shm"), 0o755)
}

// restrictMount adds attributes to a mount. Unlike a remount it keeps those that only the host may remove.
func restrictMount(path string, attr uint64, flags uint) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: attr}); err != nil {
		return fmt.Errorf("restrict %s: %w", path, err)
	}
	return nil
}

// decodeView parses the view that insideCommand passed to the first process.
func decodeView(text string) ([]mount, error) {
	var view []mount
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&view); err != nil {
		return nil, fmt.Errorf("read the box's view: %w", err)
	}
	return view, nil
}
