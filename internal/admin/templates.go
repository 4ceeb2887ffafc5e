package admin

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/errand-bot/errand/internal/admin/login"
)

//go:embed pages
var files embed.FS

// templates holds the templates: one set per page with a common frame.
type templates struct{ sets map[string]*template.Template }

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
	// Operator states that the viewer sees everything. Person is the login of somebody who has signed in with GitHub. SignIn states
	// that people can.
	Operator bool
	Person   string
	SignIn   bool
	Doubt    string // see login.Viewer.Doubt
	Form     string // the form token, see login.FormToken
	Style    template.CSS
	Script   template.JS // the page's script; empty for none
}

// newTemplates parses the embedded templates.
func newTemplates() (*templates, error) {
	frame, err := template.New("frame.html").Funcs(helpers()).ParseFS(files, "pages/frame.html", "pages/parts.html")
	if err != nil {
		return nil, fmt.Errorf("parse the frame: %w", err)
	}
	l := &templates{sets: map[string]*template.Template{}}
	for _, name := range []string{"board", "task", "run", "vms", "login", "problem", "confirm", "pause"} {
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
	pg.Form = login.FormToken(r)
	pg.Login = p.cfg.Token != "" && !pg.Plain
	viewer := login.ViewerOf(r)
	person, _ := viewer.Person()
	pg.Operator, pg.Person, pg.SignIn = viewer.Operator(), person.Login, p.cfg.GitHub != nil
	pg.Doubt = viewer.Doubt()
	pg.Style = Style()
	if script := scriptOf(name); script != "" {
		text, _ := files.ReadFile("pages/" + script)
		pg.Script = template.JS(text)
	}
	var buf bytes.Buffer
	if err := p.templates.sets[name].ExecuteTemplate(&buf, "frame", pg); err != nil {
		p.cfg.Log.Error().Err(err).Str("page", name).Msg("failed to render an admin page")
		http.Error(w, "The page could not be rendered; the log has the cause.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // the client may have disconnected
}

// Style returns the style sheet of the pages, for pages elsewhere that look like them.
func Style() template.CSS {
	style, _ := files.ReadFile("pages/style.css") // embedded; a test checks that it exists
	return template.CSS(style)
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
