package server_test

import (
	"net/http"
	"testing"
)

// TestForwardedForIsOnlyAcceptedFromTrustedProxies counts wrong tokens by the client that a proxy names.
func TestForwardedForIsOnlyAcceptedFromTrustedProxies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		other  int // the answer to a wrong token from another client
	}{
		"a trusted proxy": {"trusted_proxies: [127.0.0.1]", http.StatusUnauthorized},
		"somebody else":   {"trusted_proxies: [10.0.0.0/8]", http.StatusTooManyRequests},
		"no proxy is set": {"", http.StatusTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.run(p.config("127.0.0.1:0", c.config))
			ask := func(from, token string) int {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/metrics", nil)
				check(t, err)
				req.Header.Set("Authorization", "Bearer "+token)
				req.Header.Set("X-Forwarded-For", from)
				status, _ := p.send(req)
				return status
			}
			for range 10 {
				ask("203.0.113.7", "nonsense")
			}
			if status := ask("198.51.100.9, 203.0.113.7", "nonsense"); status != http.StatusTooManyRequests {
				t.Errorf("the same client, which forges another: %d", status)
			}
			if status := ask("198.51.100.9", "nonsense"); status != c.other {
				t.Errorf("another client: %d, want %d", status, c.other)
			}
			if status := ask("203.0.113.7", token); status != http.StatusOK {
				t.Errorf("the right token: %d", status)
			}
		})
	}
}
