package setup

import (
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/forge/manifest"
)

// createdPath is where GitHub sends the browser after the App was created. The state protects it.
const createdPath = "/created"

// stateLife is how long GitHub's answer to a page is accepted.
const stateLife = time.Hour

//go:embed page.html
var pageText string

// pageConfig configures a page.
type pageConfig struct {
	Addr     string // IP:PORT
	Action   string // page of GitHub to which the manifest is posted
	Manifest manifest.Manifest
	Now      func() time.Time
	// Convert exchanges a code for the App's credentials, stores them, and returns the page on which the App is installed.
	Convert func(code string) (installPage string, err error)
}

// page is the local page on which an operator creates the App. Its path has a random part, so that other users of this host cannot
// open it. It holds no secret of the App.
type page struct {
	pageConfig
	mux      *http.ServeMux
	tmpl     *template.Template
	manifest string // JSON
	token    string // of the path
	hosts    []string
	results  chan error // one per attempt to convert a code

	mu      sync.Mutex
	state   string // of the newest form; empty after it was used
	stateAt time.Time
	install string // page on which the App is installed; empty until it was created
	closed  bool
}

func newPage(cfg pageConfig) (*page, error) {
	text, err := json.Marshal(cfg.Manifest)
	if err != nil {
		return nil, fmt.Errorf("encode the manifest: %w", err)
	}
	tmpl, err := template.New("page").Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("parse the local page: %w", err)
	}
	token, err := randomToken()
	if err != nil {
		return nil, err
	}
	p := &page{pageConfig: cfg, mux: http.NewServeMux(), tmpl: tmpl, manifest: string(text), token: token, results: make(chan error, 16)}
	p.hosts = []string{cfg.Addr}
	if _, port, err := net.SplitHostPort(cfg.Addr); err == nil {
		p.hosts = append(p.hosts, "localhost:"+port)
	}
	p.mux.HandleFunc("GET /{token}/", p.serveForm)
	p.mux.HandleFunc("GET "+createdPath, p.serveCreated)
	return p, nil
}

// URL returns the address of the page.
func (p *page) URL() string { return "http://" + p.Addr + "/" + p.token + "/" }

// ServeHTTP serves the page to browsers that reached it by an address of this host: a site whose name resolves to this host cannot.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	// No form-action: after the form was posted, GitHub may redirect to a company's login on another host.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
	if !slices.Contains(p.hosts, r.Host) {
		p.render(w, http.StatusMisdirectedRequest, view{Problem: "This page is at " + p.Addr + ". Forward the same port to it."})
		return
	}
	p.mux.ServeHTTP(w, r)
}

// view is what the page shows.
type view struct {
	Action, State, Manifest string // of the form; empty: none
	Manifested              manifest.Manifest
	Install                 string // set after the App was created
	Problem                 string
}

func (p *page) render(w http.ResponseWriter, status int, v view) {
	v.Manifested = p.pageConfig.Manifest
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = p.tmpl.Execute(w, v) // the browser has disconnected
}

// serveForm serves the form that posts the manifest to GitHub, with a new state.
func (p *page) serveForm(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.PathValue("token")), []byte(p.token)) != 1 {
		p.render(w, http.StatusNotFound, view{Problem: "Open the address that errand setup printed in the terminal."})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == "" || p.Now().Sub(p.stateAt) > stateLife/2 { // a reloaded page must not invalidate a form on GitHub
		state, err := randomToken()
		if err != nil {
			p.render(w, http.StatusInternalServerError, view{Problem: err.Error()})
			return
		}
		p.state, p.stateAt = state, p.Now()
	}
	p.render(w, http.StatusOK, view{Action: p.Action, State: p.state, Manifest: p.manifest})
}

// serveCreated receives the code of the created App. A state is accepted once, and for an hour.
func (p *page) serveCreated(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	expected := p.state
	valid := expected != "" && p.Now().Sub(p.stateAt) <= stateLife && subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(expected)) == 1
	switch {
	case p.install != "" || p.closed:
		p.render(w, http.StatusGone, view{Problem: "This is done already. Go back to the terminal."})
		return
	case !valid:
		p.render(w, http.StatusForbidden, view{
			Problem: "GitHub's answer does not belong to the page that is open here, or came too late. Open the address in the terminal again. " +
				"If GitHub has created an App meanwhile, delete it in its settings.",
		})
		return
	}
	p.state = ""
	install, err := p.Convert(q.Get("code"))
	if err != nil {
		p.render(w, http.StatusBadGateway, view{Problem: "The App's credentials could not be stored. The terminal has the details."})
	} else {
		p.install = install
		p.render(w, http.StatusOK, view{Install: install}) // not by a redirect: the page closes now
	}
	select {
	case p.results <- err:
	default: // nobody reads that many failures
	}
}

// close waits for a conversion that is under way, and accepts no further one.
func (p *page) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// randomToken returns 32 random bytes in hexadecimal.
func randomToken() (string, error) {
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("create a random token: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
