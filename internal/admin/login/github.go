package login

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state"
)

// startPath is where a sign-in with GitHub starts; below it is the callback URL of the App.
const startPath = "/login/github"

// Cookies of the sign-in.
const (
	personCookieName = "errand_session"
	flowCookieName   = "errand_sign_in"
)

const (
	flowLife     = 10 * time.Minute // from the start of a sign-in to its end; GitHub's codes live as long
	exchangeTime = 20 * time.Second // timeout for exchanging a code
	maxExchanges = 8                // codes that are exchanged at the same time
	refusalEvery = time.Minute      // between two log lines about refused sign-ins
)

// GitHub signs people in.
type GitHub struct {
	// PublicURL is the address at which browsers reach the pages. A request's Host header is never used for it.
	PublicURL string
	// Operators lists the accounts that see and do everything, as LOGIN or LOGIN:ID, and Teams the teams whose members do.
	Operators []string
	Teams     []config.Team
	// IsMember asks GitHub whether a person is an active member of a team, and returns the ID of the organization. Only Teams need it.
	IsMember func(ctx context.Context, t config.Team, who state.Person) (member bool, organizationID int64, err error)
	// Reason returns why IsMember failed, in one sentence that everybody may read.
	Reason func(err error) string
	// AuthorizeURL returns the page of GitHub that sends the browser back with state and a code, which only the one who knows the
	// verifier can use.
	AuthorizeURL func(ctx context.Context, state, verifier string) (string, error)
	// SignIn exchanges a code. Its error is an ErrRefused if GitHub does not accept the code.
	SignIn func(ctx context.Context, code, verifier string) (Account, error)
}

// ErrRefused means that GitHub does not accept the code of a sign-in.
var ErrRefused = errors.New("GitHub does not accept the code")

// startURL returns the address at which the sign-in starts. It is absolute, because the cookie of the sign-in has to be set at the
// address to which GitHub sends the browser back.
func (g *GitHub) startURL(next string) string {
	return strings.TrimSuffix(g.PublicURL, "/") + startPath + "?" + url.Values{"next": {next}}.Encode()
}

func (g *Guard) cookieNamed(name string) string {
	if g.cfg.Secure {
		return "__Host-" + name // browsers accept it only with Secure, for this host and all paths
	}
	return name
}

func (g *Guard) personCookie() string { return g.cookieNamed(personCookieName) }
func (g *Guard) flowCookie() string   { return g.cookieNamed(flowCookieName) }

// setPersonCookie sets a cookie of the sign-in. Browsers send it also when people follow a link from GitHub, which needs SameSite=Lax;
// everything that changes something is a form of errand's pages.
func (g *Guard) setPersonCookie(w http.ResponseWriter, name, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: g.cfg.Secure,
	})
}

// flow is a sign-in under way. It is kept in the browser's cookie, so that nobody can exhaust a memory of errand: the time of its
// end, a random text, and the page to show afterwards, with a MAC over them.
type flow struct {
	cookie string
	next   string
}

