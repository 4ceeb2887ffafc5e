//go:build !linux

package box

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

const killTimeout = 5 * time.Second

func initAttr(kind string) (*syscall.SysProcAttr, error) {
	if kind != KindPlain {
		return nil, errors.New("user namespaces exist only on Linux")
	}
	return &syscall.SysProcAttr{Setsid: true}, nil
}

func closeMemory() error { return nil }

func becomeSubreaper() {}

// killDescendants has no effect here: a plain sandbox ends with its server and the process groups that the server
// knows.
func killDescendants(time.Duration) {}

// runInit has nothing to prepare here: the server is the first process.
func runInit(o initOptions) error {
	if o.probe != "" {
		return probeInside(context.Background(), o.probe, os.Stdin, os.Stdout)
	}
	return serveInherited(context.Background())
}
