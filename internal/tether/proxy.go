package tether

import (
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
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

// git passes reads of the task's own repository on, with a read token put in.
func (h *Handler) git(w http.ResponseWriter, r *http.Request, p Peer) {
	t := taskOf(r)
	owner, repo := r.PathValue("owner"), strings.TrimSuffix(r.PathValue("repo"), ".git")
	if !strings.EqualFold(owner, t.Repo.Owner) || !strings.EqualFold(repo, t.Repo.Name) {
		http.Error(w, "errand: only the task's own repository can be read", http.StatusForbidden)
		return
	}
	rest := strings.TrimPrefix(r.URL.Path, path.Join("/git", r.PathValue("owner"), r.PathValue("repo")))
	reads := rest == "/git-upload-pack" && r.Method == http.MethodPost ||
		rest == "/info/refs" && r.Method == http.MethodGet && r.URL.Query().Get("service") == "git-upload-pack"
	if !reads {
		http.Error(w, "errand: the repository can be fetched from, not pushed to", http.StatusForbidden)
		return
	}
	base, token, err := h.cfg.Git(r.Context(), t)
	if err != nil {
		h.cfg.Log.Warn().Err(err).Str("vm", p.VM).Msg("tether: no token to read the repository")
		http.Error(w, "errand: the repository cannot be read now", http.StatusBadGateway)
		return
	}
	h.proxy(w, r, base, rest, nil, func(out *http.Request) {
		out.URL.RawQuery = "" // nothing but what was judged goes further
		if rest == "/info/refs" {
			out.URL.RawQuery = "service=git-upload-pack"
		}
		out.SetBasicAuth("x-access-token", token)
	})
}

// proxy passes a request on to base+rest. What the VM showed us never goes further. Answered may be nil.
func (h *Handler) proxy(w http.ResponseWriter, r *http.Request, base, rest string, answered func(*http.Response) error, sign func(*http.Request)) {
	target, err := url.Parse(base)
	if err != nil {
		h.cfg.Log.Error().Err(err).Msg("tether: upstream address")
		http.Error(w, "errand: the upstream address is invalid", http.StatusBadGateway)
		return
	}
	p := httputil.ReverseProxy{
		Transport:     h.transport,
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
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			h.cfg.Log.Warn().Err(err).Msg("tether: upstream")
			http.Error(w, "errand: upstream cannot be reached", http.StatusBadGateway)
		},
	}
	p.ServeHTTP(w, r)
}
