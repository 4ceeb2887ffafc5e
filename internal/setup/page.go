package setup

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/admin"
)

const (
	createdPath  = "/created"      // where GitHub sends the browser after the App was created; its state protects it
	closeTimeout = 2 * time.Second // how long the local page may take to finish its last answers
	settleTime   = 2 * time.Second // how long an answer to a form waits for what the setup shows next
	maxPost      = 64 << 10        // bytes of a form
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	pageStyle string
	//go:embed page.js
	pageScript string
)

// newSite returns a page that does not listen yet.
func newSite(solo bool) (*site, error) {
	tmpl, err := template.New("page").Funcs(template.FuncMap{"pieces": pieces, "inc": func(i int) int { return i + 1 }}).Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("parse the local page: %w", err)
	}
	token, err := randomToken()
	if err != nil {
		return nil, err
	}
	s := &site{solo: solo, mux: http.NewServeMux(), tmpl: tmpl, token: token, down: make(chan struct{}), changed: make(chan struct{}), posts: make(chan post, 1)}
	s.mux.HandleFunc("GET /{token}/{$}", s.knowing(s.serveScreen))
	s.mux.HandleFunc("POST /{token}/{$}", s.knowing(s.servePost))
	s.mux.HandleFunc("GET /{token}/version", s.knowing(s.serveVersion))
	s.mux.HandleFunc("GET "+createdPath, s.serveCreated)
	return s, nil
}

// start listens on this host only, because nothing but its own address protects the page on the way, and serves the page.
func (s *site) start(ctx context.Context, r *run) error {
	addr, err := netip.ParseAddrPort(r.opts.Listen)
	if err != nil || !addr.Addr().IsLoopback() {
		return fmt.Errorf("--listen %q: write an address of this host only, such as 127.0.0.1:8099", r.opts.Listen)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr.String())
	if err != nil {
		return fmt.Errorf("serve the local page: %w; choose another port with --listen", err)
	}
	s.addr = ln.Addr().String()
	_, port, _ := net.SplitHostPort(s.addr) // an address of a listener
	s.hosts = []string{s.addr, "localhost:" + port}
	s.srv = &http.Server{Handler: s, ReadTimeout: 10 * time.Second, WriteTimeout: 2 * time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		s.downErr = fmt.Errorf("serve the local page: %w", s.srv.Serve(ln))
		close(s.down)
	}()
	return nil
}

// announcement says how to open the page, and what to do there.
func (s *site) announcement(purpose string) string {
	_, port, _ := net.SplitHostPort(s.addr) // an address of a listener
	return fmt.Sprintf("Open this page in a browser, and %s there:\n\n  http://%s%s\n\n"+
		"If the browser runs on another computer, first run this there, and keep it running:\n\n  ssh -N -L %s:%s USER@THIS-HOST\n\n",
		purpose, s.addr, s.path(), port, s.addr)
}

func (s *site) path() string { return "/" + s.token + "/" }

func (s *site) createdURL() string { return "http://" + s.addr + createdPath }

// shutDown ends the page after its last answers.
func (s *site) shutDown(ctx context.Context) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	err := s.srv.Shutdown(closing)
	if err != nil {
		err = s.srv.Close() // a browser is slow, which is no failure of the setup
	}
	<-s.down
	return err
}

// ServeHTTP serves the page to browsers that reached it by an address of this host: a site whose name resolves to this host cannot.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send no Origin that could be checked
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if !slices.Contains(s.hosts, r.Host) {
		s.refuse(w, http.StatusMisdirectedRequest, "This page is at "+s.addr+". Forward the same port to it.")
		return
	}
	s.mux.ServeHTTP(w, r)
}

// knowing serves only those who know the token, and forms only from the page itself.
func (s *site) knowing(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case subtle.ConstantTimeCompare([]byte(r.PathValue("token")), []byte(s.token)) != 1:
			s.refuse(w, http.StatusNotFound, "Open the address that errand setup printed in the terminal.")
		case r.Method == http.MethodPost && r.Header.Get("Origin") != "http://"+r.Host: // Host is one of the page's
			s.refuse(w, http.StatusForbidden, "This form is not from the page of the setup. Open the address in the terminal again.")
		default:
			next(w, r)
		}
	}
}

// refuse shows why a request is not answered. Not everybody who sees it knows the token.
func (s *site) refuse(w http.ResponseWriter, status int, problem string) {
	s.render(w, status, view{Title: "Set up errand", Problem: problem})
}

