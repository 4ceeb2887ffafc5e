package login

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
)

// caller is the one who sent a request.
type caller struct {
	name     string                // for the audit log
	form     string                // the form token of the browser session; empty for requests with the admin token
	operator bool                  // may see and do everything
	access   *access               // of a person who has signed in with GitHub, otherwise nil
	again    func() (caller, bool) // checks the session again; nil if it cannot end
}

type callerKey struct{}

// FormField is the name of the form field that holds the form token.
const FormField = "form"

// NameOf returns how the operator of a request was admitted, for the audit log.
func NameOf(r *http.Request) string {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c.name
}

// FormToken returns the token that forms of the page that the request asks for have to contain.
func FormToken(r *http.Request) string {
	c, _ := r.Context().Value(callerKey{}).(caller)
	return c.form
}

// formToken returns the token of the forms of a session. Other sites cannot read it.
func (g *Guard) formToken(cookie string) string {
	mac := hmac.New(sha256.New, g.formKey)
	mac.Write([]byte("form of " + cookie))
	return hex.EncodeToString(mac.Sum(nil))
}

// sessionOf returns the caller of a request with a valid cookie. Its name does not reveal the cookie.
func (g *Guard) sessionOf(r *http.Request) caller {
	c, err := r.Cookie(cookieName)
	if err != nil { // the guard has found it before
		return caller{}
	}
	sum := sha256.Sum256([]byte(c.Value))
	return caller{name: "browser session " + hex.EncodeToString(sum[:3]), form: g.formToken(c.Value), operator: true}
}

// allows reports whether a request is safe from cross-site forgery. A request that may change something and comes from a browser needs
// the form token: browsers send cookies, and reach addresses inside a network, on behalf of any site.
func (c caller) allows(r *http.Request) bool {
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	if safe || c.name == tokenName {
		return true
	}
	if c.name == openName && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		return true // a program: browsers send at least one of them
	}
	return c.form != "" && subtle.ConstantTimeCompare([]byte(r.PostFormValue(FormField)), []byte(c.form)) == 1
}

// The names of callers without a session.
const (
	tokenName = "token"
	openName  = "without a token"
)
