package tetherd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Attach connects in and out with the daemon. All bytes belong to the yamux session; Attach adds none. It returns when
// the daemon ends the session, for example because of a newer attach, or when in ends.
func Attach(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	dialCtx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()
	conn, reader, err := dial(dialCtx, dir, orderAttach)
	if err != nil {
		return fmt.Errorf("attach tether: %w", err)
	}
	defer conn.Close()
	answer, err := reader.ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != attachAnswer {
		return fmt.Errorf("attach tether: answer %q: %w", answer, err)
	}
	_ = conn.SetDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	// A read from in cannot be interrupted; the process ends with Attach.
	go func() {
		_, _ = io.Copy(conn, in)
		if unix, ok := conn.(*net.UnixConn); ok {
			_ = unix.Close()
		}
	}()
	if _, err := io.Copy(out, reader); err != nil && ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("attach tether: %w", err)
	}
	return nil
}