// sign derives a value of a cookie that only this process knows.
func (g *Guard) sign(purpose, text string) string {
	mac := hmac.New(sha256.New, g.formKey)
	mac.Write([]byte(purpose + " " + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// state and verifier are derived from the cookie, so that a callback belongs to the browser that started it.
func (g *Guard) state(f flow) string    { return g.sign("sign-in state", f.cookie) }
func (g *Guard) verifier(f flow) string { return g.sign("sign-in verifier", f.cookie) }

func (g *Guard) newFlow(next string) flow {
	text := strconv.FormatInt(g.cfg.Now().Add(flowLife).Unix(), 10) + "." + rand.Text() + "." + base64.RawURLEncoding.EncodeToString([]byte(next))
	return flow{cookie: text + "." + g.sign("sign-in", text), next: next}
}

// flowOf returns the flow of a request's cookie if the callback belongs to it.
func (g *Guard) flowOf(r *http.Request) (flow, bool) {
	c, err := r.Cookie(g.flowCookie())
	if err != nil {
		return flow{}, false
	}
	parts := strings.Split(c.Value, ".")
	if len(parts) != 4 {
		return flow{}, false
	}
	text := strings.Join(parts[:3], ".")
	unix, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || !equalTexts(parts[3], g.sign("sign-in", text)) || !g.cfg.Now().Before(time.Unix(unix, 0)) {
		return flow{}, false
	}
	next, err := base64.RawURLEncoding.DecodeString(parts[2])
	f := flow{cookie: c.Value, next: string(next)}
	return f, err == nil && equalTexts(r.URL.Query().Get("state"), g.state(f))
}

func equalTexts(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// start sends the browser to GitHub.
func (g *Guard) start(w http.ResponseWriter, r *http.Request) {
	f := g.newFlow(safeNext(r.URL.Query().Get("next")))
	ctx, cancel := context.WithTimeout(r.Context(), exchangeTime)
	defer cancel()
	to, err := g.cfg.GitHub.AuthorizeURL(ctx, g.state(f), g.verifier(f))
	if err != nil {
		g.cfg.Log.Error().Err(err).Msg("failed to start a sign-in with GitHub")
		g.form(w, r, http.StatusBadGateway, f.next, "errand could not read its App from GitHub, so nobody can sign in with GitHub. Try again in a moment.")
		return
	}
	g.setPersonCookie(w, g.flowCookie(), f.cookie, int(flowLife.Seconds()))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

var (
	codeForm  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)
	errorForm = regexp.MustCompile(`^[a-z_]{1,60}$`)
)

// callback ends a sign-in: GitHub sent the browser here.
func (g *Guard) callback(w http.ResponseWriter, r *http.Request) {
	f, ok := g.flowOf(r)
	g.setPersonCookie(w, g.flowCookie(), "", -1)
	q := r.URL.Query()
	code, refusal := q.Get("code"), q.Get("error")
	switch {
	case !ok:
		if _, signedIn, err := g.person(r); signedIn && err == nil { // by another tab
			http.Redirect(w, r, "/status", http.StatusSeeOther)
			return
		}
		g.form(w, r, http.StatusBadRequest, "/status", "This sign-in did not start in this browser, or more than ten minutes ago. Start again.")
	case refusal == "access_denied":
		g.throttle.failed(throttleKey(r.RemoteAddr))
		g.form(w, r, http.StatusForbidden, f.next, "You did not authorize errand on GitHub, so you are not signed in.")
	case refusal != "":
		if !errorForm.MatchString(refusal) {
			refusal = "an unknown error"
		}
		g.throttle.failed(throttleKey(r.RemoteAddr))
		g.refusals.Do(func() { // anybody can send such a request
			g.cfg.Log.Error().Str("error", refusal).Msg("GitHub refused a sign-in; compare the App's callback URL with public_url")
		})
		g.form(w, r, http.StatusBadGateway, f.next, "GitHub refused the sign-in ("+refusal+"). An operator can find the cause with `errand doctor`.")
	case !codeForm.MatchString(code):
		g.form(w, r, http.StatusBadRequest, f.next, "GitHub's answer has no usable code. Start again.")
	default:
		g.exchange(w, r, f, code)
	}
}

// exchange begins the session of the person who has the code.
func (g *Guard) exchange(w http.ResponseWriter, r *http.Request, f flow, code string) {
	if wait := g.throttle.wait(throttleKey(r.RemoteAddr)); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
		g.form(w, r, http.StatusTooManyRequests, f.next, "Too many sign-ins from your address have failed. Start again in a minute.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), exchangeTime)
	defer cancel()
	a, err := g.account(ctx, r, f, code)
	if errors.Is(err, errBusy) {
		w.Header().Set("Retry-After", "10")
		g.form(w, r, http.StatusServiceUnavailable, f.next, "Too many people are signing in at this moment. Start again.")
		return
	}
	var cookie string
	if err == nil {
		cookie, err = g.people.begin(ctx, a)
	}
	if err != nil {
		g.notSignedIn(w, r, f, err)
		return
	}
	if old, err := r.Cookie(g.personCookie()); err == nil {
		g.people.end(old.Value) // a new session never continues an old one
	}
	g.setCookie(w, r, "", -1) // the token's cookie would outrank the person's; browsers do not send it here
	g.setPersonCookie(w, g.personCookie(), cookie, int(cookieLife.Seconds()))
	http.Redirect(w, r, safeNext(f.next), http.StatusSeeOther)
}

// endPerson ends the person's session of this browser, if it has one, and takes its cookie.
func (g *Guard) endPerson(w http.ResponseWriter, r *http.Request) {
	if g.people == nil {
		return
	}
	if c, err := r.Cookie(g.personCookie()); err == nil {
		g.people.end(c.Value)
		g.setPersonCookie(w, g.personCookie(), "", -1)
	}
}

// errBusy means that no slot for another exchange is free.
var errBusy = errors.New("too many codes are being exchanged")

// account exchanges the code. A failure counts against the sender's address, because everybody can send codes.
func (g *Guard) account(ctx context.Context, r *http.Request, f flow, code string) (Account, error) {
	select {
	case g.exchanges <- struct{}{}:
		defer func() { <-g.exchanges }()
	default:
		return nil, errBusy
	}
	a, err := g.cfg.GitHub.SignIn(ctx, code, g.verifier(f))
	if err != nil {
		g.throttle.failed(throttleKey(r.RemoteAddr))
	}
	return a, err
}

// notSignedIn answers a sign-in that failed.
func (g *Guard) notSignedIn(w http.ResponseWriter, r *http.Request, f flow, err error) {
	if r.Context().Err() != nil {
		return // the browser has left
	}
	words := "GitHub did not confirm who you are. Start again; the log has the cause."
	level := zerolog.WarnLevel
	if errors.Is(err, ErrRefused) || errors.Is(err, errSignedOut) {
		level, words = zerolog.DebugLevel, "GitHub no longer accepts this sign-in. Start again."
	}
	g.cfg.Log.WithLevel(level).Err(err).Msg("failed to sign a person in")
	g.form(w, r, http.StatusBadGateway, f.next, words)
}

// signInAgain sends a browser whose session has ended, as after a restart, to the sign-in. It happens once: the cookie goes.
func (g *Guard) signInAgain(w http.ResponseWriter, r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode") // a script cannot follow the redirect to GitHub, and reloads its page after a 401
	if g.people == nil || r.Method != http.MethodGet || !WantsHTML(r) || mode != "" && mode != "navigate" {
		return false
	}
	if _, err := r.Cookie(g.personCookie()); err != nil {
		return false
	}
	g.setPersonCookie(w, g.personCookie(), "", -1)
	http.Redirect(w, r, g.cfg.GitHub.startURL(safeNext(r.URL.RequestURI())), http.StatusSeeOther)
	return true
}
