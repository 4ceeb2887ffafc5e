//go:build linux && (amd64 || arm64)

package disktest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Small plays a scenario in a separate process and namespaces, with a directory on a file system of the given size in
// bytes.
func Small(t *testing.T, room int, play func(t *testing.T, dir string)) {
	t.Helper()
	if os.Getenv(testEnv) == t.Name() && os.Getenv(roomEnv) != "" {
		dir := os.Getenv(dirEnv)
		if err := unix.Mount("none", dir, "tmpfs", 0, "size="+os.Getenv(roomEnv)); err != nil {
			fmt.Println(denied, err)
			os.Exit(1)
		}
		play(t, dir)
		if !t.Failed() {
			fmt.Println(ended)
		}
		t.SkipNow()
	}
	cmd := again(t, t.TempDir())
	cmd.Env = append(cmd.Env, roomEnv+"="+strconv.Itoa(room))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || strings.Contains(string(out), denied) {
		t.Skipf("SKIP: small file systems need user namespaces or root: %v %s", err, out)
	}
	if err != nil || !strings.Contains(string(out), ended) {
		t.Fatalf("%v\n%s", err, out)
	}
}
