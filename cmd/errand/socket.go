package main

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/errand-bot/errand/internal/selfclient"
)

// inheritedListener returns the listener that the service manager has opened for errand (systemd's socket activation), or nil if
// there is none. It outlives errand: connections that arrive during a restart wait for the next errand.
func inheritedListener() (net.Listener, error) {
	files := activation.Files(true) // the programs that errand starts do not inherit them
	if len(files) == 0 {
		return nil, nil
	}
	defer func() {
		for _, f := range files {
			_ = f.Close() // the listener has its own copy
		}
	}()
	if len(files) > 1 {
		return nil, fmt.Errorf("the service manager passed %d sockets, want one: keep one ListenStream in the socket unit", len(files))
	}
	ln, err := net.FileListener(files[0])
	if err != nil {
		return nil, fmt.Errorf("use the socket of the service manager: %w", err)
	}
	if _, ok := ln.(*net.TCPListener); !ok {
		_ = ln.Close()
		return nil, fmt.Errorf("the service manager passed a socket of %s, want TCP: write ListenStream=127.0.0.1:8080 in the socket unit, the address of listen",
			ln.Addr().Network())
	}
	return ln, nil
}

// listensAt reports whether a listener is reached at an address of this host.
func listensAt(ln net.Listener, address string) bool {
	own, isTCP := ln.Addr().(*net.TCPAddr)
	host, port, err := net.SplitHostPort(selfclient.Address(address))
	if !isTCP || err != nil || port != strconv.Itoa(own.Port) {
		return false
	}
	ip := net.ParseIP(cmp.Or(map[string]string{"localhost": "127.0.0.1"}[host], host))
	return own.IP.IsUnspecified() || own.IP.Equal(ip)
}
