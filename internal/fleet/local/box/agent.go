package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// insideID is the user and the group that every process in a box with its own files sees itself as.
const insideID = 1000

// agentID is that user and group on the host where errand runs as root: a number from a range that systemd
// assigns to nobody and that containers usually map.
const agentID = 60941

// runsAsRoot reports whether boxes are made by root. To the host their processes would be root as well, whatever
// they see themselves as: the kernel lets root write to /proc/sys without any capability.
func runsAsRoot() bool { return os.Geteuid() == 0 }

// Directories of a box's directory that its processes may write to, besides the home and the one for temporary
// files. They lie on disk: a tmpfs would be memory that no process can be made to give back.
const (
	runDir = "run"
	varDir = "var"
	shmDir = "shm"
)

func ownDirs() []string { return []string{tmpDir, runDir, varDir, shmDir} }

// giveToAgent makes the box's processes the owners of what they may write to. Only root has to. It must be called
// before the box starts, and does not follow links.
func giveToAgent(rec Record, dir string) error {
	if !runsAsRoot() {
		return nil
	}
	roots := []string{rec.homeOnHost(dir)}
	for _, name := range ownDirs() {
		roots = append(roots, filepath.Join(dir, name))
	}
	if rec.Disk != "" {
		roots = append(roots, filepath.Join(rec.Disk, diskSSH))
	}
	for _, root := range roots {
		if err := GiveToBoxes(root); err != nil {
			return err
		}
	}
	return nil
}

// GiveToBoxes makes the user that boxes run as the owner of a directory of the host and of all that is in it, where that
// user differs from errand's: boxes can then use it as a writable bind. It follows no links within, even if a box puts one
// there meanwhile, and skips what is gone before its turn.
func GiveToBoxes(dir string) error {
	if !runsAsRoot() {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("give files to the user of boxes: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = root.Lchown(path, agentID, agentID)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("give files to the user of boxes: %w", err)
	}
	return nil
}

// RootNotes tells an operator who runs errand as root what follows for boxes of a kind, nil if somebody else does.
func RootNotes(kind string, binds []Bind) []string {
	if !runsAsRoot() {
		return nil
	}
	if !ownFiles(kind) {
		return []string{"errand runs as root, and so does everything in its boxes: run it as a user of its own"}
	}
	notes := []string{fmt.Sprintf("errand runs as root: to this host the processes in boxes are user and group %d instead, and /proc/sys is read-only; "+
		"a user of its own for errand is better", agentID)}
	for _, b := range binds {
		if info, err := os.Stat(b.Path); err == nil && !openToAgent(info, b.Writable) {
			notes = append(notes, fmt.Sprintf("%s of local.binds is not open to user %d, whom boxes run as", b.Path, agentID))
		}
	}
	return notes
}

// openToAgent reports whether a path's mode lets agentID read it, write to it if it shall, and look into it if it is a
// directory. Access lists are not considered.
func openToAgent(info fs.FileInfo, write bool) bool {
	want := fs.FileMode(0o4)
	if write {
		want |= 0o2
	}
	if info.IsDir() {
		want |= 0o1
	}
	have := info.Mode().Perm()
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid == agentID {
		have >>= 6
	} else if ok && owner.Gid == agentID {
		have >>= 3
	}
	return have&want == want
}

// guardProc makes what is dangerous in the hands of root read-only or unreadable in /proc, where boxes are made by
// root. No process of a box is root to the host; this holds even so. For ordinary users the kernel's own permissions
// do, and nothing may cover /proc: programs in the box could no longer make PID namespaces with a /proc of their own.
func guardProc() []mount {
	if !runsAsRoot() {
		return nil
	}
	var view []mount
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "asound", "driver", "mtrr"} {
		if path := "/proc/" + name; exists(path) {
			view = append(view, mount{Do: mountBind, From: path, To: path})
		}
	}
	for _, name := range []string{"kcore", "kmsg", "keys", "key-users", "timer_list", "sched_debug", "latency_stats"} {
		if path := "/proc/" + name; exists(path) {
			view = append(view, mount{Do: mountBind, From: os.DevNull, To: path})
		}
	}
	return view
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// writeForBox writes a file that the box's processes may read, whatever errand's umask is.
func writeForBox(path, text string, mode fs.FileMode) error {
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
