package proc

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// orderInterrupt asks ns-init to send SIGINT to the command.
const orderInterrupt = 'i'

// selfPath refers to this program even if its file has been replaced since.
const selfPath = "/proc/self/exe"

// nsMessage is a report of ns-init: first Started or Error, later the command's end.
type nsMessage struct {
	Started bool   `json:"started,omitempty"`
	Error   string `json:"error,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
	Code    int    `json:"code,omitempty"`
	Signal  string `json:"signal,omitempty"`
}

// nsReport reads the messages of one ns-init.
type nsReport struct {
	file    *os.File
	decoder *json.Decoder
}

// exit returns the command's end as ns-init reported it. A missing report means that ns-init was killed, and with it
// all other processes.
func (r *nsReport) exit(error) Exit {
	defer r.file.Close()
	var m nsMessage
	if err := r.decoder.Decode(&m); err != nil || !m.Ended {
		return Exit{Code: 128 + int(unix.SIGKILL), Signal: unix.SIGKILL.String()}
	}
	return Exit{Code: m.Code, Signal: m.Signal}
}

// namespaceAttr requests new namespaces. Root needs no user namespace, and gets none so that sudo and the like keep
// working; other users get one that maps only their own ids.
func namespaceAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS,
	}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return attr
}

func (p *Process) startNamespaced(c Command) error {
	orders, control, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("open control pipe: %w", err)
	}
	defer orders.Close()
	reports, reporter, err := os.Pipe()
	if err != nil {
		_ = control.Close()
		return fmt.Errorf("open report pipe: %w", err)
	}
	defer reporter.Close()
	p.cmd = &exec.Cmd{
		Path: selfPath, Args: append([]string{"errand-runner", InitCommand, "--"}, c.Argv...),
		Env: c.Env, Dir: c.Dir, SysProcAttr: namespaceAttr(),
		ExtraFiles: []*os.File{orders, reporter},
	}
	setFiles(p.cmd, c)
	p.control = control
	p.report = &nsReport{file: reports, decoder: json.NewDecoder(io.LimitReader(reports, 1<<20))}
	if err := p.cmd.Start(); err != nil {
		_, _ = control.Close(), reports.Close()
		return fmt.Errorf("start PID namespace: %w", err)
	}
	_ = reporter.Close()
	return p.awaitStarted()
}

func (p *Process) awaitStarted() error {
	_ = p.report.file.SetReadDeadline(time.Now().Add(30 * time.Second))
	var m nsMessage
	err := p.report.decoder.Decode(&m)
	if err == nil && m.Started {
		return p.report.file.SetReadDeadline(time.Time{})
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	_, _ = p.control.Close(), p.report.file.Close()
	if err != nil {
		return fmt.Errorf("start PID namespace: %w", err)
	}
	return fmt.Errorf("%w: %s", ErrNotStarted, m.Error)
}

// Probe returns the best isolation that works on this system, by trying it.
func Probe() Isolation {
	if !procIsOwn() {
		return Group // the other kinds find processes in /proc
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, selfPath, InitCommand, "--probe")
	cmd.Env = []string{}
	cmd.SysProcAttr = namespaceAttr()
	if out, err := cmd.Output(); err == nil && strings.TrimSpace(string(out)) == probeAnswer {
		return PIDNamespace
	}
	return Subreaper
}

// probeAnswer proves that a probe ran as the namespace's init.
const probeAnswer = "pidns 1"
