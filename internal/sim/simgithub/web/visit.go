package web

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

const (
	cookieAs   = "simgithub_as"
	cookieCSRF = "simgithub_csrf"
	maxForm    = 1 << 20 // bytes of a posted form
)

// visit is one request of a page or one posted form.
type visit struct {
	web    *site
	w      http.ResponseWriter
	r      *http.Request
	p      simgithub.Person // the account as which the visitor acts; its login is empty without one
	csrf   string
	nonce  string
	leads  string // the site to which a form of the page leads by a redirect, in addition to this one
	status int
	alert  string // error message, shown on top
	typed  string // the text of a form that was refused, so that it is not lost
	main   string // the page to which forms are posted, without its tab
	seen   string // the version of the page, computed before the page is read, so that later changes reload it
}

// act applies a form. It returns the address to go to; an empty one means back to the form's page.
type act func(v *visit) (to string, err error)

func (w *site) visit(rw http.ResponseWriter, r *http.Request) *visit {
	v := &visit{web: w, w: rw, r: r, nonce: randomToken(), status: http.StatusOK, main: r.URL.EscapedPath()}
	v.p = w.s.Visitor(w.actor(r))
	v.seen = w.version(r.URL.Path, v.p)
	if c, err := r.Cookie(cookieCSRF); err == nil && len(c.Value) == 32 {
		v.csrf = c.Value
		return v
	}
	v.csrf = randomToken()
	http.SetCookie(rw, &http.Cookie{Name: cookieCSRF, Value: v.csrf, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	return v
}

// actor returns the account of a request: the chosen one, else the collaborator with the highest role in the first
// repository.
func (w *site) actor(r *http.Request) string {
	people := w.people()
	if c, err := r.Cookie(cookieAs); err == nil {
		if login, err := url.QueryUnescape(c.Value); err == nil && slices.Contains(people, login) {
			return login
		}
	}
	best, rank := "", 0
	for _, r := range w.s.Snapshot().Repos {
		for _, login := range r.Explicit() {
			if n := r.Collaborators[login].Rank(); n > rank && slices.Contains(people, login) {
				best, rank = login, n
			}
		}
		if rank > 0 {
			return best
		}
	}
	if len(people) > 0 {
		return people[0]
	}
	return ""
}

// people returns the accounts that a visitor can choose: all except organizations and the App's bot.
func (w *site) people() []string {
	bot := w.s.App().BotLogin
	var out []string
	for _, u := range w.s.Users() {
		if u.Type != simgithub.TypeOrg && u.Login != bot {
			out = append(out, u.Login)
		}
	}
	return out
}

// do applies a posted form and redirects to a page. If the act fails, it shows the page with the error and the text
// typed.
func (v *visit) do(page func(*visit) error, acts map[string]act) error {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return &simgithub.Error{Status: http.StatusBadRequest, Message: "The form could not be read"}
	}
	if subtle.ConstantTimeCompare([]byte(v.r.PostForm.Get("csrf")), []byte(v.csrf)) != 1 {
		return forbidden("This form is not from this site, or is too old. Go back, reload the page and try again.")
	}
	run, ok := acts[v.r.PostForm.Get("act")]
	if !ok {
		return &simgithub.Error{Status: http.StatusBadRequest, Message: "There is no such form"}
	}
	to, err := run(v)
	if err == nil {
		http.Redirect(v.w, v.r, v.back(to), http.StatusSeeOther)
		return nil
	}
	v.typed = v.field("body")
	if page == nil {
		return err
	}
	v.status, v.alert = refusal(err)
	return page(v)
}

// back returns the address after a form: the one of the act, or the place on the form's page.
func (v *visit) back(to string) string {
	if to != "" && !strings.HasPrefix(to, "#") {
		return to
	}
	page := v.r.PostForm.Get("back")
	if !strings.HasPrefix(page, "/") || strings.HasPrefix(page, "//") || strings.ContainsAny(page, "\\\r\n") {
		page = v.r.URL.EscapedPath()
	}
	return page + to
}

func (v *visit) field(name string) string {
	return strings.ReplaceAll(v.r.PostForm.Get(name), "\r\n", "\n")
}

func (v *visit) number(name string) int64 {
	n, _ := strconv.ParseInt(v.r.PostForm.Get(name), 10, 64) // 0 for other texts, which is not an ID
	return n
}

// full returns the name of the repository in the address.
func (v *visit) full() string { return v.r.PathValue("owner") + "/" + v.r.PathValue("repo") }

// n returns the issue number in the address.
func (v *visit) n() int {
	n, _ := strconv.Atoi(v.r.PathValue("n")) // 0 for other texts, which is not an issue number
	return n
}

// render writes a page.
func (v *visit) render(name, title string, data any) error {
	t, err := v.web.tmpl.Clone()
	if err != nil {
		return fmt.Errorf("copy templates: %w", err)
	}
	var b bytes.Buffer
	if err := t.Funcs(v.funcs()).ExecuteTemplate(&b, name, struct {
		Title string
		Data  any
	}{title, data}); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	v.headers("text/html; charset=utf-8")
	v.w.WriteHeader(v.status)
	_, _ = v.w.Write(b.Bytes()) // the visitor has disconnected
	return nil
}

func (v *visit) headers(contentType string) {
	h := v.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; style-src 'nonce-%[1]s'; script-src 'nonce-%[1]s'; "+
		"connect-src 'self'; img-src 'self' data:; form-action 'self' %[2]s; base-uri 'none'; frame-ancestors 'none'", v.nonce, v.leads))
}

