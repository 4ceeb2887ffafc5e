//go:build !linux

package proc

import "os/exec"

// RunAlone runs a short command like cmd.Run does. Other systems have no PID namespaces: what the
// command starts in a session of its own may outlive it.
func RunAlone(prepare func() *exec.Cmd) error { return prepare().Run() }

// Adopt does nothing here.
func Adopt() error { return nil }

// EndOrphans does nothing here.
func EndOrphans() error { return nil }
