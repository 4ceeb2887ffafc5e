package admin

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"time"
)

//go:embed pages
var files embed.FS

// look holds the templates: one set per page with a common frame.
type look struct{ sets map[string]*template.Template }

// page is the data of every template.
type page struct {
	Title   string
	Plain   bool // without navigation
	Again   bool // reloads itself immediately
	Data    any
	Nonce   string
	Version string
	Now     time.Time
	VMs     bool // link the page of VMs
	Login   bool // show the logout button
	Style   template.CSS
	Script  template.JS // the page's script; empty for none
}

// newLook parses the embedded templates.
func newLook() (*look, error) {
	frame, err := template.New("frame.html").Funcs(helpers()).ParseFS(files, "pages/frame.html", "pages/parts.html")
	if err != nil {
		return nil, fmt.Errorf("parse the frame: %w", err)
	}
	l := &look{sets: map[string]*template.Template{}}
	for _, name := range []string{"board", "task", "run", "vms", "login", "problem"} {
		set, err := frame.Clone()
		if err == nil {
			set, err = set.ParseFS(files, "pages/"+name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("parse page %s: %w", name, err)
		}
		l.sets[name] = set
	}
	return l, nil
}

// show renders a page and sends it.
func (p *pages) show(w http.ResponseWriter, r *http.Request, status int, name string, pg page) {
	pg.Nonce, pg.Version, pg.Now = nonceOf(r), p.cfg.Version, p.cfg.Now().UTC()
	pg.VMs = p.cfg.VMs != nil
	pg.Login = p.cfg.Token != "" && !pg.Plain
	style, _ := files.ReadFile("pages/style.css") // embedded; a test checks that it exists
	pg.Style = template.CSS(style)
	if script := scriptOf(name); script != "" {
		text, _ := files.ReadFile("pages/" + script)
		pg.Script = template.JS(text)
	}
	var buf bytes.Buffer
	if err := p.look.sets[name].ExecuteTemplate(&buf, "frame", pg); err != nil {
		p.cfg.Log.Error().Err(err).Str("page", name).Msg("failed to render an admin page")
		http.Error(w, "The page could not be rendered; the log has the cause.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // the client may have disconnected
}

// scriptOf returns the script of a page, empty for none.
func scriptOf(name string) string {
	switch name {
	case "board":
		return "board.js"
	case "task", "run":
		return "log.js"
	}
	return ""
}

// nonceKey is the context key of the response's nonce.
type nonceKey struct{}

func nonceOf(r *http.Request) string {
	s, _ := r.Context().Value(nonceKey{}).(string)
	return s
}

// harden sets headers against framing, content sniffing, caching and foreign resources.
func harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nonce := rand.Text()
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'nonce-"+nonce+"'; script-src 'nonce-"+nonce+
			"'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), nonceKey{}, nonce)))
	})
}
