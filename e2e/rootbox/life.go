//go:build linux

package rootbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed boot.sh
var bootScript string

// namespaces are the namespaces that a box's first process gets.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// powerSignal tells systemd to power off, like a power button: SIGRTMIN+4.
const powerSignal = syscall.Signal(34 + 4)

// life is the time of a box between power on and power off.
type life struct {
	pid     int
	console *os.File
	done    chan struct{}
	status  syscall.WaitStatus // set before done is closed
}

// running reports whether the life has not ended; l may be nil.
func (l *life) running() bool {
	if l == nil {
		return false
	}
	select {
	case <-l.done:
		return false
	default:
		return true
	}
}

// wantsReboot reports whether it ended with a reboot, which the kernel indicates by the signal.
func (l *life) wantsReboot() bool { return l.status.Signaled() && l.status.Signal() == syscall.SIGHUP }

// note writes a line to the console, best effort.
func (l *life) note(line string) { _, _ = fmt.Fprintln(l.console, line) }

func (l *life) powerButton() error { return syscall.Kill(l.pid, powerSignal) }

// kill kills its first process, and so all others, and waits for their end.
func (l *life) kill(ctx context.Context) error {
	if err := syscall.Kill(l.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for end: %w", context.Cause(ctx))
	}
}

// begin creates the first process with its cgroups and its network interface, and starts it.
func (b *Box) begin(ctx context.Context) (_ *life, err error) {
	l := &life{done: make(chan struct{})}
	l.console, err = os.OpenFile(filepath.Join(b.dir, "console"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	host := b.host
	b.mu.Unlock()
	args := []string{"-c", bootScript, "boot", b.dir, b.lab.rootfs, host, b.Addr.String() + "/24", b.lab.Gateway().String()}
	cmd := exec.Command("sh", append(args, b.binds...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdout, cmd.Stderr = l.console, l.console
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL, Setsid: true}
	start, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, l.console.Close())
	}
	started := make(chan error)
	go l.live(cmd, started)
	if err := <-started; err != nil {
		return nil, errors.Join(err, l.console.Close())
	}
	err = b.connect(ctx, l.pid)
	if err == nil {
		_, err = io.WriteString(start, "go\n")
	}
	if err = errors.Join(err, start.Close()); err != nil {
		return nil, errors.Join(err, l.kill(ctx))
	}
	return l, nil
}

// live runs the first process to its end. It locks the thread that started the process, because the kernel kills the
// box when that thread ends.
func (l *life) live(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err == nil {
		l.pid = cmd.Process.Pid
	}
	started <- err
	if err != nil {
		return
	}
	_ = cmd.Wait() // the status has the result
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		l.status = status
	}
	close(l.done)
}

// connect adds the first process to its cgroups and gives it a network interface on the lab's bridge, with access to
// this host but not to other boxes.
func (b *Box) connect(ctx context.Context, pid int) error {
	if err := join(b.lab.slot, b.id, pid); err != nil {
		return err
	}
	b.mu.Lock()
	memory := b.memoryMB
	b.mu.Unlock()
	err := errors.Join(
		limit("memory", b.lab.slot, b.id, "memory.limit_in_bytes", strconv.Itoa(memory<<20)),
		limit("pids", b.lab.slot, b.id, "pids.max", "2048"))
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"ip", "link", "add", b.link(), "type", "veth", "peer", "name", "eth0", "address", b.mac(), "netns", strconv.Itoa(pid)},
		{"ip", "link", "set", b.link(), "master", bridgeName(b.lab.slot), "up"},
		{"bridge", "link", "set", "dev", b.link(), "isolated", "on"},
	} {
		if _, err := run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// mac returns a MAC address derived from the box's address, so that ARP caches stay valid.
func (b *Box) mac() string {
	at := b.Addr.As4()
	return fmt.Sprintf("02:4d:%02x:%02x:%02x:%02x", at[0], at[1], at[2], at[3])
}

// AwaitSSH waits until an SSH server answers at the box's address.
func (b *Box) AwaitSSH(ctx context.Context) error {
	return b.await(ctx, "SSH answers", func(ctx context.Context) error { return banner(ctx, b.Addr) })
}

// AwaitBooted waits until cloud-init has finished, and fails if any step failed. Then it waits for the end of the boot,
// because PAM only lets root in until systemd-user-sessions has run, which may be after cloud-init's end.
func (b *Box) AwaitBooted(ctx context.Context) error {
	if err := b.AwaitSSH(ctx); err != nil {
		return err
	}
	out, err := b.Exec(ctx, "cloud-init", "status", "--wait", "--long")
	if err != nil {
		said, sayErr := b.Exec(ctx, "sh", "-c", "tail -n 20 /var/lib/errand/firstboot*; systemctl --no-pager --failed; journalctl --no-pager | grep -v cloud-init | tail -n 60")
		return errors.Join(fmt.Errorf("cloud-init of box %s: %w\n%s\n%s\n%s", b.Name, err, out, said, tail([]byte(b.Console()), 6000)), sayErr)
	}
	if state, err := b.Exec(ctx, "systemctl", "is-system-running", "--wait"); err != nil && strings.TrimSpace(state) != "degraded" { // a unit of the base system may have failed
		return fmt.Errorf("boot of box %s: %q: %w\n%s", b.Name, state, err, tail([]byte(b.Console()), 6000))
	}
	return nil
}

// await polls a condition, until ctx ends or the box goes off.
func (b *Box) await(ctx context.Context, what string, try func(context.Context) error) error {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if !b.Running() {
			return fmt.Errorf("wait until %s on box %s: powered off: %w", what, b.Name, err)
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s on box %s: %w: %w\n%s", what, b.Name, context.Cause(ctx), err, tail([]byte(b.Console()), 6000))
		}
	}
}
