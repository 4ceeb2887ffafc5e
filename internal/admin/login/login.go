// Package login admits operators to the pages. They send the token in an Authorization header, or once in the login
// form, which sets a cookie. A token in the URL is never accepted, because it would appear in logs.
//
// A request of a browser that changes something also needs the session's form token, which only errand's pages contain. Wrong
// tokens are throttled by address. Start here: [Guard.Wrap].
package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/state/store"
)

const maxLogin = 16 << 10 // size limit of a login form in bytes

const maxForm = 64 << 10 // size limit of the body of any other request in bytes

// Facts stores small values by name. store.Store implements it.
type Facts interface {
	Fact(ctx context.Context, name string) ([]byte, error)
	SetFact(ctx context.Context, name string, value []byte) error
}

var _ Facts = (*store.Store)(nil)

// A Form is the content of the login form.
type Form struct {
	Next  string // the page to show after the login
	Words string // error message; may be empty
	// Reload states that the form reloads itself immediately, so that the browser sends its cookie.
	Reload bool
}

// Config configures a [Guard]. Only Facts is optional.
type Config struct {
	// Token is required for every page. If it is empty, pages are served to everyone, but only under names that cannot
	// be foreign domains.
	Token string
	// Secure states that browsers reach the pages only by HTTPS. Cookies are then never sent over HTTP.
	Secure bool
	// Facts stores the session generation across restarts; nil keeps it in memory.
	Facts Facts
	Now   func() time.Time
	Log   zerolog.Logger
	// Show responds with the login form.
	Show func(w http.ResponseWriter, r *http.Request, status int, form Form)
	// Fail responds to an internal error.
	Fail func(w http.ResponseWriter, r *http.Request, err error)
}

// A Guard authenticates operators.
type Guard struct {
	cfg      Config
	sessions *sessions
	throttle *throttle
	formKey  []byte // of form tokens; they are valid until the process ends
}

// New returns a [Guard].
func New(cfg Config) *Guard {
	return &Guard{cfg: cfg, sessions: newSessions(cfg), throttle: newThrottle(cfg.Now), formKey: []byte(rand.Text())}
}

// Wrap adds the login pages to next, and restricts everything else to authenticated requests.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", g.login)
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		if g.cfg.Token == "" || g.hasCookie(r) {
			http.Redirect(w, r, "/status", http.StatusSeeOther)
			return
		}
		g.form(w, r, http.StatusOK, "/status", "")
	})
	mux.HandleFunc("POST /logout", g.logout)
	mux.Handle("/", g.only(next))
	// Other sites must not be able to log anyone in or out.
	return http.NewCrossOriginProtection().Handler(mux)
}

// only restricts next to authenticated requests.
func (g *Guard) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var who caller
		switch {
		case g.cfg.Token == "":
			who = caller{name: openName, form: g.formToken("")}
			if !ownHost(r.Host) {
				http.Error(w, "errand: without a token the pages are only served for IP addresses and local names; set admin.token", http.StatusMisdirectedRequest)
				return
			}
		case r.Header.Get("Authorization") != "":
			if !g.bearer(w, r) {
				return
			}
			who = caller{name: tokenName}
		case !g.hasCookie(r):
			g.refuse(w, r, http.StatusUnauthorized, "")
			return
		default:
			who = g.sessionOf(r)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if !who.allows(r) {
			http.Error(w, "errand: this form is out of date or comes from another site; reload the page and try again", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// ownHost reports whether a request's host cannot be a foreign domain that resolves to this server: an address, a name
// without a dot, or one under a private suffix.
func ownHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if net.ParseIP(host) != nil || !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// bearer checks an Authorization header and responds if it is wrong.
func (g *Guard) bearer(w http.ResponseWriter, r *http.Request) bool {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && g.equal(strings.TrimSpace(shown)) {
		return true
	}
	if !g.throttled(w, r) {
		g.refuse(w, r, http.StatusUnauthorized, "")
	}
	return false
}

// equal compares a token in constant time, also for different lengths.
func (g *Guard) equal(shown string) bool {
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(g.cfg.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// throttled counts a wrong token. It responds and returns true if the address sent too many recently. Requests with the
// right token never get here, because other clients may share the address, for example behind a proxy.
func (g *Guard) throttled(w http.ResponseWriter, r *http.Request) bool {
	key := throttleKey(r.RemoteAddr)
	wait := g.throttle.wait(key)
	if wait <= 0 {
		g.throttle.failed(key)
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
	g.refuse(w, r, http.StatusTooManyRequests, "Wrong token. Your address has sent too many wrong tokens; the right one still works.")
	return true
}

// refuse shows the login form to browsers and a line of text to other clients.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, status int, words string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="errand"`)
	if WantsHTML(r) {
		next := "/status"
		if r.Method == http.MethodGet && r.URL.Path != "/login" {
			next = r.URL.RequestURI()
		}
		g.form(w, r, status, next, words)
		return
	}
	if words == "" {
		words = "errand: send the admin token as `Authorization: Bearer TOKEN`"
	}
	http.Error(w, words, status)
}

func (g *Guard) form(w http.ResponseWriter, r *http.Request, status int, next, words string) {
	g.cfg.Show(w, r, status, Form{Next: safeNext(next), Words: words, Reload: fromElsewhere(r)})
}

// fromElsewhere reports whether the browser followed a link from another site, such as a comment on GitHub. Browsers do
// not send the cookie then, but they do when the response reloads itself.
func fromElsewhere(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// safeNext returns the page of this server to show after the login: next if it is a clean local path, otherwise the
// board. Browsers drop control characters from URLs and treat a backslash as a slash, so next may contain neither,
// encoded or not.
func safeNext(next string) string {
	const board = "/status"
	strange := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' || r == '#' }
	if len(next) > 1000 || !strings.HasPrefix(next, "/") || strings.ContainsFunc(next, strange) {
		return board
	}
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Path != path.Clean(u.Path) {
		return board
	}
	unclear := func(r rune) bool { return r == '\\' || r == utf8.RuneError || unicode.IsControl(r) }
	if strings.ContainsFunc(u.Path, unclear) || u.Path == "/login" || u.Path == "/logout" {
		return board
	}
	return next
}

// login checks the form and sets the cookie.
func (g *Guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	next := safeNext(r.PostFormValue("next"))
	if g.cfg.Token == "" {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	if !g.equal(strings.TrimSpace(r.PostFormValue("token"))) {
		if !g.throttled(w, r) {
			g.form(w, r, http.StatusUnauthorized, next, "Wrong token.")
		}
		return
	}
	value, err := g.sessions.begin(r.Context())
	if err != nil {
		g.cfg.Fail(w, r, fmt.Errorf("begin a session: %w", err))
		return
	}
	g.setCookie(w, r, value, int(cookieLife.Seconds()))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// logout ends all sessions if the request has a valid session.
func (g *Guard) logout(w http.ResponseWriter, r *http.Request) {
	if g.hasCookie(r) {
		if err := g.sessions.end(r.Context()); err != nil {
			g.cfg.Fail(w, r, fmt.Errorf("end the sessions: %w", err))
			return
		}
	}
	g.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (g *Guard) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: g.cfg.Secure || r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	})
}

// hasCookie reports whether the request has a valid session.
func (g *Guard) hasCookie(r *http.Request) bool {
	ok, err := g.sessions.valid(r)
	if err != nil && r.Context().Err() == nil {
		g.cfg.Log.Error().Err(err).Msg("failed to check an admin session")
	}
	return ok
}

// WantsHTML reports whether the request comes from a browser's address bar or a link.
func WantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
