package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// RunAlone runs a short command like cmd.Run does, and leaves nothing of what it started behind: the
// command is the first process of a PID namespace, with whose end the kernel ends all others. It is
// for git, which starts whatever the agent's configuration names as a filter.
//
// Where the kernel refuses such a namespace the command runs without one, and EndOrphans finds what
// is left. Within a command of another RunAlone, as in a filter that runs git, there is no second
// namespace: what is left ends with the outer command. Prepare is called once or twice, and returns
// the same command anew each time.
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
	case refused(err):
		return prepare().Run()
	default:
		return err
	}
}

// refused tells whether an error may be about namespaces. If it was not, the second try says so.
func refused(err error) bool {
	for _, kind := range []error{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EUSERS, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// Adopt makes this program the parent of whatever its descendants leave behind, for EndOrphans. It
// refuses within RunAlone, where EndOrphans could not find them.
func Adopt() error {
	if !procIsOwn() {
		return errors.New("adopt orphans: /proc shows another PID namespace")
	}
	return becomeSubreaper()
}

// EndOrphans ends every descendant of this program. It is an error if some could not be ended.
func EndOrphans() error {
	if left := endDescendants(0, Subreaper); left > 0 {
		return fmt.Errorf("%d processes could not be ended", left)
	}
	return nil
}
