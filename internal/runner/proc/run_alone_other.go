//go:build !linux

package proc

import "os/exec"

// RunAlone runs a short command as cmd.Run does. Other systems have no PID namespaces, so processes that the command
// starts in their own session may outlive it.
func RunAlone(prepare func() *exec.Cmd) error { return prepare().Run() }

// Adopt does nothing on this system.
func Adopt() error { return nil }

// EndOrphans does nothing on this system.
func EndOrphans() error { return nil }
