package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// insideID is the user and group ID that every process in an isolated sandbox sees as its own.
const insideID = 1000

// agentID is that user and group on the host if errand runs as root: an ID from a range that systemd assigns to no user
// and that containers usually map.
const agentID = 60941

// runsAsRoot reports whether root creates the sandboxes. To the host their processes would then also be root, whatever
// ID they see: the kernel lets root write to /proc/sys without any capability.
func runsAsRoot() bool { return os.Geteuid() == 0 }

// Subdirectories of a sandbox's directory that its processes may write to, besides the home and the one for temporary
// files. They are on disk, because files in a tmpfs would use memory that cannot be reclaimed from processes.
const (
	runDir = "run"
	varDir = "var"
	shmDir = "shm"
)

func ownDirs() []string { return []string{tmpDir, runDir, varDir, shmDir} }

// chownForAgent makes the sandbox's processes the owners of the files they may write to. It only acts if run as root,
// must be called before the sandbox starts, and does not follow links.
func chownForAgent(rec Record, dir string) error {
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
		if err := ChownForSandboxes(root); err != nil {
			return err
		}
	}
	return nil
}

// ChownForSandboxes changes the owner of a host directory and its content to the user of the sandboxes, if that differs
// from errand's: sandboxes can then use it as a writable bind. It follows no links inside, even if a sandbox creates
// one meanwhile, and skips files that have disappeared.
func ChownForSandboxes(dir string) error {
	if !runsAsRoot() {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("change the owner to the user of sandboxes: %w", err)
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
		return fmt.Errorf("change the owner to the user of sandboxes: %w", err)
	}
	return nil
}

// RootNotes returns notes for an operator who runs errand as root on the consequences for a kind of sandbox, nil if
// another user runs it.
func RootNotes(kind string, binds []Bind) []string {
	if !runsAsRoot() {
		return nil
	}
	if !ownFiles(kind) {
		return []string{"errand runs as root, and so do all processes in its sandboxes: run it as a separate user"}
	}
	notes := []string{fmt.Sprintf("errand runs as root: on this host the processes in sandboxes are user and group %d instead, and /proc/sys is read-only; "+
		"a separate user for errand is better", agentID)}
	for _, b := range binds {
		if info, err := os.Stat(b.Path); err == nil && !isAccessibleToAgent(info, b.Writable) {
			notes = append(notes, fmt.Sprintf("%s of local.binds is not accessible to user %d, which sandboxes run as", b.Path, agentID))
		}
	}
	return notes
}

// isAccessibleToAgent reports whether a path's mode lets agentID read it, write to it if required, and search it if it
// is a directory. It ignores access control lists.
func isAccessibleToAgent(info fs.FileInfo, write bool) bool {
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

// guardProc makes files in /proc that are dangerous for root read-only or unreadable, if root creates the sandboxes. No
// process of a sandbox is root to the host; this is a second line of defense. For ordinary users the kernel's
// permissions are sufficient, and nothing may cover /proc, because programs in the sandbox could then not create PID
// namespaces with their own /proc.
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

// writeForBox writes a file that the sandbox's processes can read, whatever errand's umask.
func writeForBox(path, text string, mode fs.FileMode) error {
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