// funcs returns the functions of the templates.
func (v *visit) funcs() template.FuncMap {
	return template.FuncMap{
		"csrf":    func() string { return v.csrf },
		"nonce":   func() string { return v.nonce },
		"me":      func() string { return v.p.Login() },
		"people":  func() []string { return v.web.people() },
		"here":    func() string { return v.r.URL.EscapedPath() },
		"main":    func() string { return v.main },
		"root":    func() string { return "/" + escapePath(v.full()) },
		"alert":   func() string { return v.alert },
		"typed":   func() string { return v.typed },
		"version": func() string { return v.seen },
		"css":     func() template.CSS { return v.web.css },
		"js":      func() template.JS { return v.web.js },
		"when":    func(t time.Time) whenView { return whenView{t, v.web.s.Now()} },
		"short":   short,
		"initial": func(login string) string { return strings.ToUpper(login[:min(1, len(login))]) },
		"hue":     hue,
		"ref":     url.PathEscape,
		"path":    escapePath,
		"first":   func(text string) string { line, _, _ := strings.Cut(text, "\n"); return line },
		"dict":    dict,
		"inc":     func(n int) int { return n + 1 },
	}
}

// dict returns a map of pairs, for partial templates with several arguments.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for n := 0; n+1 < len(pairs); n += 2 {
		key, ok := pairs[n].(string)
		if !ok {
			return nil, fmt.Errorf("name of a template's argument is no string: %v", pairs[n])
		}
		m[key] = pairs[n+1]
	}
	return m, nil
}

// whenView is a time to be shown.
type whenView struct{ at, now time.Time }

// Machine returns the time for the datetime attribute.
func (t whenView) Machine() string { return t.at.UTC().Format(time.RFC3339) }

// Short returns the time, without the date if it is today.
func (t whenView) Short() string {
	if t.at.UTC().Format(time.DateOnly) == t.now.UTC().Format(time.DateOnly) {
		return t.at.UTC().Format("15:04:05")
	}
	return t.at.UTC().Format("2 Jan 2006, 15:04")
}

// randomToken returns 16 random bytes in hexadecimal.
func randomToken() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails, by its contract
	return hex.EncodeToString(b)
}

func short(sha string) string { return sha[:min(7, len(sha))] }

// hue returns a color for a login.
func hue(login string) int {
	n := 0
	for _, c := range login {
		n = (n*31 + int(c)) % 12
	}
	return n
}

// escapePath escapes a path except its slashes.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for n := range parts {
		parts[n] = url.PathEscape(parts[n])
	}
	return strings.Join(parts, "/")
}
