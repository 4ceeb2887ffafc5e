package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// RunAlone runs a short command as cmd.Run does, and ends all its descendants with it: the command is the first process
// of a PID namespace, and at its end the kernel kills the others. It is for git, which starts any filter that the
// agent's configuration names.
//
// If the kernel refuses such a namespace, the command runs without one, and EndOrphans finds the remaining processes.
// Inside a command of another RunAlone, such as a filter that runs git, there is no second namespace; remaining
// processes end with the outer command. prepare is called once or twice, and must return a new, identical command each
// time.
func RunAlone(prepare func() *exec.Cmd) error {
	cmd := prepare()
	if !procIsOwn() {
		return cmd.Run()
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	attr := cmd.SysProcAttr
	attr.Cloneflags |= unix.CLONE_NEWPID
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	switch err := cmd.Start(); {
	case err == nil:
		return cmd.Wait()
	case isNamespaceError(err):
		return prepare().Run()
	default:
		return err
	}
}

// isNamespaceError reports whether an error may be about namespaces. If it has another cause, the second attempt fails,
// too.
func isNamespaceError(err error) bool {
	for _, kind := range []error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Adopt makes this program the parent of all orphaned descendants, for EndOrphans. It fails inside RunAlone, where
// EndOrphans could not find them.
func Adopt() error {
	if !procIsOwn() {
		return errors.New("adopt orphans: /proc shows another PID namespace")
	}
	return becomeSubreaper()
}

// EndOrphans ends every descendant of this program. It returns an error if some could not be ended.
func EndOrphans() error {
	if left := endDescendants(0, Subreaper); left > 0 {
		return fmt.Errorf("%d processes could not be ended", left)
	}
	return nil
}
