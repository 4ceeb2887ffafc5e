package admin

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	cookieName = "errand_admin"
	cookieLife = 7 * 24 * time.Hour
	maxLogin   = 16 << 10 // bytes of a login form
)

// guard lets operators in. A token comes in an Authorization header, or once in the login form,
// which is answered with a cookie. It is never read from an address, where it would stay in logs.
type guard struct {
	cfg      Config
	pages    *pages
	throttle *throttle
}

func newGuard(cfg Config, p *pages) *guard {
	return &guard{cfg: cfg, pages: p, throttle: newThrottle(cfg.Now)}
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
	if g.tooMany(w, r) {
		return false
	}
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && g.equal(strings.TrimSpace(shown)) {
		return true
	}
	g.throttle.failed(client(r))
	g.refuse(w, r, http.StatusUnauthorized, "")
	return false
}

// equal compares with the token in constant time, whatever the lengths.
func (g *guard) equal(shown string) bool {
	a, b := sha256.Sum256([]byte(shown)), sha256.Sum256([]byte(g.cfg.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// tooMany answers an address that has failed too often of late; its token is not even looked at.
func (g *guard) tooMany(w http.ResponseWriter, r *http.Request) bool {
	wait := g.throttle.wait(client(r))
	if wait <= 0 {
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
	g.refuse(w, r, http.StatusTooManyRequests, "Too many wrong tokens came from your address. Wait a minute, then try again.")
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

// safeNext returns a path on this server to go to after the login.
func safeNext(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n") || len(next) > 1000 {
		return "/status"
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
	if g.tooMany(w, r) {
		return
	}
	if !g.equal(strings.TrimSpace(r.PostFormValue("token"))) {
		g.throttle.failed(client(r))
		g.form(w, r, http.StatusUnauthorized, next, "That is not the token.")
		return
	}
	g.setCookie(w, r, g.session(g.cfg.Now().Add(cookieLife)), int(cookieLife.Seconds()))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// logout takes the cookie back.
func (g *guard) logout(w http.ResponseWriter, r *http.Request) {
	g.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (g *guard) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	})
}

// session is a cookie's value: until when it holds, and a proof that we said so. Another token makes
// all of them worthless.
func (g *guard) session(until time.Time) string {
	text := strconv.FormatInt(until.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(g.cfg.Token))
	mac.Write([]byte("admin session until " + text))
	return text + "." + hex.EncodeToString(mac.Sum(nil))
}

// hasCookie reports whether the request carries a session that holds.
func (g *guard) hasCookie(r *http.Request) bool {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return false
	}
	text, _, _ := strings.Cut(c.Value, ".")
	unix, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !g.cfg.Now().Before(time.Unix(unix, 0)) {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.session(time.Unix(unix, 0)))) == 1
}

// client is the address that a request comes from. What a proxy says about it is not believed.
func client(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// wantsHTML reports whether the request comes from a browser's address line or a link.
func wantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
