package tether

import (
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"
)

// newTransport makes what all upstream calls share. A model may think for minutes before the first
// byte, so only the connection has a short timeout.
func newTransport(silence time.Duration) http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: silence,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   64,
		ForceAttemptHTTP2:     true,
	}
}

// proxy passes a request on to base+rest by a transport. What the VM showed us never goes further. Answered may be nil.
func (h *Handler) proxy(via http.RoundTripper, w http.ResponseWriter, r *http.Request, base, rest string, answered func(*http.Response) error, sign func(*http.Request)) {
	target, err := url.Parse(base)
	if err != nil {
		h.cfg.Log.Error().Err(err).Msg("tether: upstream address")
		http.Error(w, "errand: the upstream address is invalid", http.StatusBadGateway)
		return
	}
	p := httputil.ReverseProxy{
		Transport:     via,
		FlushInterval: -1,
		ErrorLog:      log.New(h.cfg.Log, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = target.Scheme, target.Host
			pr.Out.URL.Path = strings.TrimSuffix(target.Path, "/") + rest
			pr.Out.URL.RawPath = ""
			pr.Out.Host = target.Host
			for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization"} {
				pr.Out.Header.Del(name)
			}
			sign(pr.Out)
		},
		ModifyResponse: answered,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if unanswered(r.Context(), w, err) {
				return
			}
			h.cfg.Log.Warn().Err(err).Msg("tether: upstream")
			http.Error(w, "errand: upstream cannot be reached", http.StatusBadGateway)
		},
	}
	p.ServeHTTP(w, r)
}
