package proc

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The files that startNamespaced passes to ns-init.
const (
	ordersFD = 3
	reportFD = 4
)

// Init is the "ns-init" subcommand: process 1 of a run's PID namespace. It mounts a separate /proc, starts the command
// without the capabilities of this program, forwards interrupts, reaps orphans, and ends with the command or with its
// supervisor. At its end, the kernel kills all processes in the namespace. The arguments are "--probe", or "--" and the
// command.
func Init(args []string) int {
	// Capabilities belong to a thread, and a child inherits those of the thread that starts it.
	runtime.LockOSThread()
	err := enterNamespace()
	if len(args) == 1 && args[0] == "--probe" {
		if err == nil {
			fmt.Printf("pidns %d\n", os.Getpid())
		}
		return 0
	}
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportFD)
	report := json.NewEncoder(os.NewFile(reportFD, "report"))
	if err == nil && (len(args) < 2 || args[0] != "--") {
		err = fmt.Errorf("no command given")
	}
	if err != nil {
		_ = report.Encode(nsMessage{Error: err.Error()})
		return 1
	}
	return runInit(args[1:], report)
}

func enterNamespace() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("enter PID namespace: this is process %d", os.Getpid())
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

func runInit(argv []string, report *json.Encoder) int {
	path, err := lookPath(Command{Argv: argv, Env: os.Environ()})
	if err != nil {
		_ = report.Encode(nsMessage{Error: err.Error()})
		return 1
	}
	offerToOOM(os.Getpid())
	cmd := &exec.Cmd{
		Path: path, Args: argv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		_ = report.Encode(nsMessage{Error: err.Error()})
		return 1
	}
	_ = report.Encode(nsMessage{Started: true})
	go forwardInterrupts(os.NewFile(ordersFD, "orders"), cmd.Process.Pid)
	status := reapUntil(cmd.Process.Pid)
	end := nsMessage{Ended: true, Code: status.ExitStatus()}
	if status.Signaled() {
		end.Code, end.Signal = 128+int(status.Signal()), status.Signal().String()
	}
	_ = report.Encode(end)
	return 0
}

// forwardInterrupts passes interrupts on, and ends the namespace when the supervisor is gone.
func forwardInterrupts(orders *os.File, pid int) {
	order := make([]byte, 1)
	for {
		if _, err := orders.Read(order); err != nil {
			os.Exit(137)
		}
		if order[0] == orderInterrupt {
			_ = unix.Kill(pid, unix.SIGINT)
		}
	}
}

// reapUntil reaps ended processes until the given one has ended.
func reapUntil(pid int) unix.WaitStatus {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, 0, nil)
		if got == pid {
			return status
		}
		if err != nil && err != unix.EINTR {
			return status
		}
	}
}
