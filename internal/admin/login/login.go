// Package login admits people to the pages. Operators send the token in an Authorization header, or once in the login
// form, which sets a cookie. A token in the URL is never accepted, because it would appear in logs. Others sign in with GitHub, and
// see the tasks of the repositories that they can read there: see [Viewer].
//
// A request of a browser that changes something also needs the session's form token, which only errand's pages contain. Wrong
// tokens and failed sign-ins are throttled by address. Start here: [Guard.Wrap].
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
	"golang.org/x/time/rate"

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
	Next string // the page to show after the login
	// GitHub is where the sign-in with GitHub starts; empty if it is off.
	GitHub string
	Words  string // error message; may be empty
	// Reload states that the form reloads itself immediately, so that the browser sends its cookie.
	Reload bool
}

// Config configures a [Guard]. Only Facts and GitHub are optional.
type Config struct {
	// Token is required for every page. If it is empty, pages are served to everyone, but only under names that cannot
	// be foreign domains.
	Token string
	// Secure states that browsers reach the pages only by HTTPS. Cookies are then never sent over HTTP.
	Secure bool
	// Facts stores the session generation across restarts; nil keeps it in memory.
	Facts Facts
	// GitHub signs people in; nil turns that off.
	GitHub *GitHub
	Now    func() time.Time
	Log    zerolog.Logger
	// Show responds with the login form.
	Show func(w http.ResponseWriter, r *http.Request, status int, form Form)
	// Fail responds to an internal error, Unavailable while GitHub cannot be asked.
	Fail        func(w http.ResponseWriter, r *http.Request, err error)
	Unavailable func(w http.ResponseWriter, r *http.Request, words string)
}

// A Guard authenticates the senders of requests.
type Guard struct {
	cfg       Config
	sessions  *sessions
	people    *people // nil if nobody signs in with GitHub
	throttle  *throttle
	formKey   []byte         // of form tokens and sign-ins; they are valid until the process ends
	exchanges chan struct{}  // a slot for each code that is being exchanged
	refusals  rate.Sometimes // limits the log of refused sign-ins
}

// New returns a [Guard]. It fails for a list of operators that cannot be read.
func New(cfg Config) (*Guard, error) {
	g := &Guard{
		cfg: cfg, sessions: newSessions(cfg), throttle: newThrottle(cfg.Now), formKey: []byte(rand.Text()),
		exchanges: make(chan struct{}, maxExchanges), refusals: rate.Sometimes{First: 1, Interval: refusalEvery},
	}
	if cfg.GitHub != nil {
		operators, err := newOperators(cfg, g.sessions.facts)
		if err != nil {
			return nil, err
		}
		g.people = newPeople(cfg.Now, operators)
	}
	return g, nil
}

// Wrap adds the login pages to next, and restricts everything else to authenticated requests.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", g.login)
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		_, signedIn, err := g.person(r)
		if g.cfg.Token == "" || g.hasCookie(r) || signedIn && err == nil {
			http.Redirect(w, r, "/status", http.StatusSeeOther)
			return
		}
		g.form(w, r, http.StatusOK, "/status", "")
	})
	if g.people != nil {
		mux.HandleFunc("GET /login/github", g.start)
		mux.HandleFunc("GET /login/github/callback", g.callback)
	}
	mux.HandleFunc("POST /logout", g.logout)
	mux.Handle("POST /logout/all", g.only(http.HandlerFunc(g.logoutAll)))
	mux.Handle("/", g.only(next))
	// Other sites must not be able to log anyone in or out.
	return http.NewCrossOriginProtection().Handler(mux)
}

// only restricts next to authenticated requests.
func (g *Guard) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := g.admit(w, r)
		if !ok {
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		if !who.allows(r) {
			http.Error(w, "errand: this form is out of date or comes from another site; reload the page and try again", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// admit returns the caller of a request, or responds and returns false.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request) (caller, bool) {
	switch {
	case g.cfg.Token == "":
		if !ownHost(r.Host) {
			http.Error(w, "errand: without a token the pages are only served for IP addresses and local names; set admin.token", http.StatusMisdirectedRequest)
			return caller{}, false
		}
		return caller{name: openName, form: g.formToken(""), operator: true}, true
	case r.Header.Get("Authorization") != "":
		return caller{name: tokenName, operator: true}, g.bearer(w, r)
	case g.hasCookie(r):
		who := g.sessionOf(r)
		who.again = func() (caller, bool) { return who, g.hasCookie(r) }
		return who, true
	}
	who, ok, err := g.person(r)
	switch {
	case err != nil:
		if r.Context().Err() == nil {
			g.cfg.Log.Warn().Err(err).Msg("failed to ask GitHub what a person may see")
			w.Header().Set("Retry-After", "10")
			g.cfg.Unavailable(w, r, "GitHub does not say at the moment which repositories you can read, so nothing is shown. Try again in a moment.")
		}
		return caller{}, false
	case ok:
		who.again = func() (caller, bool) {
			now, ok, err := g.person(r)
			return now, ok && err == nil
		}
		return who, true
	case !g.signInAgain(w, r):
		g.refuse(w, r, http.StatusUnauthorized, "")
	}
	return caller{}, false
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
	f := Form{Next: safeNext(next), Words: words, Reload: fromElsewhere(r) && !strings.HasPrefix(r.URL.Path, "/login")}
	if g.people != nil {
		f.GitHub = g.cfg.GitHub.startURL(f.Next)
	}
	g.cfg.Show(w, r, status, f)
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
	if strings.ContainsFunc(u.Path, unclear) || u.Path == "/login" || u.Path == "/logout" || strings.HasPrefix(u.Path, startPath) {
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
	g.endPerson(w, r)
	g.setCookie(w, r, value, int(cookieLife.Seconds()))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// logout ends the session of a person, or all sessions with the admin token if the request has a valid one.
func (g *Guard) logout(w http.ResponseWriter, r *http.Request) {
	if g.hasCookie(r) && !g.endSessions(w, r) {
		return
	}
	g.forget(w, r)
}

// logoutAll ends every session of everybody, for operators.
func (g *Guard) logoutAll(w http.ResponseWriter, r *http.Request) {
	if !ViewerOf(r).Operator() {
		http.Error(w, "errand: only operators can log everybody out", http.StatusForbidden)
		return
	}
	n := 0
	if g.people != nil {
		n = g.people.endAll() // first, because it cannot fail
	}
	if !g.endSessions(w, r) {
		return
	}
	g.cfg.Log.Info().Str("operator", NameOf(r)).Int("people", n).Msg("an operator logged everybody out")
	g.forget(w, r)
}

// endSessions ends all sessions with the admin token, or responds and returns false.
func (g *Guard) endSessions(w http.ResponseWriter, r *http.Request) bool {
	err := g.sessions.end(r.Context())
	if err != nil {
		g.cfg.Fail(w, r, fmt.Errorf("end the sessions: %w", err))
	}
	return err == nil
}

// forget ends the browser's own session, takes its cookies, and shows the login.
func (g *Guard) forget(w http.ResponseWriter, r *http.Request) {
	g.setCookie(w, r, "", -1)
	g.endPerson(w, r)
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