func (s *site) render(w http.ResponseWriter, status int, v view) {
	v.Nonce, v.Style, v.Solo = rand.Text(), admin.Style()+template.CSS(pageStyle), s.solo
	if v.Follows {
		v.Script = template.JS(pageScript)
	}
	var b bytes.Buffer
	if err := s.tmpl.Execute(&b, v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// No form-action: after the form was posted, GitHub may redirect to a company's login on another host.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'nonce-"+v.Nonce+"'; script-src 'nonce-"+v.Nonce+
		"'; connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser may have disconnected
}

// serveScreen shows what the setup does now.
func (s *site) serveScreen(w http.ResponseWriter, r *http.Request) {
	v, err := s.view()
	if err != nil {
		s.refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	v.Stale = r.URL.Query().Has("stale")
	s.render(w, http.StatusOK, v)
}

// serveVersion tells the script of the page whether there is anything new.
func (s *site) serveVersion(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprint(w, s.version)
}

// servePost takes a form, waits a moment for what the setup makes of it, and leads the browser back to the page, which can be reloaded.
func (s *site) servePost(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPost)
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if errors.As(err, new(*http.MaxBytesError)) {
			status = http.StatusRequestEntityTooLarge
		}
		s.refuse(w, status, "The answers cannot be read ("+err.Error()+"). Go back and correct them.")
		return
	}
	id, err := strconv.Atoi(r.PostForm.Get("id"))
	if err != nil {
		s.refuse(w, http.StatusBadRequest, "The form is incomplete. Open the address in the terminal again.")
		return
	}
	how := decision(r.PostForm.Get("do"))
	switch s.accept(id, how, post{how: how, values: r.PostForm}) {
	case http.StatusConflict:
		http.Redirect(w, r, s.path()+"?stale", http.StatusSeeOther)
	case http.StatusBadRequest:
		s.refuse(w, http.StatusBadRequest, "The form is incomplete. Open the address in the terminal again.")
	default:
		if how == stop {
			s.refuse(w, http.StatusOK, "The setup has ended. You can close this page.")
			return
		}
		s.settle(r.Context())
		http.Redirect(w, r, s.path(), http.StatusSeeOther)
	}
}

// serveCreated takes GitHub's answer to the form of the App.
func (s *site) serveCreated(w http.ResponseWriter, r *http.Request) {
	how, install, err := foreign, "", error(nil)
	form, id := s.appForm()
	if form != nil {
		q := r.URL.Query()
		how, install, err = form.arrive(q.Get("state"), q.Get("code"))
	}
	switch {
	case how == late:
		s.refuse(w, http.StatusGone, "This is done already. Go back to "+s.origin()+".")
	case how == foreign:
		s.refuse(w, http.StatusForbidden, "GitHub's answer does not belong to the form that is open here, or came too late. If GitHub has created an App, "+
			"it is not used: delete it in its settings, or give errand setup the code in this address within an hour, with `app: code`. "+
			"Open the address in the terminal again.")
	case s.solo && how == created:
		s.render(w, http.StatusOK, view{Title: "Set up errand", Install: install}) // not by a redirect: the page closes now
	case s.solo:
		s.refuse(w, http.StatusBadGateway, "The App's credentials could not be stored. The terminal has the details.")
	case how == unconverted: // not by a redirect: the code in the address may still be needed
		s.take(id)
		s.render(w, http.StatusBadGateway, view{Title: "Set up errand", Problem: err.Error(), Back: s.path()})
	default: // the state has shown that this browser comes from the page
		s.take(id)
		s.settle(r.Context())
		http.Redirect(w, r, s.path(), http.StatusSeeOther)
	}
}

func (s *site) origin() string {
	if s.solo {
		return "the terminal"
	}
	return "the page of the setup"
}

// piece is a part of a text; a link if it has an address.
type piece struct{ Text, Link string }

var webAddress = regexp.MustCompile(`https?://[^\s<>"'` + "`" + `]+[^\s<>"'.,;:!?)` + "`" + `]`)

// pieces cuts a text at the addresses in it.
func pieces(text string) (list []piece) {
	text = strings.Trim(text, "\n")
	from := 0
	for _, at := range webAddress.FindAllStringIndex(text, -1) {
		list = append(list, piece{Text: text[from:at[0]]}, piece{Text: text[at[0]:at[1]], Link: text[at[0]:at[1]]})
		from = at[1]
	}
	return append(list, piece{Text: text[from:]})
}

// randomToken returns 32 random bytes in hexadecimal.
func randomToken() (string, error) {
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("create a random token: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}
