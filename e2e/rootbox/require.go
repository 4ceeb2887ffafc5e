//go:build linux

package rootbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/heavytest"
)

// Full is the variable that enables long tests.
const Full = heavytest.Var

// Wanted is the variable that makes missing requirements of boxes a failure.
const Wanted = "ERRAND_REQUIRE_ROOTBOX"

// Require skips the test, with the reason, where boxes are not possible, or fails it if the variable Wanted is set.
// Boxes are for full tests only.
func Require(t testing.TB) {
	t.Helper()
	if os.Getenv(Full) == "" {
		t.Skip("SKIP: root boxes need " + Full + "=1 and root")
	}
	reason := Missing()
	switch {
	case reason == "":
	case os.Getenv(Wanted) != "":
		t.Fatalf("root boxes are required, but %s", reason)
	default:
		t.Skipf("SKIP: no root boxes: %s", reason)
	}
}

// Missing returns the reason why this host cannot run boxes, or "".
func Missing() string {
	if os.Geteuid() != 0 {
		return "they need root"
	}
	var lacking []string
	for program, pkg := range map[string]string{
		"mmdebstrap": "mmdebstrap", "ip": "iproute2", "tc": "iproute2", "bridge": "iproute2", "mkfs.ext4": "e2fsprogs", "nsenter": "util-linux", "setpriv": "util-linux",
	} {
		if _, err := exec.LookPath(program); err != nil {
			lacking = append(lacking, program+" (package "+pkg+")")
		}
	}
	if len(lacking) > 0 {
		return "programs are missing: " + strings.Join(lacking, ", ")
	}
	for _, controller := range controllers() {
		if _, err := os.Stat(filepath.Join(cgroupRoot, controller, "tasks")); err != nil {
			return fmt.Sprintf("there is no cgroup v1 controller %s", controller)
		}
	}
	return refused()
}

// refused tries whether the kernel permits namespaces, mounts and loop devices.
func refused() string {
	cmd := exec.Command("sh", "-euc", "mount --make-rprivate /; mount -t tmpfs tmpfs /mnt; ip link add rootbox0 type veth peer name rootbox1; test -e /dev/loop-control")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("the kernel refuses namespaces, mounts or links: %v %s", err, tail(out, 200))
	}
	return ""
}

// CacheDir returns the directory of the rootfs: .cache/rootbox of the checkout in which the process runs.
func CacheDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", "rootbox"), nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("find the checkout: no go.mod above the working directory")
	}
}
