//go:build linux

package rootbox

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// metadataAddr is the address of the metadata service.
const metadataAddr = "169.254.169.254"

// serveMetadata serves each box its metadata. All labs use the same address; the listener is bound to the lab's bridge.
func (l *Lab) serveMetadata(ctx context.Context, bridge string) error {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var bound error
		err := c.Control(func(fd uintptr) { bound = unix.BindToDevice(int(fd), bridge) })
		if err == nil {
			err = bound
		}
		return err
	}}
	ln, err := lc.Listen(ctx, "tcp", metadataAddr+":80")
	if err != nil {
		return fmt.Errorf("listen for metadata: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hetzner/v1/userdata", l.answer(func(b *Box) string { return string(b.userData) }))
	mux.HandleFunc("GET /hetzner/v1/metadata/instance-id", l.answer(func(b *Box) string { return b.instance }))
	mux.HandleFunc("GET /hetzner/v1/metadata/hostname", l.answer(func(b *Box) string { return b.host }))
	mux.HandleFunc("GET /hetzner/v1/metadata/public-ipv4", l.answer(func(b *Box) string { return b.Addr.String() }))
	l.meta = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = l.meta.Serve(ln) }() // ends with Close
	return nil
}

// answer returns one value of the metadata of the box with the client's address.
func (l *Lab) answer(fact func(*Box) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		l.mu.Lock()
		box := l.boxes[from.Addr()]
		var text string
		if box != nil {
			box.mu.Lock()
			text = fact(box)
			box.mu.Unlock()
		}
		l.mu.Unlock()
		if box == nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(text)) // the client may have disconnected
	}
}
