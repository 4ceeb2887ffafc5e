// Package selfclient makes requests to the errand that runs on this host, for the commands of its operator. A request goes to errand's
// own address only: through no proxy, and along no redirect, because it may carry the admin token.
//
// Start with [GetJSON], which the commands use, or [New], which returns the client.
package selfclient

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/errand-bot/errand/internal/config"
)

const dialTimeout = 10 * time.Second

// New returns a client for one of errand's addresses, listen or admin.listen, and the URL of its pages there, without a slash at the
// end. If errand serves HTTPS there, its certificate has to be valid for the host of public_url.
func New(cfg config.Config, listen string) (client *http.Client, base string) {
	address := Address(listen)
	transport := &http.Transport{DisableKeepAlives: true}
	base = "http://" + address
	if host := cfg.TLSHost(); host != "" && listen == cfg.Listen {
		base = "https://" + host
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
		}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, base
}

// ServerName is the header Server of errand's answers, by which it is told from other programs.
const ServerName = "errand"

const healthTimeout = 3 * time.Second

// Answers reports whether an errand answers at one of its addresses.
func Answers(ctx context.Context, cfg config.Config, listen string) bool {
	client, base := New(cfg, listen)
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK && resp.Header.Get("Server") == ServerName
}

// Address returns an address at which this host reaches a listener: one on all addresses is reached at a local one.
func Address(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return listen
	}
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return net.JoinHostPort("::1", port)
	}
	return net.JoinHostPort("127.0.0.1", port)
}
