//go:build linux

package image

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type object = map[string]any

// runtimeSpec returns the configuration of a container for a runtime such as runc, with what the compose file and the image say. It uses this
// host's network, where the simulators are. volumes are folders of this host by their names in the compose file.
func runtimeSpec(s service, c imageConfig, root string, volumes map[string]string, args ...string) object {
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755", "size=64k"}},
		{"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": []string{"nosuid", "noexec", "nodev", "mode=1777", "size=64m"}},
	}
	for _, path := range s.Tmpfs {
		mounts = append(mounts, object{"destination": path, "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "nodev", "noexec", "mode=1777"}})
	}
	for _, v := range s.Volumes {
		part := strings.Split(v, ":")
		mounts = append(mounts, object{"destination": part[1], "type": "bind", "source": volumes[part[0]], "options": append([]string{"rbind"}, part[2:]...)})
	}
	var uid, gid int
	_, _ = fmt.Sscanf(c.Config.User, "%d:%d", &uid, &gid) // or root, which the test finds
	if len(args) == 0 {
		args = c.Config.Cmd
	}
	return object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": uid, "gid": gid}, "args": append(append([]string{}, c.Config.Entrypoint...), args...), "env": c.Config.Env, "cwd": c.Config.WorkingDir,
			"capabilities": object{}, "noNewPrivileges": true,
		},
		"root": object{"path": root, "readonly": s.ReadOnly}, "mounts": mounts,
		"linux": object{
			"namespaces":    []object{{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}},
			"maskedPaths":   []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi"},
			"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			"seccomp":       noUserNamespaces(),
		},
	}
}

// noUserNamespaces is the part of the usual seccomp profile that forbids sandboxes.
func noUserNamespaces() object {
	const newUser = 0x10000000 // CLONE_NEWUSER
	return object{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []object{
		{"names": []string{"unshare", "mount", "setns", "pivot_root"}, "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
		{"names": []string{"clone"}, "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": []object{{"index": 0, "value": newUser, "valueTwo": newUser, "op": "SCMP_CMP_MASKED_EQ"}}},
		{"names": []string{"clone3"}, "action": "SCMP_ACT_ERRNO", "errnoRet": 38}, // ENOSYS: the library then uses clone
	}}
}

// container is a container of runc.
type container struct {
	t     *testing.T
	state string
	id    string
	cmd   *exec.Cmd
	log   bytes.Buffer // to be read after the end
}

// runContainer starts a container, which ends at the latest with the test.
func runContainer(t *testing.T, id string, spec object) *container {
	t.Helper()
	c := &container{t: t, state: t.TempDir(), id: fmt.Sprintf("errand-test-%d-%s", os.Getpid(), id)}
	bundle := t.TempDir()
	data, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(bundle, "config.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.cmd = c.runc(context.WithoutCancel(t.Context()), "run", "--bundle", bundle, c.id)
	c.cmd.Stdout, c.cmd.Stderr = &c.log, &c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.runc(context.Background(), "delete", "--force", c.id).Run() }) // usually it is deleted
	t.Cleanup(func() { _ = c.wait(0) })
	return c
}

// wait waits for the container's end, and kills it after a time. It returns how its program ended.
func (c *container) wait(most time.Duration) error {
	if c.cmd.ProcessState != nil {
		return nil
	}
	kill := time.AfterFunc(most, func() {
		if c.runc(context.Background(), "kill", c.id, "KILL").Run() != nil {
			_ = c.cmd.Process.Kill() // the container does not exist yet, or has just ended
		}
	})
	defer kill.Stop()
	return c.cmd.Wait()
}

func (c *container) runc(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "runc", append([]string{"--root", c.state}, args...)...)
}

// exec runs a command in the container, and returns its output.
func (c *container) exec(args ...string) (string, error) {
	out, err := c.runc(c.t.Context(), append([]string{"exec", c.id}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
