package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxLogin = 16 << 10 // bytes of a login form

// guard lets operators in. A token comes in an Authorization header, or once in the login form,
// which is answered with a cookie. It is never read from an address, where it would stay in logs.
type guard struct {
	cfg      Config
	pages    *pages
	sessions *sessions
	throttle *throttle
}

func newGuard(cfg Config, p *pages) *guard {
	return &guard{cfg: cfg, pages: p, sessions: newSessions(cfg), throttle: newThrottle(cfg.Now)}
}

// wrap puts the guard and the headers before every page.
func (g *guard) wrap(next http.Handler) http.Handler {
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
	// A form of another site must not log anybody in or out.
	return harden(http.NewCrossOriginProtection().Handler(mux))
}

// only answers those who may not see the pages.
func (g *guard) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.cfg.Token == "":
			if !ownHost(r.Host) {
				http.Error(w, "errand: without a token the pages answer to addresses and local names only; set admin.token", http.StatusMisdirectedRequest)
				return
			}
		case r.Header.Get("Authorization") != "":
			if !g.bearer(w, r) {
				return
			}
		case !g.hasCookie(r):
			g.refuse(w, r, http.StatusUnauthorized, "")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownHost reports whether a request's host is one that a foreign site cannot make lead here by its
// own DNS: an address, a name without a dot, or one under a private suffix.
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

// bearer checks an Authorization header, and answers if it is wrong.
func (g *guard) bearer(w http.ResponseWriter, r *http.Request) bool {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && g.equal(strings.TrimSpace(shown)) {
		return true
	}
	if !g.throttled(w, r) {
		g.refuse(w, r, http.StatusUnauthorized, "")
	}
	return false
}

// equal compares with the token in constant time, whatever the lengths.
func (g *guard) equal(shown string) bool {
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(g.cfg.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// throttled counts a wrong token. If too many came from the address lately it answers that, and returns true. The
// right token never gets here: others may share its address, behind a proxy for instance.
func (g *guard) throttled(w http.ResponseWriter, r *http.Request) bool {
	key := throttleKey(r.RemoteAddr)
	wait := g.throttle.wait(key)
	if wait <= 0 {
		g.throttle.failed(key)
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
	g.refuse(w, r, http.StatusTooManyRequests, "That is not the token, and too many wrong ones came from your address. The right one works at any time.")
	return true
}

// refuse shows the login form to browsers, and a line of text to others.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, words string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="errand"`)
	if wantsHTML(r) {
		next := "/status"
		if r.Method == http.MethodGet && r.URL.Path != "/login" {
			next = r.URL.RequestURI()
		}
		g.form(w, r, status, next, words)
		return
	}
	if words == "" {
		words = "errand: show the admin token as `Authorization: Bearer TOKEN`"
	}
	http.Error(w, words, status)
}

// loginData is what the form shows.
type loginData struct{ Next, Words string }

func (g *guard) form(w http.ResponseWriter, r *http.Request, status int, next, words string) {
	g.pages.show(w, r, status, "login", page{Title: "Log in", Plain: true, Again: fromElsewhere(r), Data: loginData{safeNext(next), words}})
}

// fromElsewhere reports whether the browser followed a link of another site, such as a comment on
// GitHub. It withholds the cookie then, but not when the page that it gets loads itself again.
func fromElsewhere(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// safeNext returns a page of this server to go to after the login: next if it is a clean local path, else the board.
// Browsers drop control characters from addresses and take a backslash for a slash, so neither may be in it, encoded or
// not.
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
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	next := safeNext(r.PostFormValue("next"))
	if g.cfg.Token == "" {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	if !g.equal(strings.TrimSpace(r.PostFormValue("token"))) {
		if !g.throttled(w, r) {
			g.form(w, r, http.StatusUnauthorized, next, "That is not the token.")
		}
		return
	}
	value, err := g.sessions.begin(r.Context())
	if err != nil {
		g.pages.fail(w, r, fmt.Errorf("begin a session: %w", err))
		return
	}
	g.setCookie(w, r, value, int(cookieLife.Seconds()))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// logout ends all sessions, if it is asked by one of them.
func (g *guard) logout(w http.ResponseWriter, r *http.Request) {
	if g.hasCookie(r) {
		if err := g.sessions.end(r.Context()); err != nil {
			g.pages.fail(w, r, fmt.Errorf("end the sessions: %w", err))
			return
		}
	}
	g.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (g *guard) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: g.cfg.Secure || r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	})
}

// hasCookie reports whether the request carries a valid session.
func (g *guard) hasCookie(r *http.Request) bool {
	ok, err := g.sessions.valid(r)
	if err != nil && r.Context().Err() == nil {
		g.cfg.Log.Error().Err(err).Msg("failed to check a session of the pages")
	}
	return ok
}

// wantsHTML reports whether the request comes from a browser's address line or a link.
func wantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
