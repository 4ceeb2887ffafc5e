// Package forward forwards requests of VMs to upstream servers, with errand's credentials in place of those that the VM
// showed.
//
// Start with [Request.Forward].
package forward

import (
	"cmp"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// NewTransport returns a transport for all upstream servers. Only connecting has a short timeout, because a model may
// reason for minutes before the first byte: until then idle is the timeout; 0 means ten minutes.
func NewTransport(idle time.Duration) http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: cmp.Or(idle, 10*time.Minute),
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   64,
		ForceAttemptHTTP2:     true,
	}
}

// A Request is a request of a VM that is forwarded to an upstream server.
type Request struct {
	// BaseURL is the server's address, and Path the path after it.
	BaseURL, Path string
	Transport     http.RoundTripper
	// Sign adds credentials to the outgoing request, which has none.
	Sign func(*http.Request)
	// Answered is called with the server's answer and may change it. It may be nil.
	Answered func(*http.Response) error
	// Failed may answer a request that failed with err, and reports whether it did. It may be nil.
	Failed func(w http.ResponseWriter, err error) bool
	Log    zerolog.Logger
}

// Forward sends r to the server and the answer to w. The VM's own credentials are never forwarded.
func (f *Request) Forward(w http.ResponseWriter, r *http.Request) {
	target, err := url.Parse(f.BaseURL)
	if err != nil {
		f.Log.Error().Err(err).Msg("invalid address of an upstream server")
		http.Error(w, "errand: the upstream address is invalid", http.StatusBadGateway)
		return
	}
	p := httputil.ReverseProxy{
		Transport:     f.Transport,
		FlushInterval: -1,
		ErrorLog:      log.New(f.Log, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.URL.Scheme, pr.Out.URL.Host = target.Scheme, target.Host
			pr.Out.URL.Path = strings.TrimSuffix(target.Path, "/") + f.Path
			pr.Out.URL.RawPath = ""
			pr.Out.Host = target.Host
			for _, name := range []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization"} {
				pr.Out.Header.Del(name)
			}
			f.Sign(pr.Out)
		},
		ModifyResponse: f.Answered,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if f.Failed != nil && f.Failed(w, err) {
				return
			}
			f.Log.Warn().Err(err).Msg("failed to forward a request to an upstream server")
			http.Error(w, "errand: upstream cannot be reached", http.StatusBadGateway)
		},
	}
	p.ServeHTTP(w, r)
}
